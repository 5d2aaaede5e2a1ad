import type { Refusal } from '../../../shared/domain/errors/errors.ts';
import type { Json } from '../../../shared/domain/json.ts';

/** Call inside a batch. It has the keys, the session and the address of the batch call. */
export interface InnerCall {
  method: string;
  /** Path without the query. */
  path: string;
  query: Record<string, string>;
  body: Json | undefined;
}

/**
 * Result of a call inside a batch. A refusal is returned and not thrown, so that other calls
 * continue.
 */
export type InnerOutcome = { ok: true; text: string } | InnerFailure;

/** Refusal by Carillon, or error that a function host returned. */
export type InnerFailure =
  | { ok: false; refusal: Refusal }
  | { ok: false; refusal: undefined; error: { code: number; error: string } };

export const failed = (refusal: Refusal): InnerFailure => ({ ok: false, refusal });

/** Memory that the reply of a call may take. */
export interface ReplyAllowance {
  /** Grows the allowance to `bytes`. Returns false if they exceed the memory. */
  growTo(bytes: number): boolean;
}

/**
 * Runs a call inside a batch, with the same admission, rate limits and checks as a single call
 * (api/app.ts).
 */
export type RunInnerCall = (call: InnerCall, room: ReplyAllowance) => Promise<InnerOutcome>;

/** Runs a call within the time and memory of its batch. */
export type RunBudgeted = (call: InnerCall) => Promise<InnerOutcome>;
