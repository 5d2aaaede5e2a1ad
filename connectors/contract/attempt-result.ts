import type { Hint } from '../../shared/domain/reasons.ts';

/**
 * Result of one attempt for one recipient: plain data, since it crosses threads. `reason` is a
 * stored reason. `cause` is the code of a connection that failed (`ENOTFOUND`, `CERT_HAS_EXPIRED`),
 * if known.
 */
export type AttemptResult =
  /** The gateway accepted the message. `form`: as of `invalid_token`. */
  | { kind: 'sent'; messageId?: string; form?: string }
  /**
   * The gateway or this connector refuses it for good; `capped`: a quota of the gateway is used up.
   */
  | {
      kind: 'rejected';
      outcome: 'failed' | 'dropped' | 'expired' | 'capped';
      status: number;
      reason: string;
    }
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
  | {
      kind: 'retry';
      status: number;
      reason: string;
      afterMs: number | null;
      cause?: string | undefined;
    }
  /** The request was written and got no answer: the message may have been delivered. */
  | { kind: 'unknown'; reason: string; isRepeatHidden: boolean; cause?: string | undefined }
  /**
   * Credentials or configuration are wrong: all recipients of the profile would end alike. `hint`
   * tells the operator what to fix.
   */
  | {
      kind: 'profile_error';
      status: number;
      reason: string;
      hint: Hint;
      cause?: string | undefined;
    };

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

/** Equal refusals without a success after which the gateway is not asked for the rest. */
export const maxEqualRefusals = 20;

/** Recipients of a batch whose refusals are compared: those of one topic, one region or one API. */
interface Group {
  counts: Map<string, number>;
  ending: AttemptResult | null;
}

/**
 * Equal refusals of one batch. If a gateway refuses the first devices of a batch for the same
 * reason and takes the message for none, it will refuse the rest: the rest gets the result of these
 * devices without a request. Answers that call a token invalid do not count, nor do refusals that
 * concern a single device.
 */
export class EqualRefusals {
  readonly #groups = new Map<string, Group>();
  /** Groups with a success, in any batch of the push. */
  readonly #successes: Set<string>;

  constructor(successes: Set<string> = new Set()) {
    this.#successes = successes;
  }

  noteSent(group: string): void {
    this.#successes.add(group);
  }

  /** Whether the message was taken for a recipient of the group. */
  hasSuccess(group: string): boolean {
    return this.#successes.has(group);
  }

  /**
   * Counts a refusal. Returns the result of the rest of the group, null as long as the rest may
   * succeed.
   */
  note(group: string, attempt: AttemptResult): AttemptResult | null {
    if (attempt.kind !== 'rejected' || this.#successes.has(group)) return null;
    const known = this.#groups.get(group) ?? { counts: new Map<string, number>(), ending: null };
    this.#groups.set(group, known);
    const key = `${attempt.status} ${attempt.reason}`;
    const count = (known.counts.get(key) ?? 0) + 1;
    known.counts.set(key, count);
    if (count >= maxEqualRefusals) known.ending ??= attempt;
    return known.ending;
  }

  /** Returns the result of the rest of a group, null as long as the rest may succeed. */
  endingOf(group: string): AttemptResult | null {
    return this.#groups.get(group)?.ending ?? null;
  }
}
