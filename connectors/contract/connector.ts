/**
 * Interface of a connector, which sends to one gateway (develop/architecture.md#connectors).
 *
 * A connector sends to recipients and reports one result for each, as data. It makes one attempt,
 * never throws because of a response, and uses neither queue nor database. The dispatcher decides
 * about times and retries.
 */

import type { z } from 'zod';
import type { Clock } from '../../shared/clock.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import type { ChannelStorage } from '../../shared/domain/pushes/live-activity.ts';
import { originalTarget, type PushOrder } from '../../shared/domain/pushes/push.ts';
import { pushIdMember } from '../../shared/domain/pushes/push-events.ts';
import type { RichMember } from '../../shared/domain/pushes/rich-content.ts';
import type { Values } from '../../shared/domain/pushes/variables.ts';
import type { TransportEvent, TransportLoad } from '../http2/transport.ts';
import type { AttemptResult, EqualRefusals, GatewayCall, Report } from './attempt-result.ts';
import type { ChannelManager } from './broadcast-channels.ts';
import { type AppliedClass, appliedClass, type ProfileClasses } from './message-class.ts';

/**
 * Message of a push, shared by all its recipients and built once per push. `data` still contains
 * the objects for single types of devices.
 */
export interface PushMessage {
  /** Public id of the push record, 16 letters and digits. */
  objectId: string;
  /** `data` of the request, unchanged. */
  data: JsonObject;
  prod: 'dev' | 'prod';
  /** `topic` and `pgw_team_id` of the push. Used for devices without these fields. */
  topic?: string;
  teamId?: string;
  /**
   * Android notification channel: `_notificationChannel`, or `channel` in a push to a list of
   * devices.
   */
  notificationChannel?: string;
  /** Channels that the push was sent to. */
  channels?: string[];
  /** Message class at the vendor. Absent if the push has no class. */
  messageClass?: AppliedClass;
  /** Present for a broadcast to a channel of APNs, which is the only recipient. */
  broadcast?: { storage: ChannelStorage };
  /** Epoch milliseconds. */
  expiresAtMs: number;
  createdAtMs: number;
  /**
   * Ids of the message that this message replaces, as `Connector.identityOf` returns them. Absent
   * if it replaces none.
   */
  replaces?: JsonObject;
}

/** Fields of a push record that its message is built from. */
export interface MessageSource {
  objectId: string;
  pushOrder: PushOrder;
  expiresAt: Date;
  createdAt: Date;
}

/** Connector and profile that a message is built for. */
interface MessageProfile {
  connector: ConnectorId;
  /** `messageClasses` of the profile. */
  classes?: ProfileClasses | undefined;
}

/**
 * Builds the message of a push. Without `profile`, the message has no message class, which is
 * enough to choose routes.
 */
export function toPushMessage(
  { objectId, pushOrder, expiresAt, createdAt }: MessageSource,
  profile?: MessageProfile,
): PushMessage {
  const target = originalTarget(pushOrder);
  const channels = target.kind === 'query' ? target.channels : null;
  const messageClass = profile && appliedClass(pushOrder, profile);
  const audience = pushOrder.liveActivity?.target;
  const message: PushMessage = {
    objectId,
    data: pushOrder.hasPushId ? { ...pushOrder.data, [pushIdMember]: objectId } : pushOrder.data,
    prod: pushOrder.prod,
    expiresAtMs: expiresAt.getTime(),
    createdAtMs: createdAt.getTime(),
  };
  if (pushOrder.topic !== null) message.topic = pushOrder.topic;
  if (pushOrder.teamId !== null) message.teamId = pushOrder.teamId;
  if (pushOrder.notificationChannel !== null)
    message.notificationChannel = pushOrder.notificationChannel;
  if (channels !== null) message.channels = channels;
  if (messageClass !== undefined) message.messageClass = messageClass;
  if (audience?.kind === 'channel') message.broadcast = { storage: audience.storage };
  return message;
}

/** Returns the message of the earlier push that a push recalls; undefined for other pushes. */
export function recalledMessage({ recall }: PushOrder): PushMessage | undefined {
  if (!recall) return undefined;
  return toPushMessage({
    objectId: recall.objectId,
    pushOrder: { ...recall.order, target: recall.target },
    createdAt: new Date(recall.createdAtMs),
    expiresAt: new Date(recall.expiresAtMs),
  });
}

