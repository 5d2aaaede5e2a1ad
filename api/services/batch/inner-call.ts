import type { Refusal } from '../../../shared/domain/errors/errors.ts';
import type { Json } from '../../../shared/domain/json.ts';

/** Call inside a batch: it has the keys, the session and the address of the outer call. */
export interface InnerCall {
  method: string;
  /** Without a query. */
  path: string;
  query: Record<string, string>;
  body: Json | undefined;
}

/** Result of an inner call. A refusal is data, so that a failed call does not end the others. */
export type InnerOutcome = { ok: true; text: string } | InnerFailure;

/** Refusal of this service, or the error that a function host returned. */
export type InnerFailure =
  | { ok: false; refusal: Refusal }
  | { ok: false; refusal: undefined; error: { code: number; error: string } };

export const failed = (refusal: Refusal): InnerFailure => ({ ok: false, refusal });

/** Memory that the reply of a call may take. */
export interface ReplyAllowance {
  /** Grows the allowance to `bytes`; false when they exceed the memory. */
  growTo(bytes: number): boolean;
}

/** Runs an inner call with the same admission, rate and checks as an outer one (api/app.ts). */
export type RunInnerCall = (call: InnerCall, room: ReplyAllowance) => Promise<InnerOutcome>;

/** Runs an inner call within the time and memory of its batch. */
export type RunBudgeted = (call: InnerCall) => Promise<InnerOutcome>;
