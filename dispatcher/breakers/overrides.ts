import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import { readBreakerOverrides } from '../../shared/db/tables/gateways/breakers.ts';
import { type BreakerKey, breakerIdOf, type OverrideState } from '../../shared/domain/breaker.ts';

/** What is forced counts within one second on every dispatcher (protocol/admin-api.md#changes); half of that is the query's. */
const maxAgeMs = 400;

export interface BreakerOverride {
  forced: OverrideState;
  since: Date;
}

/** What operators forced breakers to, shared by all dispatchers through the database. */
export class Overrides {
  readonly #db: Database;
  readonly #clock: Clock;
  #known: Promise<Map<string, BreakerOverride>> | undefined;
  #knownAtMs = 0;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async of(key: BreakerKey): Promise<BreakerOverride | undefined> {
    return (await this.all()).get(breakerIdOf(key));
  }

  /** Everything that is forced, by id, at most 400 ms old. */
  all(): Promise<Map<string, BreakerOverride>> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#known && nowMs - this.#knownAtMs < maxAgeMs) return this.#known;
    const known = readBreakerOverrides(this.#db);
    known.catch(() => {
      if (this.#known === known) this.#known = undefined;
    });
    this.#known = known;
    this.#knownAtMs = nowMs;
    return known;
  }

  /** Something has changed: the next question goes to the database. */
  forget(): void {
    this.#known = undefined;
  }

  /** The ids of those that are forced open. */
  async open(): Promise<Set<string>> {
    const forced = await this.all();
    return new Set([...forced].filter(([, order]) => order.forced === 'open').map(([id]) => id));
  }
}
