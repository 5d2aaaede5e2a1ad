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
