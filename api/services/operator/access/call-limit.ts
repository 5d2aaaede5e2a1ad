import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { TtlCache } from '../../../../shared/ttl-cache.ts';

const windowMs = 60_000;
/** Counts that are remembered: more than the tokens that may exist. */
const maxCounts = 10_000;

/**
 * Calls of one token within a minute, its sessions included
 * (protocol/admin-api.md#limits-of-a-token): all calls, entries in the audit, which are kept for a
 * year, and logins with login links. A person with ten pages of the console makes some hundred
 * calls.
 */
export const callLimits = { calls: 3000, changes: 600, logins: 60 } as const;

type Counted = keyof typeof callLimits;

const codes = { calls: 'tokenCalls', changes: 'tokenChanges', logins: 'tokenLogins' } as const;

/** Limits the calls of each token, so that one token cannot keep a process or the audit busy. */
export class CallLimit {
  readonly #clock: Clock;
  readonly #limits: Readonly<Record<Counted, number>>;
  readonly #counts: TtlCache<string, { count: number; endsAtMs: number }>;

  constructor(clock: Clock, limits: Partial<Record<Counted, number>> = {}) {
    this.#clock = clock;
    this.#limits = { ...callLimits, ...limits };
    this.#counts = new TtlCache({ clock, maxAgeMs: windowMs, maxEntries: maxCounts });
  }

  /**
   * Counts a call of a token as `weight` calls; null is CARILLON_ADMIN_TOKEN, which has no limit:
   * its holder could lift any. Throws 429 with the seconds left.
   */
  take(tokenId: number | null, kind: Counted, weight = 1): void {
    if (tokenId === null) return;
    const key = `${kind} ${tokenId}`;
    const nowMs = this.#clock.monotonicMs();
    const window = this.#counts.getOrMake(key, () => ({ count: 0, endsAtMs: nowMs + windowMs }));
    if (window.count >= this.#limits[kind])
      throw new Refusal('tooManyRequests', {
        text: detail(codes[kind], { n: this.#limits[kind] }),
        retryAfterSeconds: Math.ceil((window.endsAtMs - nowMs) / 1000),
      });
    window.count += weight;
  }
}

/** Wrong tokens of one IP address within a window, after which further ones are answered 429. */
const maxFailedAttempts = 10;
const attemptsWindowMs = 60_000;
/** IP addresses that are counted; a further one replaces the oldest. */
const defaultMaxAddresses = 10_000;

interface FailedAttempts {
  count: number;
  endsAtMs: number;
}

/**
 * Answers wrong tokens and codes (protocol/admin-api.md#errors): 401, and after ten within a minute
 * from one IP address (of IPv6 a /64, which the caller computes) 429 for the rest of that minute. A
 * right token is always accepted, also from such an address: callers behind one proxy share an
 * address, and a stranger among them must not lock the operators out. Tokens are long and random,
 * so that the number of guesses does not matter; the limit shows a broken script its mistake, and
 * bounds the log. Each process counts for itself.
 */
export class AttemptLimit {
  readonly #clock: Clock;
  readonly #maxAddresses: number;
  readonly #failures = new Map<string, FailedAttempts>();

  constructor(clock: Clock, maxAddresses = defaultMaxAddresses) {
    this.#clock = clock;
    this.#maxAddresses = maxAddresses;
  }

  /**
   * Counts a wrong token and returns its refusal: `refusal`, or 429 with the seconds left after too
   * many. Counting and answering are one step, so that concurrent calls share the limit.
   */
  fail(origin: string, refusal: Refusal): Refusal {
    const nowMs = this.#clock.monotonicMs();
    const failures = this.#failuresOf(origin, nowMs);
    failures.count += 1;
    if (failures.count <= maxFailedAttempts) return refusal;
    return new Refusal('tooManyRequests', {
      text: 'Too many wrong tokens from this address.',
      retryAfterSeconds: Math.ceil((failures.endsAtMs - nowMs) / 1000),
    });
  }

  #failuresOf(origin: string, nowMs: number): FailedAttempts {
    const known = this.#failures.get(origin);
    if (known && known.endsAtMs > nowMs) return known;
    this.#failures.delete(origin);
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined && this.#failures.size >= this.#maxAddresses)
      this.#failures.delete(oldest);
    const failures = { count: 0, endsAtMs: nowMs + attemptsWindowMs };
    this.#failures.set(origin, failures);
    return failures;
  }
}
