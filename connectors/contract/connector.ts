/**
 * The contract of a connector, which sends to one gateway (develop/architecture.md#connectors).
 *
 * A connector takes recipients and reports one result for each, as data. It tries once, never
 * throws for a response, and knows neither queue nor database; time and retries belong to the
 * dispatcher.
 */

import type { z } from 'zod';
import type { Clock } from '../../shared/clock.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import { originalTarget, type PushOrder } from '../../shared/domain/pushes/push.ts';
import type { Values } from '../../shared/domain/pushes/variables.ts';
import type { TransportEvent, TransportLoad } from '../http2/transport.ts';
import type { AttemptResult, EqualRefusals, GatewayCall, Report } from './attempt-result.ts';

/**
 * Parts of a push that all recipients share. Built once per push; objects for single device types
 * are not merged yet.
 */
export interface PushMessage {
  /** Public id of the push record, 16 alphanumerics. */
  objectId: string;
  /** `data` as the caller sent it. */
  data: JsonObject;
  prod: 'dev' | 'prod';
  /** `topic` and `pgw_team_id` of the push body, for installations without their own. */
  topic?: string;
  teamId?: string;
  /** Android notification channel (`_notificationChannel` or, for lists of devices, `channel`). */
  notificationChannel?: string;
  /** Channels the push was addressed to. */
  channels?: string[];
  /** Epoch milliseconds. */
  expiresAtMs: number;
  createdAtMs: number;
}

/** Fields of a push record that make up its message. */
export interface MessageSource {
  objectId: string;
  pushOrder: PushOrder;
  expiresAt: Date;
  createdAt: Date;
}

/** Builds the message of a push. */
export function toPushMessage({
  objectId,
  pushOrder,
  expiresAt,
  createdAt,
}: MessageSource): PushMessage {
  const target = originalTarget(pushOrder);
  const channels = target.kind === 'query' ? target.channels : null;
  return {
    objectId,
    data: pushOrder.data,
    prod: pushOrder.prod,
    ...(pushOrder.topic === null ? {} : { topic: pushOrder.topic }),
    ...(pushOrder.teamId === null ? {} : { teamId: pushOrder.teamId }),
    ...(pushOrder.notificationChannel === null
      ? {}
      : { notificationChannel: pushOrder.notificationChannel }),
    ...(channels === null ? {} : { channels }),
    expiresAtMs: expiresAt.getTime(),
    createdAtMs: createdAt.getTime(),
  };
}

/** One device of a batch, loaded by the worker thread that sends to it. */
export interface Recipient {
  /** Place in the batch, the argument of `report`. */
  index: number;
  /** Internal id of the installation. */
  id: string;
  /** Device token, registration id or installation id, by connector (`tokenField`). */
  deviceToken: string;
  deviceType: string;
  /** `vendor` in the installation's spelling: `mi` and `mi-intl` are different regions. */
  vendor?: string | null;
  topic: string | null;
  teamId: string | null;
  /** Value to send when `badge` is `Increment`; counted once per push before the first attempt. */
  badge: number | null;
}

// Delivery receipts that gateways send to `/callbacks/:connector/:appId/:secret`. A connector
// parses its gateway's format; the route counts them and retires dead tokens.

/** Incoming call; only the secret in its URL identifies the caller. */
export interface ReceiptCall {
  /** Lower-case names. */
  headers: Readonly<Record<string, string>>;
  /** Body before any decoding, the input of signatures. */
  body: string;
  /** When it arrived, in epoch milliseconds; undefined for a kept call of a version before that. */
  receivedAtMs?: number | undefined;
}

export type ReceiptEvent =
  /** The message reached the device. */
  | 'delivered'
  | 'clicked'
  /** The gateway says that this very token is invalid. */
  | 'dead_token'
  /** The user switched notifications off, or was away for long: the token stays. */
  | 'suspended'
  /** Accepted by the gateway but not shown: a quota, a filter, expiry. */
  | 'undelivered';

/** Report of a gateway on one device and one message. */
export interface Receipt {
  /** Public id of the push, as passed with the message; null if the gateway does not return it. */
  objectId: string | null;
  /** The gateway's id of the message, as in the `sent` result. */
  messageId: string | null;
  /** Registration id. */
  deviceToken: string;
  event: ReceiptEvent;
  /** The gateway's code, as text. */
  code: string;
  /** Time of the event in epoch milliseconds; null if unknown. */
  atMs: number | null;
  /** `dead_token` that may be wrong: it counts only if another message gets the same receipt. */
  needsConfirmation?: true;
}

