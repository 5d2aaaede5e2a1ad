/**
 * Delivery receipts that gateways send to `/callbacks/:connector/:appId/:secret`. A connector parses its gateway's format;
 * the route counts them and retires dead tokens.
 */
import type { JsonObject } from '../../shared/domain/json.ts';

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

/** Receipts of one call and the reply that the gateway expects, or the reason why the call is refused. */
export type ReceiptsResult =
  | { ok: true; receipts: Receipt[]; reply?: JsonObject }
  | { ok: false; status: 400 | 401; error: string };
