/**
 * What gateways tell afterwards: receipts that they send to `/callbacks/:connector/:appId/:secret`. A connector reads
 * its gateway's form of them; the route counts them and retires dead tokens.
 */
import type { JsonObject } from '../../shared/domain/json.ts';

/** A call as it came in; who made it is known by the secret in its address only. */
export interface ReceiptCall {
  /** Lower-case names. */
  headers: Readonly<Record<string, string>>;
  /** The body as it was sent, before any decoding: signatures are over these bytes. */
  body: string;
}

export type ReceiptEvent =
  /** The message reached the device. */
  | 'delivered'
  | 'clicked'
  /** The gateway says of this very token that it is dead. */
  | 'dead_token'
  /** The user wants no notifications now, or was long away: the token stays. */
  | 'suspended'
  /** Taken by the gateway, but it will not be shown: a quota, a filter, its end. */
  | 'undelivered';

/** What a gateway tells of one device and one message. */
export interface Receipt {
  /** Public id of the push, as it was handed over with the message; null where the gateway gives none back. */
  objectId: string | null;
  /** The gateway's own id of the message, as `Attempt` `sent` told it. */
  messageId: string | null;
  /** Registration id. */
  deviceToken: string;
  event: ReceiptEvent;
  /** What the gateway wrote for it, a number as text. */
  code: string;
  /** When it happened, in epoch milliseconds, where the gateway tells. */
  atMs: number | null;
  /** `dead_token` on the gateway's advice, not its word: to be believed when another message meets the same. */
  needsConfirmation?: true;
}

/** The receipts of one call, and what the gateway wants to hear; or why they are not taken. */
export type ReceiptsResult =
  | { ok: true; receipts: Receipt[]; reply?: JsonObject }
  | { ok: false; status: 400 | 401; error: string };