/**
 * Receipts of one call and the reply that the gateway expects, or the reason why the call is
 * refused.
 */
export type ReceiptsResult =
  | { ok: true; receipts: Receipt[]; reply?: JsonObject }
  | { ok: false; status: 400 | 401; error: string };

// State that senders share across threads and dispatchers. The worker provides it: connectors know
// no database.

/** Access token, stored for all threads and dispatchers. */
export interface StoredToken {
  value: string;
  /** Epoch milliseconds. */
  madeAtMs: number;
  expiresAtMs: number;
  /** Fetched because the gateway had refused the previous token. */
  isReplacement: boolean;
}

/**
 * Stores the access tokens of one app and connector for all threads and dispatchers
 * (develop/architecture.md#access-tokens). `credential` is any text that differs between
 * credentials; only a digest of it is stored. Rejects if the database is unreachable.
 */
export interface TokenStore {
  read(credential: string): Promise<StoredToken | null>;
  /** Resolves to true if the caller alone may renew the token, for `leaseMs` at most. */
  claim(credential: string, leaseMs: number): Promise<boolean>;
  /** Stores a token and ends the claim. */
  keep(credential: string, token: StoredToken): Promise<void>;
  /** Ends the claim without a new token. */
  release(credential: string): Promise<void>;
}

/**
 * Day quotas of one profile: once the gateway says that the quota of a message class is used up, no
 * thread of any dispatcher sends in this class before midnight China time. Rejects if the database
 * is unreachable.
 */
export interface DayQuota {
  /** Resolves to the reason why this class is closed for today, or null. */
  closed(messageClass: string): Promise<string | null>;
  close(messageClass: string, reason: string): Promise<void>;
}

export type { AttemptResult, GatewayCall, Report } from './attempt-result.ts';

export interface SendRequest {
  /** Internal id of the push, for the message store; gateways get `message.objectId`. */
  pushId: number;
  message: PushMessage;
  recipients: Recipient[];
  report: Report;
  /** Stops requests that were not written yet; those in flight finish or are reported `unknown`. */
  signal: AbortSignal;
  /** Refusals that the sends of one batch share; absent: those of this send alone. */
  refusals?: EqualRefusals | undefined;
}

/** Recipients that get the same text of a push whose texts differ. */
export interface TextGroup {
  values: Values;
  recipients: Recipient[];
}

/** Texts of a push that differ by recipient. */
export interface PersonalTexts {
  /** Returns the `data` of the message with the values of one text. */
  dataOf(values: Values): JsonObject;
  /** Names of the values. */
  names: readonly string[];
  groups: readonly TextGroup[];
}

/** Long-lived client of one gateway with one set of credentials; owns its connections. */
export interface Sender {
  /** Resolves when every recipient was reported exactly once. Rejects only on a bug. */
  send(request: SendRequest): Promise<void>;
  /**
   * Sends texts that differ by recipient in one pass; absent: `send` sends them text by text.
   * Resolves and reports as `send` does.
   */
  sendTexts?(request: Omit<SendRequest, 'recipients'>, texts: PersonalTexts): Promise<void>;
  /**
   * Opens the connection that the first message of this kind needs, without sending a request;
   * absent: there is nothing to open before. Resolves when it is open or failed.
   */
  warmUp?(message: Pick<PushMessage, 'prod'>): Promise<void>;
  /**
   * Asks for a new access token, or opens a connection if the gateway has no token call; sends no
   * message. Absent if the gateway offers neither.
   */
  check?(): Promise<GatewayCheck>;
  /** Returns its open HTTP/2 connections and streams, if it has any. */
  load?(): TransportLoad;
  close(): Promise<void>;
}

/** Result of asking a gateway without sending: what it gave, or the reason why it gave nothing. */
export type GatewayCheck =
  | { ok: true; gave: 'token' | 'connection' }
  | { ok: false; attempt: AttemptResult };

/** Stores messages of the device channel before devices are notified; the worker provides it. */
export interface MessageStore {
  enqueue(message: {
    pushId: number;
    content: JsonObject;
    expiresAtMs: number;
    recipients: Recipient[];
  }): Promise<void>;
}

export interface SenderContext {
  clock: Clock;
  messageStore: MessageStore;
  tokens: TokenStore;
  quota: DayQuota;
  /**
   * URL for this app's receipts of this connector; the callback parameter is the push's `objectId`.
   */
  callbackUrl: string;
  onCall(call: GatewayCall): void;
  /** Reports events of HTTP/2 connections, for the metrics of the main thread. */
  onTransport?(fact: TransportEvent): void;
}

