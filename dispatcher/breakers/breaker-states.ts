import { randomUUID } from 'node:crypto';
import type { Database } from '../../shared/db/pool.ts';
import {
  deleteBreakerStatesOf,
  deleteOldBreakerStates,
  hasClosedElsewhere,
  saveBreakerState,
} from '../../shared/db/tables/gateways/breakers.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { GatewayQueue } from './gateway-queue.ts';

/** Breaker states of all dispatchers in the table `breaker_state`: this one writes its own, in order. */
export class BreakerStates {
  readonly #db: Database;
  readonly #log: Logger;
  /** Name of this dispatcher in the table. */
  readonly #dispatcher = randomUUID();
  #writes: Promise<void> = Promise.resolve();

  constructor({ db, log }: { db: Database; log: Logger }) {
    this.#db = db;
    this.#log = log;
  }

  /** Writes the state of one breaker in the background. */
  write({ key, breaker, since }: GatewayQueue): void {
    const probeInMs = breaker.state === 'open' ? breaker.cooldownLeftMs : null;
    const state = { dispatcher: this.#dispatcher, state: breaker.state, since, probeInMs };
    this.#writes = this.#writes
      .then(() => saveBreakerState(this.#db, key, state))
      .catch((error: unknown) => this.#log.warn({ err: error }, 'breaker state could not be written'));
  }

  /** Whether another dispatcher's breaker closed since this one changed its state. */
  hasClosedElsewhere({ key, since }: GatewayQueue): Promise<boolean> {
    return hasClosedElsewhere(this.#db, key, { dispatcher: this.#dispatcher, since });
  }

  /** Waits for pending writes and deletes old states. */
  async maintain(): Promise<void> {
    await this.#writes;
    await deleteOldBreakerStates(this.#db);
  }

  /** Waits for pending writes and deletes the states of this dispatcher. */
  async close(): Promise<void> {
    await this.#writes;
    await deleteBreakerStatesOf(this.#db, this.#dispatcher).catch(() => undefined);
  }
}
