import type { Hint } from '../../shared/domain/reasons.ts';

/**
 * Result of one attempt for one recipient. Contains plain data only, because it crosses threads.
 * `reason` is a stored reason. `cause` is the error code of a failed connection (`ENOTFOUND`,
 * `CERT_HAS_EXPIRED`), if known. `isOfService` means that the result concerns one of several
 * services that a profile sends to, so the profile's circuit breaker does not count it.
 */
export type AttemptResult =
  /** The gateway accepted the message. `form` has the meaning described at `invalid_token`. */
  | { kind: 'sent'; messageId?: string; form?: string }
  /**
   * The gateway or this connector refuses the message permanently. `capped` means that a quota of
   * the gateway is used up.
   */
  | {
      kind: 'rejected';
      outcome: 'failed' | 'dropped' | 'expired' | 'capped';
      status: number;
      reason: string;
    }
  /**
   * The gateway says that exactly this token is invalid.
   *
   * - `invalidSinceMs`: time since when the token is invalid, if the gateway reports it.
   * - `isProof`: the gateway says that the token has ended, not only that it is invalid.
   * - `form`: the API or kind of token, if the connector has several. A success with another form
   *   says nothing about this token. `bothForms` needs a success with each form.
   * - `keepForMs`: a device that was saved within this time is kept.
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
   * The message was not accepted, but another attempt may succeed. `afterMs` is the minimum wait;
   * null if there is no minimum. The dispatcher waits at least its own backoff. If this process or
   * this connection caused the failure, `afterMs` is 0 and the first repeat is immediate. A
   * response of the gateway never results in 0.
   */
  | {
      kind: 'retry';
      status: number;
      reason: string;
      afterMs: number | null;
      cause?: string | undefined;
      isOfService?: true;
    }
  /**
   * The request was written but got no response, or a response that leaves open whether the gateway
   * took the message. The message may have been delivered. `afterMs` is the minimum wait before a
   * repeat.
   */
  | {
      kind: 'unknown';
      reason: string;
      isRepeatHidden: boolean;
      cause?: string | undefined;
      afterMs?: number;
      isOfService?: true;
    }
  /**
   * Credentials or configuration are wrong, so all recipients of the profile would get this result.
   * `hint` tells the operator what to fix.
   */
  | {
      kind: 'profile_error';
      status: number;
      reason: string;
      hint: Hint;
      cause?: string | undefined;
    };

/** `form` of a token that both APIs of a gateway refused. */
export const bothForms = 'v1+v3';

export type Report = (index: number, attempt: AttemptResult) => void;

/** One request to a gateway, for the metrics of the main thread. */
export interface GatewayCall {
  /** HTTP status; 0 without a response. */
  status: number;
  /** Stored reason from a bounded set. Never contains a token. */
  reason: string;
  seconds: number;
}

/**
 * Number of equal refusals after which the remaining recipients of a group are not sent to, if the
 * group has no success.
 */
export const maxEqualRefusals = 20;

/**
 * Recipients of a batch whose refusals are compared: the recipients of one topic, region or API.
 */
interface Group {
  counts: Map<string, number>;
  ending: AttemptResult | null;
}

/**
 * Counts equal refusals in a batch. If a gateway refuses the first devices for the same reason and
 * accepts no message, it would refuse the others too. The remaining devices then get the same
 * result without a request. Invalid tokens and refusals that concern a single device do not count.
 */
export class EqualRefusals {
  readonly #groups = new Map<string, Group>();
  /** Groups in which a message was accepted, in any batch of the push. */
  readonly #successes: Set<string>;

  constructor(successes: Set<string> = new Set()) {
    this.#successes = successes;
  }

  recordSent(group: string): void {
    this.#successes.add(group);
  }

  /** True if a message was accepted for a recipient of the group. */
  hasSuccess(group: string): boolean {
    return this.#successes.has(group);
  }

  /**
   * Counts a refusal. Returns the result for the remaining recipients of the group; null if they
   * may still succeed.
   */
  recordRefusal(group: string, attempt: AttemptResult): AttemptResult | null {
    if (attempt.kind !== 'rejected' || this.#successes.has(group)) return null;
    const existing = this.#groups.get(group) ?? { counts: new Map<string, number>(), ending: null };
    this.#groups.set(group, existing);
    const key = `${attempt.status} ${attempt.reason}`;
    const count = (existing.counts.get(key) ?? 0) + 1;
    existing.counts.set(key, count);
    if (count >= maxEqualRefusals) existing.ending ??= attempt;
    return existing.ending;
  }

  /**
   * Returns the result for the remaining recipients of a group; null if they may still succeed. A
   * success may come after the refusals, also in the same response.
   */
  endingOf(group: string): AttemptResult | null {
    return this.hasSuccess(group) ? null : (this.#groups.get(group)?.ending ?? null);
  }
}
