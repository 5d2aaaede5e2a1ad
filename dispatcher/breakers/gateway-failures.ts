import { isUnhealthy } from '../../shared/breaker.ts';
import { type Clock, dayMs } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import {
  clearGatewayFailure,
  deleteOldGatewayFailures,
  recordGatewayFailure,
} from '../../shared/db/tables/gateways.ts';
import type { GatewayFailure } from '../../shared/domain/breaker.ts';
import { shortenReason } from '../../shared/domain/reasons.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { GatewayHealth, GatewayQueue } from './gateway-queue.ts';

/** Shortest interval of writes for a gateway that fails and answers in turns. */
const writeEveryMs = 1000;

/** Interval in which a failure that lasts gets a new date. */
const renewEveryMs = 10_000;

/** Reasons come from bounded sets; this limit holds even if a defect breaks that. */
const maxReasonChars = 200;

/** Age at which the failure of a gateway without traffic is deleted. */
const retentionMs = dayMs;

interface Entry {
  /** Current failure; null: the gateway answers; undefined: not known yet. */
  failure: GatewayFailure | null | undefined;
  /** Failure that was written last. */
  written: GatewayFailure | null | undefined;
  writtenAtMs: number;
}

export interface GatewayFailuresOptions {
  db: Database;
  clock: Clock;
  log: Logger;
}

/**
 * The last failure of each gateway, in the table `gateway_failure` that all processes read. Writes at most once per
 * gateway and second, and not at all while it answers.
 */
export class GatewayFailures {
  readonly #options: GatewayFailuresOptions;
  readonly #entries = new WeakMap<GatewayQueue, Entry>();
  #writes: Promise<void> = Promise.resolve();

  constructor(options: GatewayFailuresOptions) {
    this.#options = options;
  }

  /** Records the health that a batch showed. An unhealthy sample is a failure, as it is for the breaker. */
  record(queue: GatewayQueue, { health, trouble }: GatewayHealth): void {
    const entry = this.#entryOf(queue);
    if (trouble !== null && isUnhealthy(health))
      entry.failure = {
        reason: shortenReason(trouble, maxReasonChars),
        at: new Date(this.#options.clock.now()),
      };
    else if (health.asked > 0) entry.failure = null;
    this.#sync(queue, entry);
  }

  /** Returns the reason of a gateway's current failure; undefined when it answers, or was not asked. */
  reasonOf(queue: GatewayQueue): string | undefined {
    return this.#entries.get(queue)?.failure?.reason;
  }

  /** Writes failures that came too soon after the last write, and deletes old ones. */
  async maintain(queues: Iterable<GatewayQueue>): Promise<void> {
    for (const queue of queues) {
      const entry = this.#entries.get(queue);
      if (entry) this.#sync(queue, entry);
    }
    await this.#writes;
    const { db, clock } = this.#options;
    await deleteOldGatewayFailures(db, new Date(clock.now() - retentionMs));
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await this.#writes;
  }

  #entryOf(queue: GatewayQueue): Entry {
    const known = this.#entries.get(queue);
    if (known) return known;
    const entry = { failure: undefined, written: undefined, writtenAtMs: Number.NEGATIVE_INFINITY };
    this.#entries.set(queue, entry);
    return entry;
  }

  #sync(queue: GatewayQueue, entry: Entry): void {
    const { failure } = entry;
    const sinceMs = this.#options.clock.monotonicMs() - entry.writtenAtMs;
    if (failure === undefined || sinceMs < writeEveryMs || isWritten(entry, sinceMs)) return;
    entry.written = failure;
    entry.writtenAtMs = this.#options.clock.monotonicMs();
    this.#write(queue, failure);
  }

  #write({ key }: GatewayQueue, failure: GatewayFailure | null): void {
    const { db, clock, log } = this.#options;
    this.#writes = this.#writes
      .then(() =>
        failure === null
          ? clearGatewayFailure(db, key, new Date(clock.now()))
          : recordGatewayFailure(db, key, failure),
      )
      .catch((error: unknown) => log.warn({ err: error }, 'gateway failure could not be written'));
  }
}

function isWritten({ failure, written }: Entry, sinceMs: number): boolean {
  if (!failure || !written) return failure === written;
  if (failure.reason !== written.reason) return false;
  return failure.at.getTime() === written.at.getTime() || sinceMs < renewEveryMs;
}