/** One device of a batch, as loaded by the worker thread that sends to it. */
export interface Recipient {
  /** Position in the batch. `report` takes it as argument. */
  index: number;
  /** Internal id of the installation. */
  id: number;
  /**
   * Device token, registration id or installation id. `tokenField` of the connector decides which.
   */
  deviceToken: string;
  deviceType: string;
  /** Vendor in the spelling of the installation: `mi` and `mi-intl` are different regions. */
  vendor?: string | null;
  topic: string | null;
  teamId: string | null;
  /**
   * Badge to send if the push says `Increment`. The dispatcher increments it once per push, before
   * the first attempt.
   */
  badge: number | null;
}

// Receipts that gateways send to `/callbacks/:connector/:appId/:secret`. A connector parses the
// format of its gateway. The route counts the receipts and deletes devices with dead tokens.

/** Call of a gateway with receipts. Only the secret in the URL identifies the caller. */
export interface ReceiptCall {
  /** Headers by lower-case name. */
  headers: Readonly<Record<string, string>>;
  /** Raw body, which signatures are computed from. */
  body: string;
  /** Arrival time in epoch milliseconds. Undefined if an earlier version stored the call. */
  receivedAtMs?: number | undefined;
}

export type ReceiptEvent =
  /** The message reached the device. */
  | 'delivered'
  | 'clicked'
  /** The gateway says that exactly this token is invalid. */
  | 'dead_token'
  /** The user turned notifications off or was inactive for a long time. The token stays valid. */
  | 'suspended'
  /**
   * The gateway accepted the message but did not show it, because of a quota, a filter or expiry.
   */
  | 'undelivered';

/** Receipt of a gateway for one device and one message. */
export interface Receipt {
  /** Public id of the push, if the gateway returns it. */
  objectId: string | null;
  /** Message id of the gateway, as in the `sent` result. */
  messageId: string | null;
  /** Registration id of the device. */
  deviceToken: string;
  event: ReceiptEvent;
  /** The gateway's code, as text. */
  code: string;
  /** Time of the event in epoch milliseconds; null if unknown. */
  atMs: number | null;
  /** The `dead_token` may be wrong. It counts only if a second message gets the same receipt. */
  needsConfirmation?: true;
}

/**
 * Receipts of a call and the reply that the gateway expects, or the reason why the call is refused.
 */
export type ReceiptsResult =
  | { ok: true; receipts: Receipt[]; reply?: JsonObject }
  | { ok: false; status: 400 | 401; error: string };

// State that senders share across threads and dispatchers. The worker thread provides it, because
// connectors do not use the database.

/** Access token, stored for all threads and dispatchers. */
export interface StoredToken {
  value: string;
  /** Epoch milliseconds. */
  madeAtMs: number;
  expiresAtMs: number;
  /** True if the token replaces a token that the gateway refused. */
  isReplacement: boolean;
}

/**
 * Stores the access tokens of one app and connector for all threads and dispatchers
 * (develop/architecture.md#access-tokens). `credential` is a text that differs between credentials;
 * only its digest is stored. Rejects if the database is unreachable.
 */
export interface TokenStore {
  read(credential: string): Promise<StoredToken | null>;
  /**
   * Resolves to true if the caller may renew the token. No other caller may renew it until the
   * claim ends, at most `leaseMs` later.
   */
  claim(credential: string, leaseMs: number): Promise<boolean>;
  /** Stores a token and ends the claim. */
  keep(credential: string, token: StoredToken): Promise<void>;
  /** Ends the claim without a new token. */
  release(credential: string): Promise<void>;
}

/**
 * Daily quotas of one profile. If the gateway says that the quota of a message class is used up, no
 * dispatcher sends in this class until midnight China time. Rejects if the database is unreachable.
 */
export interface DayQuota {
  /** Resolves to the reason why the class is closed today; null if it is open. */
  closed(messageClass: string): Promise<string | null>;
  close(messageClass: string, reason: string): Promise<void>;
}

export type { AttemptResult, GatewayCall, Report } from './attempt-result.ts';

export interface SendRequest {
  /** Internal id of the push, for the message store. Gateways get `message.objectId`. */
  pushId: number;
  message: PushMessage;
  recipients: Recipient[];
  report: Report;
  /**
   * Aborts requests that are not written yet. Requests in flight finish or are reported as
   * `unknown`.
   */
  signal: AbortSignal;
  /**
   * Equal refusals, counted over all sends of one batch. If absent, this send counts only its own
   * refusals.
   */
  refusals?: EqualRefusals | undefined;
}

/** Recipients with the same values for the variables of a text. */
export interface TextGroup {
  values: Values;
  recipients: Recipient[];
}

/** Texts that differ between recipients. */
export interface PersonalTexts {
  /** Returns the `data` of the message with these values filled in. */
  dataOf(values: Values): JsonObject;
  /** Names of the variables. */
  names: readonly string[];
  groups: readonly TextGroup[];
}

