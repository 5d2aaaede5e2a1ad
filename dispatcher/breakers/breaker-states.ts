import { randomUUID } from 'node:crypto';
import type { Database } from '../../shared/db/pool.ts';
import {
  deleteBreakerStatesOf,
  deleteOldBreakerStates,
  findTroubledElsewhere,
  hasAnsweredElsewhere,
  saveBreakerState,
} from '../../shared/db/tables/gateways/breakers.ts';
import type { BreakerState } from '../../shared/domain/breaker.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { GatewayQueue } from './gateway-queue.ts';

/** Breaker states of all dispatchers in the table `breaker_state`: this one writes its own, in order. */
export class BreakerStates {
  readonly #db: Database;
  readonly #log: Logger;
  /** Name of this dispatcher in the table. */
  readonly #dispatcher = randomUUID();
  /** Time of the last answer that this dispatcher has shared, in ms. */
  readonly #sharedMs = new WeakMap<GatewayQueue, number>();
  #writes: Promise<void> = Promise.resolve();

  constructor({ db, log }: { db: Database; log: Logger }) {
    this.#db = db;
    this.#log = log;
  }

  /** Writes the state of one breaker in the background. */
  write(queue: GatewayQueue): void {
    const { breaker, since } = queue;
    this.#write(queue, { state: breaker.state, since });
  }

  /** Whether another dispatcher got an answer of the gateway since the breaker of this one opened. */
  hasAnsweredElsewhere({ key, openedAt }: GatewayQueue): Promise<boolean> {
    return hasAnsweredElsewhere(this.#db, key, { dispatcher: this.#dispatcher, since: openedAt });
  }

  /**
   * Writes when the gateways answered last that other dispatchers cannot reach. A breaker that never opened is not in the
   * table; without this, the half-open breaker of a dispatcher without traffic would not learn that pushes arrive.
   */
  async shareAnswers(queues: ReadonlyMap<string, GatewayQueue>): Promise<void> {
    for (const id of await findTroubledElsewhere(this.#db, this.#dispatcher)) {
      const queue = queues.get(id);
      const answeredAt = queue?.breaker.state === 'closed' ? queue.healthyAt : null;
      if (!queue || !answeredAt || answeredAt.getTime() <= (this.#sharedMs.get(queue) ?? 0)) continue;
      this.#sharedMs.set(queue, answeredAt.getTime());
      this.#write(queue, { state: 'closed', since: answeredAt });
    }
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

  #write({ key, breaker }: GatewayQueue, own: { state: BreakerState; since: Date }): void {
    const probeInMs = own.state === 'open' ? breaker.cooldownLeftMs : null;
    this.#writes = this.#writes
      .then(() => saveBreakerState(this.#db, key, { dispatcher: this.#dispatcher, ...own, probeInMs }))
      .catch((error: unknown) => this.#log.warn({ err: error }, 'breaker state could not be written'));
  }
}
