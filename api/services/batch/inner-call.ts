import type { Refusal } from '../../../shared/domain/errors/errors.ts';
import type { Json } from '../../../shared/domain/json.ts';

/** A call inside another one: it has the keys, the session and the address of the outer one. */
export interface InnerCall {
  method: string;
  /** Without a query. */
  path: string;
  query: Record<string, string>;
  /** Undefined where there is none. */
  body: Json | undefined;
}

/** What became of it. A refusal is data: one call that fails ends no other. */
export type InnerOutcome = { ok: true; text: string } | InnerFailure;

/** Our own refusal, or what a function host said in its place. */
export type InnerFailure =
  | { ok: false; refusal: Refusal }
  | { ok: false; refusal: undefined; error: { code: number; error: string } };

export const failed = (refusal: Refusal): InnerFailure => ({ ok: false, refusal });

/** How much memory the reply of a call may take. */
export interface ReplyAllowance {
  /** Says that the reply has `bytes` so far; false where there is no room for them. */
  growTo(bytes: number): boolean;
}

/** Answers a call as if it had come by itself: admission, rate, checks and all (api/app.ts). */
export type RunInnerCall = (call: InnerCall, room: ReplyAllowance) => Promise<InnerOutcome>;

/** The same, with the time and memory that a batch has for it. */
export type RunBudgeted = (call: InnerCall) => Promise<InnerOutcome>;
