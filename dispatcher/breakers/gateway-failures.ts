import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import {
  clearGatewayFailure,
  deleteOldGatewayFailures,
  recordGatewayFailure,
} from '../../shared/db/tables/gateways/failures.ts';
import type { GatewayFailure } from '../../shared/domain/breaker.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { DeliverResult } from '../sending/task.ts';
import type { GatewayQueue } from './gateway-queue.ts';

/** A gateway that fails and answers in turns is written down so often at the most. */
const writeEveryMs = 1000;

/** A failure that lasts gets a new date after this time. */
const renewEveryMs = 10_000;

/** Reasons come from bounded sets; this bounds what a defect could make of that. */
const maxReason = 200;

/** A gateway that is not asked any more loses its last failure after this. */
const retentionMs = 24 * 3600 * 1000;

interface Entry {
  /** What is the case; null: the gateway answers; undefined: nothing is known yet. */
  failure: GatewayFailure | null | undefined;
  /** What was written last. */
  written: GatewayFailure | null | undefined;
  writtenAtMs: number;
}

export interface GatewayFailuresOptions {
  db: Database;
  clock: Clock;
  log: Logger;
}

/**
 * Why each gateway could not be asked last, in the table `gateway_failure` that all processes read. One write per
 * gateway and second at the most, none while it answers.
 */
export class GatewayFailures {
  readonly #options: GatewayFailuresOptions;
  readonly #entries = new WeakMap<GatewayQueue, Entry>();
  #writes: Promise<void> = Promise.resolve();

  constructor(options: GatewayFailuresOptions) {
    this.#options = options;
  }

  /** Takes in what a batch showed. Half of it without an answer is a failure, as for the breaker. */
  saw(line: GatewayQueue, { health: showing, trouble }: Pick<DeliverResult, 'health' | 'trouble'>): void {
    const entry = this.#entryOf(line);
    if (trouble !== null && showing.failed * 2 >= showing.asked)
      entry.failure = { reason: trouble.slice(0, maxReason), at: new Date(this.#options.clock.now()) };
    else if (showing.asked > 0) entry.failure = null;
    this.#sync(line, entry);
  }

  /** Why a gateway could not be asked last; undefined when it answered, or was not asked. */
  reasonOf(line: GatewayQueue): string | undefined {
    return this.#entries.get(line)?.failure?.reason;
  }

  /** Writes down what came too soon after the last write, and deletes what is old. */
  async maintain(lines: Iterable<GatewayQueue>): Promise<void> {
    for (const line of lines) {
      const entry = this.#entries.get(line);
      if (entry) this.#sync(line, entry);
    }
    await this.#writes;
    const { db, clock } = this.#options;
    await deleteOldGatewayFailures(db, new Date(clock.now() - retentionMs));
  }

  /** Waits for what is being written. */
  async close(): Promise<void> {
    await this.#writes;
  }

  #entryOf(line: GatewayQueue): Entry {
    const known = this.#entries.get(line);
    if (known) return known;
    const entry = { failure: undefined, written: undefined, writtenAtMs: Number.NEGATIVE_INFINITY };
    this.#entries.set(line, entry);
    return entry;
  }

  #sync(line: GatewayQueue, entry: Entry): void {
    const { failure } = entry;
    const sinceMs = this.#options.clock.monotonicMs() - entry.writtenAtMs;
    if (failure === undefined || sinceMs < writeEveryMs || isWritten(entry, sinceMs)) return;
    entry.written = failure;
    entry.writtenAtMs = this.#options.clock.monotonicMs();
    this.#write(line, failure);
  }

  #write({ key }: GatewayQueue, failure: GatewayFailure | null): void {
    const { db, clock, log } = this.#options;
    this.#writes = this.#writes
      .then(() =>
        failure === null
          ? clearGatewayFailure(db, key, new Date(clock.now()))
          : recordGatewayFailure(db, key, failure),
      )
      .catch((error: unknown) =>
        log.warn({ err: error }, 'the last failure of a gateway could not be written'),
      );
  }
}

function isWritten({ failure, written }: Entry, sinceMs: number): boolean {
  if (!failure || !written) return failure === written;
  if (failure.reason !== written.reason) return false;
  return failure.at.getTime() === written.at.getTime() || sinceMs < renewEveryMs;
}
