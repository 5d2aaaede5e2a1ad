import type { z } from 'zod';
import type { pushRecord } from '../pushes.ts';
import type {
  auditEntry,
  consoleSession,
  consoleToken,
  createdConsoleToken,
  currentOperator,
  loginLink,
  otherPerson,
} from './access.ts';
import type {
  app,
  appOptions,
  listedMessage,
  outboxMessage,
  pushProfile,
  rotatedKey,
  shownApp,
  shownKey,
  smsState,
  usageReport,
} from './apps.ts';
import type { appName, appSummary, deviceDetail, devicePush, searchHit } from './devices.ts';
import type { failureGroup, gatewayMessage, pushFailure, pushTimeline } from './failures.ts';
import type { moveInState, profileCheck, profileDetail, quotas } from './gateways.ts';
import type { meaning } from './meaning.ts';
import type { breaker, deviceExplanation, pushForecast, pushProgress } from './pushes.ts';
import type { listedPush, meta, overview, pushDetail, queueState } from './records.ts';
import type {
  failedReceipt,
  messageForecast,
  redriveForecast,
  redrivenReceipts,
  undeliveredPush,
} from './redrives.ts';
import type { profileRotation, secretState } from './rotations.ts';
import type {
  audience,
  recurringPush,
  recurringTimes,
  sampledField,
  sampledValue,
  savedAudience,
  savedTemplate,
  savedTestDevice,
  scheduledEntry,
  sentPush,
} from './sending.ts';
import type { doctorFinding, freeze, seenProcess, waitingJob } from './service.ts';
import type { smsSignature, smsTemplate } from './sms-texts.ts';
import type { userDetail } from './users.ts';

/** Replies of the admin API as types, for the console. This module has no code: importing it loads nothing. */

export type FailedReceipt = z.infer<typeof failedReceipt>;
export type RedrivenReceipts = z.infer<typeof redrivenReceipts>;
export type RedriveForecast = z.infer<typeof redriveForecast>;
export type UndeliveredPush = z.infer<typeof undeliveredPush>;
export type SecretState = z.infer<typeof secretState>;
export type MessageForecast = z.infer<typeof messageForecast>;
export type Audience = z.infer<typeof audience>;
export type PushTemplate = z.infer<typeof savedTemplate>;
export type SavedAudience = z.infer<typeof savedAudience>;
export type TestDevice = z.infer<typeof savedTestDevice>;
export type RecurringPush = z.infer<typeof recurringPush>;
export type RecurringTimes = z.infer<typeof recurringTimes>;
export type ScheduledEntry = z.infer<typeof scheduledEntry>;
export type SampledField = z.infer<typeof sampledField>;
export type SampledValue = z.infer<typeof sampledValue>;
export type SentPush = z.infer<typeof sentPush>;
export type App = z.infer<typeof app>;
export type AppOptions = z.infer<typeof appOptions>;
export type AuditEntry = z.infer<typeof auditEntry>;
export type ConsoleSession = z.infer<typeof consoleSession>;
export type ConsoleToken = z.infer<typeof consoleToken>;
export type CurrentOperator = z.infer<typeof currentOperator>;
export type OtherPerson = z.infer<typeof otherPerson>;
export type AppName = z.infer<typeof appName>;
export type AppSummary = z.infer<typeof appSummary>;
export type GatewayMessage = z.infer<typeof gatewayMessage>;
export type DeviceDetail = z.infer<typeof deviceDetail>;
export type Meaning = z.infer<typeof meaning>;
export type DevicePush = z.infer<typeof devicePush>;
export type SearchHit = z.infer<typeof searchHit>;
export type MoveInState = z.infer<typeof moveInState>;
export type ProfileCheck = z.infer<typeof profileCheck>;
export type ProfileDetail = z.infer<typeof profileDetail>;
export type ProfileRotation = z.infer<typeof profileRotation>;
export type UserDetail = z.infer<typeof userDetail>;
export type Quotas = z.infer<typeof quotas>;
export type ListedMessage = z.infer<typeof listedMessage>;
export type SmsState = z.infer<typeof smsState>;
export type DoctorFinding = z.infer<typeof doctorFinding>;
export type Freeze = z.infer<typeof freeze>;
export type SeenProcess = z.infer<typeof seenProcess>;
export type WaitingJob = z.infer<typeof waitingJob>;
export type FailureGroup = z.infer<typeof failureGroup>;
export type PushFailure = z.infer<typeof pushFailure>;
export type PushTimeline = z.infer<typeof pushTimeline>;
export type ListedPush = z.infer<typeof listedPush>;
export type Meta = z.infer<typeof meta>;
export type Overview = z.infer<typeof overview>;
export type PushDetail = z.infer<typeof pushDetail>;
export type QueueState = z.infer<typeof queueState>;
export type LoginLink = z.infer<typeof loginLink>;
export type CreatedConsoleToken = z.infer<typeof createdConsoleToken>;
export type ShownApp = z.infer<typeof shownApp>;
export type Breaker = z.infer<typeof breaker>;
export type DeviceExplanation = z.infer<typeof deviceExplanation>;
export type OutboxMessage = z.infer<typeof outboxMessage>;
export type PushForecast = z.infer<typeof pushForecast>;
export type PushProfile = z.infer<typeof pushProfile>;
export type PushProgress = z.infer<typeof pushProgress>;
export type PushRecord = z.infer<typeof pushRecord>;
export type SmsSignature = z.infer<typeof smsSignature>;
export type SmsTemplate = z.infer<typeof smsTemplate>;
export type ShownKey = z.infer<typeof shownKey>;
export type RotatedKey = z.infer<typeof rotatedKey>;
export type UsageReport = z.infer<typeof usageReport>;

/** Page of a list by keyset. */
export interface KeysetPage<T> extends Results<T> {
  /** `cursor` of the next page; null after the last one. */
  next: string | null;
  count?: number;
  countIsLeast?: true;
}

/** List of the admin API. */
export interface Results<T> {
  results: T[];
}
