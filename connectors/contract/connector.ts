/**
 * The contract of a connector: how one gateway is spoken to (develop/architecture.md#connectors).
 *
 * A connector takes recipients and gives back one outcome per recipient, as data. It tries once, never
 * throws for an answer, knows no queue and no database; time and retries belong to the dispatcher.
 */
import type { z } from 'zod';
import type { Clock } from '../../shared/clock.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import type { PushOrder } from '../../shared/domain/pushes/push.ts';
import type { TransportEvent, TransportLoad } from '../http2/transport.ts';
import type { CredentialGuide } from './guide.ts';
import type { ReceiptCall, ReceiptsResult } from './receipt.ts';
import type { DayQuota, TokenStore } from './shared-state.ts';

export type { Receipt, ReceiptCall, ReceiptEvent, ReceiptsResult as ReceiptReading } from './receipt.ts';
export type { DayQuota, StoredToken, TokenStore } from './shared-state.ts';

/** What all recipients of one push share. Built once per push; per-device-type objects are not merged yet. */
export interface PushMessage {
  /** Public id of the push record, 16 alphanumerics. */
  objectId: string;
  /** `data` as the caller sent it. */
  data: JsonObject;
  prod: 'dev' | 'prod';
  /** Push body `topic` and `pgw_team_id`: used where the installation stored none. */
  topic?: string;
  teamId?: string;
  /** Android notification channel (`_notificationChannel` or, for lists of devices, `channel`). */
  notificationChannel?: string;
  /** Channels the push was addressed to. */
  channels?: string[];
  /** When it stops being of use, in epoch milliseconds. */
  expiresAtMs: number;
  createdAtMs: number;
}

/** The part of a push record that a message is made of. */
export interface MessageSource {
  objectId: string;
  pushOrder: PushOrder;
  expiresAt: Date;
  createdAt: Date;
}

/** What the gateways are told of a push. */
export function toPushMessage({ objectId, pushOrder, expiresAt, createdAt }: MessageSource): PushMessage {
  const channels = pushOrder.target.kind === 'query' ? pushOrder.target.channels : null;
  return {
    objectId,
    data: pushOrder.data,
    prod: pushOrder.prod,
    ...(pushOrder.topic === null ? {} : { topic: pushOrder.topic }),
    ...(pushOrder.teamId === null ? {} : { teamId: pushOrder.teamId }),
    ...(pushOrder.notificationChannel === null ? {} : { notificationChannel: pushOrder.notificationChannel }),
    ...(channels === null ? {} : { channels }),
    expiresAtMs: expiresAt.getTime(),
    createdAtMs: createdAt.getTime(),
  };
}

/** One device of a batch, loaded by the worker thread that sends to it. */
export interface Recipient {
  /** Place in the batch: what `report` is called with. */
  index: number;
  /** Internal id of the installation. */
  id: string;
  /** Where it goes: device token, registration id or installation id, by connector. */
  deviceToken: string;
  deviceType: string;
  /** `vendor` as the installation spells it: `mi-intl` is of another region than `mi`. */
  vendor?: string | null;
  topic: string | null;
  teamId: string | null;
  /** Value to send when `badge` is `Increment`; counted once per push before the first attempt. */
  badge: number | null;
  /** When the installation was last saved: a report older than that does not kill its token. */
  updatedAtMs: number;
}

/**
 * What became of one recipient after one attempt. Plain data: it crosses threads. `cause`: the code of a connection
 * that could not be made or broke (`ENOTFOUND`, `CERT_HAS_EXPIRED`), where it is known.
 */
export type AttemptResult =
  /** The gateway took it. */
  | { kind: 'sent'; messageId?: string }
  /** The gateway (or this connector) refused it for good; `capped`: because a quota of the gateway is used up. */
  | { kind: 'rejected'; outcome: 'failed' | 'dropped' | 'expired' | 'capped'; status: number; reason: string }
  /** The gateway says of this very token that it is dead (since when, if it told). */
  | { kind: 'invalid_token'; status: number; reason: string; deadSinceMs?: number }
  /** Not taken, worth another try after `afterMs` (null: the dispatcher's own back-off). */
  | { kind: 'retry'; status: number; reason: string; afterMs: number | null; cause?: string | undefined }
  /** The request was written and no answer came: it may have been delivered. */
  | { kind: 'unknown'; reason: string; isRepeatHidden: boolean; cause?: string | undefined }
  /** Credentials or configuration are wrong: every recipient of this profile would end the same. */
  | { kind: 'profile_error'; status: number; reason: string; hint: string; cause?: string | undefined };

export type Report = (index: number, attempt: AttemptResult) => void;

/** Facts about one request to a gateway, for the metrics of the main thread. */
export interface GatewayCall {
  /** HTTP status, 0 when there was no answer. */
  status: number;
  /** Short reason from a bounded set, never a token. */
  reason: string;
  seconds: number;
}

export interface SendRequest {
  /** Internal id of the push, for the message store; gateways get `message.objectId`. */
  pushId: number;
  message: PushMessage;
  recipients: Recipient[];
  report: Report;
  /** Aborts what has not left yet; what is in flight is finished or reported `unknown`. */
  signal: AbortSignal;
}

