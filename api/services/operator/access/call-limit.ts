import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { TtlCache } from '../../../../shared/ttl-cache.ts';

const windowMs = 60_000;
/** Maximum number of counts in memory. There are never that many tokens. */
const maxCounts = 10_000;

/**
 * Limits of one token and its sessions within a minute (protocol/admin-api.md#limits-of-a-token):
 * all calls, audit records (which are kept for a year), and logins including login links. A person
 * with ten console pages makes some hundred calls per minute.
 */
export const callLimits = { calls: 3000, changes: 600, logins: 60 } as const;

type Counted = keyof typeof callLimits;

const codes = { calls: 'tokenCalls', changes: 'tokenChanges', logins: 'tokenLogins' } as const;

/** Limits the calls of each token, so that one token cannot overload a process or the audit. */
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
   * Counts a call of a token as `weight` calls. A null token is CARILLON_ADMIN_TOKEN, which has no
   * limit, because its holder could change any limit. Throws error 429 with the seconds left.
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

/**
 * Maximum number of wrong tokens from one IP address within a window. Further wrong tokens get 429.
 */
const maxFailedAttempts = 10;
const attemptsWindowMs = 60_000;
/** Maximum number of IP addresses in memory. A new address replaces the oldest. */
const defaultMaxAddresses = 10_000;

interface FailedAttempts {
  count: number;
  endsAtMs: number;
}

/**
 * Limits wrong tokens and codes (protocol/admin-api.md#errors). They get 401. After ten within a
 * minute from one network, they get 429 for the rest of the minute. A correct token is always
 * accepted, even from such a network: callers behind one proxy share an address, and a stranger
 * among them must not lock out the operators. Tokens are long and random, so guesses are no danger.
 * The limit reveals broken scripts and limits the log. Each process counts for itself.
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
   * Counts a wrong token. Returns `refusal`, or 429 with the seconds left if there were too many.
   * Both happen in one step, so that concurrent calls share the limit.
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
    const existing = this.#failures.get(origin);
    if (existing && existing.endsAtMs > nowMs) return existing;
    this.#failures.delete(origin);
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined && this.#failures.size >= this.#maxAddresses)
      this.#failures.delete(oldest);
    const failures = { count: 0, endsAtMs: nowMs + attemptsWindowMs };
    this.#failures.set(origin, failures);
    return failures;
  }
}