/** Long-lived client of one gateway with one set of credentials. Owns its connections. */
export interface Sender {
  /**
   * Sends to all recipients. Resolves when each was reported exactly once. Rejects only because of
   * a bug.
   */
  send(request: SendRequest): Promise<void>;
  /**
   * Sends texts that differ between recipients in one pass. Resolves and reports like `send`. If
   * absent, `send` is called for each text.
   */
  sendTexts?(request: Omit<SendRequest, 'recipients'>, texts: PersonalTexts): Promise<void>;
  /**
   * Recalls the message of an earlier push, which `request` contains, from its recipients. Resolves
   * and reports like `send`; `sent` means that the gateway accepted the recall. `pushId` is the
   * internal id of the earlier push. Called only if `Connector.canRecall` returns true.
   */
  recall?(request: SendRequest): Promise<void>;
  /**
   * Opens the connection that the first message of this environment needs, without sending a
   * request. Resolves when it is open or has failed. Absent if there is nothing to open in advance.
   */
  warmUp?(message: Pick<PushMessage, 'prod'>): Promise<void>;
  /**
   * Checks the credentials without sending a message: fetches an access token, or opens a
   * connection if the gateway has no token call. Absent if neither is possible.
   */
  check?(): Promise<GatewayCheck>;
  /** Returns the open HTTP/2 connections and streams. Absent if the sender has none. */
  load?(): TransportLoad;
  close(): Promise<void>;
}

/** Result of a check: what the gateway gave, or why the check failed. */
export type GatewayCheck =
  | { ok: true; gave: 'token' | 'connection' }
  | { ok: false; attempt: AttemptResult };

/**
 * Stores messages of the device channel before devices are notified. The worker thread provides it.
 */
export interface MessageStore {
  enqueue(message: {
    pushId: number;
    content: JsonObject;
    expiresAtMs: number;
    recipients: Recipient[];
  }): Promise<void>;
  /**
   * Deletes the messages of a push that wait for these recipients. Resolves to the installations
   * (`Recipient.id`) whose message was deleted.
   */
  deleteWaiting(push: { pushId: number; recipients: Recipient[] }): Promise<ReadonlySet<number>>;
}

export interface SenderContext {
  clock: Clock;
  messageStore: MessageStore;
  tokens: TokenStore;
  quota: DayQuota;
  /**
   * URL to which the gateway sends the receipts of this app. Its parameter is the `objectId` of the
   * push.
   */
  callbackUrl: string;
  onCall(call: GatewayCall): void;
  /** Reports an event of an HTTP/2 connection, for the metrics of the main thread. */
  onTransport?(fact: TransportEvent): void;
}

/**
 * Features of a gateway. Code outside the connector uses them instead of checking connector ids.
 */
export interface Capabilities {
  /** Can deliver a message to the app without showing a notification (`silent`). */
  passThrough: boolean;
  /** Accepts a badge number. */
  badge: boolean;
  /** Can replace an earlier message with the same id, which hides a repeat. */
  collapse: boolean;
}

export interface ConnectorLimits {
  recipientsPerRequest: number;
  bodyBytes: number;
  /**
   * Maximum length of title and text in Unicode code points. Absent if the gateway has no limit.
   */
  titleChars?: number;
  alertChars?: number;
}

/**
 * Rendered message, or the stored reason why the gateway cannot take it.
 *
 * - `outcome`: `dropped` if the gateway does not support such messages (for example `silent`);
 *   otherwise `failed`.
 * - `isMisfit`: all members are valid, but the message does not fit this gateway (too long, nothing
 *   to show). Other gateways may take it. If absent, a member is wrong.
 */
export type Rendering<P> =
  | { ok: true; payload: P }
  | { ok: false; error: string; outcome?: 'failed' | 'dropped'; isMisfit?: true };

/** Returns the error of a message that does not fit a gateway although its members are valid. */
export const misfit = (error: string): { ok: false; error: string; isMisfit: true } => ({
  ok: false,
  error,
  isMisfit: true,
});

/** Rate limit for one set of credentials, shared by all dispatchers. */
export interface Rate {
  perSecond: number;
  /** The unit that the gateway counts. */
  counts: 'recipients' | 'requests';
  /** Number of units that may be sent at once after a pause. */
  burst: number;
  /** Time in which the rate grows linearly from 0 after a pause; 0 means no ramp. */
  rampMs: number;
}

/** Limits of pushes that are marked as tests (protocol/push.md#test-pushes). */
export interface TestLimit {
  pushesPerDay: number;
  devicesPerPush: number;
}

/**
 * A push to more than `devices` devices fails with the stored reason `error`, and nothing is sent.
 */
export interface MassLimit {
  devices: number;
  error: string;
}

