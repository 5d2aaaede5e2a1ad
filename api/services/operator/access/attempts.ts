import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';

/** Wrong tokens of one IP address within a window, after which its calls are refused. */
const maxFailedAttempts = 10;
const windowMs = 60_000;
/** IP addresses that are counted; a further one replaces the oldest. */
const defaultMaxAddresses = 10_000;

interface FailedAttempts {
  count: number;
  endsAtMs: number;
}

/**
 * Limits wrong tokens and codes (protocol/admin-api.md#errors).
 *
 * After ten within a minute an IP address (of IPv6 a /64, which the caller computes) gets 429 for the rest of that
 * minute, also with the right token, so that guessing cannot go on. Each process counts for itself. Callers that share
 * an address share the count, so an instance behind a proxy needs `TRUSTED_PROXIES`.
 */
export class AttemptLimit {
  readonly #clock: Clock;
  readonly #maxAddresses: number;
  readonly #failures = new Map<string, FailedAttempts>();

  constructor(clock: Clock, maxAddresses = defaultMaxAddresses) {
    this.#clock = clock;
    this.#maxAddresses = maxAddresses;
  }

  /** Throws 429 with the seconds left when the address is out of attempts. */
  check(origin: string): void {
    const known = this.#failures.get(origin);
    if (!known) return;
    const leftMs = known.endsAtMs - this.#clock.monotonicMs();
    if (leftMs <= 0) this.#failures.delete(origin);
    else if (known.count >= maxFailedAttempts)
      throw new Refusal('tooManyRequests', {
        text: 'Too many wrong tokens from this address.',
        retryAfterSeconds: Math.ceil(leftMs / 1000),
      });
  }

  /** Counts a wrong token. */
  fail(origin: string): void {
    const known = this.#failures.get(origin);
    if (known) {
      known.count += 1;
      return;
    }
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined && this.#failures.size >= this.#maxAddresses) this.#failures.delete(oldest);
    this.#failures.set(origin, { count: 1, endsAtMs: this.#clock.monotonicMs() + windowMs });
  }
}
