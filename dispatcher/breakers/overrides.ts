import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import { readBreakerOverrides } from '../../shared/db/tables/gateways/breakers.ts';
import { type BreakerKey, breakerIdOf, type OverrideState } from '../../shared/domain/breaker.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';

/** An override applies on every dispatcher within one second (protocol/admin-api.md#changes); the query takes half of it. */
const maxAgeMs = 400;

export interface BreakerOverride {
  forced: OverrideState;
  since: Date;
}

/** Breakers that operators opened or closed; all dispatchers share them through the database. */
export class Overrides {
  readonly #db: Database;
  readonly #cache: TtlCache<'all', Promise<Map<string, BreakerOverride>>>;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#cache = new TtlCache({ clock, maxAgeMs });
  }

  async of(key: BreakerKey): Promise<BreakerOverride | undefined> {
    return (await this.all()).get(breakerIdOf(key));
  }

  /** Returns all overrides by the breaker's id, at most 400 ms old. */
  all(): Promise<Map<string, BreakerOverride>> {
    return this.#cache.getOrMake('all', () => readBreakerOverrides(this.#db));
  }

  /** Drops the cache: the next call reads the database. */
  invalidate(): void {
    this.#cache.delete('all');
  }

  /** Returns the ids of the breakers that are forced open. */
  async forcedOpen(): Promise<Set<string>> {
    const overrides = await this.all();
    return new Set([...overrides].filter(([, { forced }]) => forced === 'open').map(([id]) => id));
  }
}
