import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';

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
    if (oldest !== undefined && this.#failures.size >= this.#maxAddresses) this.#failures.delete(oldest);
    const failures = { count: 0, endsAtMs: nowMs + attemptsWindowMs };
    this.#failures.set(origin, failures);
    return failures;
  }
}