/** A long-lived door to one gateway with one set of credentials; owns its connections. */
export interface Sender {
  /** Resolves when every recipient was reported exactly once. Rejects only on a defect of ours. */
  send(request: SendRequest): Promise<void>;
  /** What it holds at the moment, where it holds HTTP/2 connections. */
  load?(): TransportLoad;
  close(): Promise<void>;
}

/** Stores messages for our own channel before a device is woken; the worker hands it in. */
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
  /** Where this app's receipts of this connector are taken; the callback parameter is the push's `pushId`. */
  callbackUrl: string;
  onCall(call: GatewayCall): void;
  /** Hears what happens to HTTP/2 connections, for the metrics of the main thread. */
  onTransport?(fact: TransportEvent): void;
}

/** What a gateway can, as data: nobody outside asks for its name. */
export interface Capabilities {
  /** Message handed to the app without a notification (`silent`). */
  passThrough: boolean;
  /** Takes a badge number. */
  badge: boolean;
  /** Replaces an earlier message with the same id, so that a repeat is hidden. */
  collapse: boolean;
}

export interface ConnectorLimits {
  recipientsPerRequest: number;
  bodyBytes: number;
  /** Longest title and text in Unicode code points, where the gateway names a limit. */
  titleChars?: number;
  alertChars?: number;
}

/**
 * The rendered message, or why it cannot be sent this way. `dropped`: the gateway has nothing that such a message
 * could be sent as (`silent` where it is not supported); absent: `failed`.
 */
export type Rendering<P> =
  | { ok: true; payload: P }
  | { ok: false; error: string; outcome?: 'failed' | 'dropped' };

/** How fast a gateway may be sent to by all dispatchers together, with one set of credentials. */
export interface Rate {
  perSecond: number;
  /** What the gateway counts: devices, or requests whatever their number of devices. */
  counts: 'recipients' | 'requests';
  /** So many may leave at once, after a pause. */
  burst: number;
  /** After a pause the rate grows evenly from nothing in this time; 0: it is there at once. */
  rampMs: number;
}

/** Limits on pushes that are marked as tests (protocol/push.md#test-pushes). */
export interface TestLimit {
  pushesPerDay: number;
  devicesPerPush: number;
}

/** A push to more devices than this ends with the sentence and sends nothing. */
export interface MassLimit {
  devices: number;
  error: string;
}

/** What `carillon doctor` and the admin API want to know of credentials without seeing them. */
export interface CredentialReport {
  /** `token`, `certificate`, … */
  kind: string;
  /** When they stop working, if that is written in them. */
  expiresAtMs: number | null;
  /** Problems an operator can mend, as sentences; empty when all is well. */
  problems: string[];
}

/** What of a device decides which profile serves it. */
export interface RouteTraits {
  /** The installation's `deviceProfile`; empty means the nameless profile. */
  deviceProfile: string;
  topic: string | null;
  teamId: string | null;
}

export interface NamedCredentials<C> {
  name: string;
  credentials: C;
}

/** The profile that serves a device, or a sentence that says why none does. */
export type ProfileChoice = { ok: true; profile: string } | { ok: false; error: string };

export interface Connector<C = unknown, P = unknown> {
  id: ConnectorId;
  can: Capabilities;
  limits: ConnectorLimits;
  /** Which member of an installation it is addressed by. */
  tokenField: 'deviceToken' | 'registrationId' | 'installationId';
  /** Shape of a profile's credentials (protocol/admin-api.md#credentials-of-a-push-profile). */
  credentials: z.ZodType<C>;
  /** What people need to know of these credentials; absent: the connector takes none. */
  guide?: CredentialGuide;
  /** Renders the shared part of a message. Pure; also used before a push is accepted. */
  render(message: PushMessage, deviceType: string): Rendering<P>;
  /** The body as the gateway gets it, JSON text; absent: the payload is that body. Pure; for a dry run. */
  preview?(payload: P): string;
  /**
   * Chooses among an app's profiles of this connector. Absent: the profile named by `deviceProfile`, or
   * `_default` (protocol/push.md#profiles).
   */
  choose?(profiles: NamedCredentials<C>[], traits: RouteTraits, message: PushMessage): ProfileChoice;
  /** The most devices of one push that these credentials serve, and the sentence beyond; null: any number. */
  massLimit?(credentials: C, message: PushMessage): MassLimit | null;
  /** How fast these credentials may send; absent or null: as fast as it goes. */
  rate?(credentials: C): Rate | null;
  /** The limits on this message when it is marked as a test; absent or null: it is none. */
  testLimit?(message: PushMessage): TestLimit | null;
  /** What the message does to the badge that the server keeps for each device; absent or null: nothing. */
  badge?(message: PushMessage): 'Increment' | number | null;
  inspect(credentials: C, nowMs: number): CredentialReport;
  /**
   * Reads a call with receipts; absent: the gateway sends none. `profiles`: all credentials that the app has for this
   * connector, for the check of a signature. Pure; never throws, whatever came.
   */
  receipts?(call: ReceiptCall, profiles: readonly C[]): ReceiptsResult;
  open(credentials: C, context: SenderContext): Sender;
}
