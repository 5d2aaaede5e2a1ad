import type { Hint } from '../../shared/domain/reasons.ts';
/**
 * Result of one attempt for one recipient: plain data, since it crosses threads. `reason` is a
 * stored reason. `cause` is the code of a connection that failed (`ENOTFOUND`, `CERT_HAS_EXPIRED`),
 * if known.
 */
export type AttemptResult =
  /** The gateway accepted the message. `form`: as of `invalid_token`. */
  | { kind: 'sent'; messageId?: string; form?: string }
  /** The gateway or this connector refuses it for good; `capped`: a quota of the gateway is used up. */
  | { kind: 'rejected'; outcome: 'failed' | 'dropped' | 'expired' | 'capped'; status: number; reason: string }
  /**
   * The gateway says that this very token is invalid, and perhaps since when. `isProof`: the answer
   * proves the end of the token; any other only calls it invalid. `form`: the API or the kind of
   * token, if the connector has several: a success of another form says nothing about this token.
   * `bothForms` needs a success of each. `keepForMs`: an installation that was saved within this
   * time is kept.
   */
  | {
      kind: 'invalid_token';
      status: number;
      reason: string;
      invalidSinceMs?: number;
      isProof?: true;
      form?: string;
      keepForMs?: number;
    }
  /**
   * Not accepted; another try is worthwhile. `afterMs`: the shortest wait, null without one; the
   * dispatcher never waits less than its back-off. 0: this process or this one connection is the
   * cause, so that the try costs nothing and the first repeat is immediate. An answer of the
   * gateway never gives 0.
   */
  | { kind: 'retry'; status: number; reason: string; afterMs: number | null; cause?: string | undefined }
  /** The request was written and got no answer: the message may have been delivered. */
  | { kind: 'unknown'; reason: string; isRepeatHidden: boolean; cause?: string | undefined }
  /**
   * Credentials or configuration are wrong: all recipients of the profile would end alike. `hint` tells the operator
   * what to fix.
   */
  | { kind: 'profile_error'; status: number; reason: string; hint: Hint; cause?: string | undefined };

/** Form of a token that both APIs of a gateway refused. */
export const bothForms = 'v1+v3';

export type Report = (index: number, attempt: AttemptResult) => void;

/** Facts about one request to a gateway, for the metrics of the main thread. */
export interface GatewayCall {
  /** HTTP status; 0 without an answer. */
  status: number;
  /** Stored reason from a bounded set, never a token. */
  reason: string;
  seconds: number;
}