/** Report on credentials for `carillon doctor` and the admin API. Contains no secret. */
export interface CredentialReport {
  /** Kind of credentials: `token`, `certificate`, … */
  kind: string;
  /** Expiry time; null if the credentials do not contain one. */
  expiresAtMs: number | null;
  /** Problems that the operator must fix, as stored reasons. */
  problems: string[];
  /**
   * Reason to refuse the credentials when they are saved, because they can never work. Absent if
   * they are accepted.
   */
  refusal?: string;
}

/** Values of a device that decide which profile serves it. */
export interface ProfileCriteria {
  /** `deviceProfile` of the device; empty means the default profile. */
  deviceProfile: string;
  topic: string | null;
  teamId: string | null;
}

export interface NamedCredentials<C> {
  name: string;
  credentials: C;
}

/** Profile that serves a device, or the stored reason why no profile does. */
export type ProfileChoice = { ok: true; profile: string } | { ok: false; error: string };

export interface Connector<C = unknown, P = unknown> {
  id: ConnectorId;
  can: Capabilities;
  limits: ConnectorLimits;
  /** Field of an installation that contains its token for this gateway. */
  tokenField: 'deviceToken' | 'registrationId' | 'installationId' | 'subscription';
  /** Schema of a profile's credentials (protocol/admin-api.md#credentials-of-a-push-profile). */
  credentials: z.ZodType<C>;
  /**
   * Returns the credentials to store, if the service adds members of its own. `stored` contains the
   * credentials that they replace. Absent if the credentials are stored as sent.
   */
  complete?(sent: C, stored: C | undefined): C;
  /**
   * Returns the public keys that clients register with, the current key first. Absent if clients
   * need none.
   */
  publicKeys?(credentials: C): string[];
  /**
   * Renders the part of a message that all recipients share. Pure. Also called before a push is
   * accepted, as a check.
   */
  render(message: PushMessage, deviceType: string): Rendering<P>;
  /**
   * Returns the ids of a message that this connector sent, which a later message can carry to
   * replace it on the device (`PushMessage.replaces`). Null if the message has no such id. Pure. If
   * absent, the gateway replaces no message.
   */
  identityOf?(message: PushMessage, deviceType: string): JsonObject | null;
  /**
   * Returns whether the gateway can recall a message that it accepted for devices of this type
   * (`Sender.recall`). Pure. If absent, it cannot.
   */
  canRecall?(message: PushMessage, deviceType: string): boolean;
  /**
   * Returns the request body as JSON text, for a dry run. Pure. If absent, the payload is the body.
   */
  preview?(payload: P): string;
  /**
   * Chooses a profile of this connector. If absent, `deviceProfile` names the profile, or
   * `_default` is used (protocol/push.md#profiles).
   */
  choose?(
    profiles: NamedCredentials<C>[],
    criteria: ProfileCriteria,
    message: PushMessage,
  ): ProfileChoice;
  /** Returns the maximum number of devices per push with these credentials; null if unlimited. */
  massLimit?(credentials: C, message: PushMessage): MassLimit | null;
  /** Returns the rate of these credentials; absent or null if unlimited. */
  rate?(credentials: C): Rate | null;
  /**
   * Returns the limits of a message that is marked as a test; absent or null for other messages.
   */
  testLimit?(message: PushMessage): TestLimit | null;
  /**
   * Returns how the push changes the badge that the server stores for each device; absent or null
   * for no change.
   */
  badge?(message: PushMessage): 'Increment' | number | null;
  /**
   * Returns the error of members of a message class in a profile; null if the vendor has all of
   * them. `path` is the path of the members. Absent if the connector has no message classes.
   */
  classError?(members: JsonObject, path: string): string | null;
  /**
   * Returns the rich content that devices of this type do not show, of the given members. Absent if
   * they show all or hand it to the app.
   */
  notShown?(message: PushMessage, deviceType: string): readonly RichMember[];
  inspect(credentials: C, nowMs: number): CredentialReport;
  /**
   * Returns the manager of broadcast channels. Returns null if the credentials do not serve the
   * topic, or if they have several topics and none is requested. Absent if the gateway has no
   * broadcast channels.
   */
  channels?(
    credentials: C,
    options: { prod: 'dev' | 'prod'; topic: string | null; clock: Clock },
  ): ChannelManager | null;
  /**
   * Parses a call with receipts. `profiles` contains all credentials of the app for this connector,
   * to check a signature. Pure; never throws. Absent if the gateway sends no receipts.
   */
  receipts?(call: ReceiptCall, profiles: readonly C[]): ReceiptsResult;
  open(credentials: C, context: SenderContext): Sender;
}