/** Features of a gateway as data, so that code outside the connector needs no check of its id. */
export interface Capabilities {
  /** Hands a message to the app without a notification (`silent`). */
  passThrough: boolean;
  /** Accepts a badge number. */
  badge: boolean;
  /** Replaces an earlier message with the same id, so that a repeat is hidden. */
  collapse: boolean;
}

export interface ConnectorLimits {
  recipientsPerRequest: number;
  bodyBytes: number;
  /** Longest title and text in Unicode code points, if the gateway has a limit. */
  titleChars?: number;
  alertChars?: number;
}

/**
 * Rendered message, or the stored reason why the gateway cannot take it. `dropped`: the gateway has
 * no equivalent of such a message (`silent` without support for it); absent: `failed`. `isMisfit`:
 * every member is right, but the message as a whole does not fit this gateway (too long, nothing to
 * show), so that others may take it; absent: a member is wrong.
 */
export type Rendering<P> =
  | { ok: true; payload: P }
  | { ok: false; error: string; outcome?: 'failed' | 'dropped'; isMisfit?: true };

/** Returns the error of a message that does not fit a gateway, though its members are right. */
export const misfit = (error: string): { ok: false; error: string; isMisfit: true } => ({
  ok: false,
  error,
  isMisfit: true,
});

/** Rate that all dispatchers together may send at with one set of credentials. */
export interface Rate {
  perSecond: number;
  /** Unit that the gateway counts. */
  counts: 'recipients' | 'requests';
  /** Units that may leave at once after a pause. */
  burst: number;
  /** Time in which the rate grows linearly from 0 after a pause; 0: no ramp. */
  rampMs: number;
}

/** Limits of pushes that are marked as tests (protocol/push.md#test-pushes). */
export interface TestLimit {
  pushesPerDay: number;
  devicesPerPush: number;
}

/** A push to more devices fails with `error`, a stored reason, and sends nothing. */
export interface MassLimit {
  devices: number;
  error: string;
}

/** Report on credentials for `carillon doctor` and the admin API; shows no secret. */
export interface CredentialReport {
  /** `token`, `certificate`, … */
  kind: string;
  /** When they expire, if they say so. */
  expiresAtMs: number | null;
  /** Problems that the operator must fix, as stored reasons. */
  problems: string[];
  /** Why such credentials are not stored: they can never work. Absent: they are. */
  refusal?: string;
}

/** Fields of a device that decide which profile serves it. */
export interface RouteTraits {
  /** `deviceProfile` of the installation; empty: the default profile. */
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
  /** Field of an installation that holds its token for this gateway. */
  tokenField: 'deviceToken' | 'registrationId' | 'installationId';
  /** Schema of a profile's credentials (protocol/admin-api.md#credentials-of-a-push-profile). */
  credentials: z.ZodType<C>;
  /**
   * Renders the part of a message that all recipients share. Pure; also called before a push is
   * accepted.
   */
  render(message: PushMessage, deviceType: string): Rendering<P>;
  /**
   * Returns the request body as JSON text, for a dry run; absent: the payload is the body. Pure.
   */
  preview?(payload: P): string;
  /**
   * Chooses among an app's profiles of this connector. Absent: the profile named by
   * `deviceProfile`, or `_default` (protocol/push.md#profiles).
   */
  choose?(
    profiles: NamedCredentials<C>[],
    traits: RouteTraits,
    message: PushMessage,
  ): ProfileChoice;
  /** Returns how many devices of one push these credentials serve; null: any number. */
  massLimit?(credentials: C, message: PushMessage): MassLimit | null;
  /** Returns the rate of these credentials; absent or null: unlimited. */
  rate?(credentials: C): Rate | null;
  /** Returns the limits of a message that is marked as a test; absent or null: not a test. */
  testLimit?(message: PushMessage): TestLimit | null;
  /**
   * Returns the change to the badge that the server keeps for each device; absent or null: no
   * change.
   */
  badge?(message: PushMessage): 'Increment' | number | null;
  inspect(credentials: C, nowMs: number): CredentialReport;
  /**
   * Parses a call with receipts; absent: the gateway sends none. `profiles`: all credentials of the
   * app for this connector, to check a signature. Pure; never throws.
   */
  receipts?(call: ReceiptCall, profiles: readonly C[]): ReceiptsResult;
  open(credentials: C, context: SenderContext): Sender;
}
