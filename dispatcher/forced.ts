import type { Clock } from '../shared/clock.ts';
import type { Database } from '../shared/db/pool.ts';
import { readForced } from '../shared/db/tables/breakers.ts';
import { type BreakerKey, breakerIdOf, type ForcedState } from '../shared/domain/breaker.ts';

/** What is forced counts within one second on every dispatcher (contract.md); half of that is the query's. */
const maxAgeMs = 400;

/** How often what is in work is looked at: with the age of the answer this stays below that second. */
const watchMs = 200;

export interface ForcedOrder {
  forced: ForcedState;
  since: Date;
}

/** What operators forced breakers to, shared by all dispatchers through the database. */
export class Forced {
  readonly #db: Database;
  readonly #clock: Clock;
  /** What stops the batches in work, by breaker. */
  readonly #inWork = new Map<SharedArrayBuffer, string>();
  #known: Promise<Map<string, ForcedOrder>> | undefined;
  #knownAtMs = 0;
  #watch: NodeJS.Timeout | undefined;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async of(key: BreakerKey): Promise<ForcedOrder | undefined> {
    return (await this.all()).get(breakerIdOf(key));
  }

  /** Everything that is forced, by id, at most 400 ms old. */
  all(): Promise<Map<string, ForcedOrder>> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#known && nowMs - this.#knownAtMs < maxAgeMs) return this.#known;
    const known = readForced(this.#db);
    known.catch(() => {
      if (this.#known === known) this.#known = undefined;
    });
    this.#known = known;
    this.#knownAtMs = nowMs;
    return known;
  }

  /** Does work that is told to stop, by a 1 in the buffer, when its breaker is forced open meanwhile. */
  async stoppable<T>(key: BreakerKey, work: (stop: SharedArrayBuffer) => Promise<T>): Promise<T> {
    const stop = new SharedArrayBuffer(4);
    this.#inWork.set(stop, breakerIdOf(key));
    this.#watch ??= setInterval(() => void this.#look(), watchMs);
    try {
      return await work(stop);
    } finally {
      this.#inWork.delete(stop);
    }
  }

  close(): void {
    clearInterval(this.#watch);
  }

  async #look(): Promise<void> {
    if (this.#inWork.size === 0) {
      clearInterval(this.#watch);
      this.#watch = undefined;
      return;
    }
    const forced = await this.all().catch(() => undefined);
    for (const [stop, id] of this.#inWork)
      if (forced?.get(id)?.forced === 'open') Atomics.store(new Int32Array(stop), 0, 1);
  }
}
