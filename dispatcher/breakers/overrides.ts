import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import { readBreakerOverrides } from '../../shared/db/tables/gateways/breakers.ts';
import { type BreakerKey, breakerIdOf, type OverrideState } from '../../shared/domain/breaker.ts';

/** An override applies on every dispatcher within one second (protocol/admin-api.md#changes); the query takes half of it. */
const maxAgeMs = 400;

export interface BreakerOverride {
  forced: OverrideState;
  since: Date;
}

/** Breakers that operators opened or closed; all dispatchers share them through the database. */
export class Overrides {
  readonly #db: Database;
  readonly #clock: Clock;
  #cached: Promise<Map<string, BreakerOverride>> | undefined;
  #readAtMs = 0;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async of(key: BreakerKey): Promise<BreakerOverride | undefined> {
    return (await this.all()).get(breakerIdOf(key));
  }

  /** Returns all overrides by the breaker's id, at most 400 ms old. */
  all(): Promise<Map<string, BreakerOverride>> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#cached && nowMs - this.#readAtMs < maxAgeMs) return this.#cached;
    const overrides = readBreakerOverrides(this.#db);
    overrides.catch(() => {
      if (this.#cached === overrides) this.#cached = undefined;
    });
    this.#cached = overrides;
    this.#readAtMs = nowMs;
    return overrides;
  }

  /** Drops the cache: the next call reads the database. */
  invalidate(): void {
    this.#cached = undefined;
  }

  /** Returns the ids of the breakers that are forced open. */
  async forcedOpen(): Promise<Set<string>> {
    const overrides = await this.all();
    return new Set([...overrides].filter(([, { forced }]) => forced === 'open').map(([id]) => id));
  }
}
