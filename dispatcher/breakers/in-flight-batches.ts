import type { Clock } from '../../shared/clock.ts';
import type { OverrideState } from '../../shared/domain/breaker.ts';
import type { ConcurrencySlot } from '../../shared/queue/consumer.ts';
import { InFlightBatch } from '../sending/shared-memory.ts';

/** Interval at which all batches in flight are checked. */
const watchMs = 200;

/** Minimum age of a slow batch. Part of this time goes into connecting. */
const graceMs = 800;

/** A batch is slow if it would take longer than this at its speed so far. */
const slowBatchMs = 10_000;

/**
 * A batch is also slow if it got no outcome for this time. It waits for its last answers then, such
 * as those of one push service of many.
 */
const silentMs = 1_500;

/** One batch in flight, from `track` to `untrack`. */
export interface TrackedBatch {
  /** Breaker id of its gateway. */
  readonly id: string;
  readonly progress: InFlightBatch;
  /** Concurrency slot of the job. A slow batch releases it. */
  readonly concurrencySlot: ConcurrencySlot | undefined;
  /** When the thread was first seen to have begun the batch. */
  beganAtMs: number | undefined;
  /** Recipients with an outcome at the last check, and when their number last changed. */
  answered: number;
  answeredAtMs: number;
}

export interface InFlightOptions {
  clock: Clock;
  /** Returns what operators have forced, by breaker id, at most 400 ms old. */
  readOverrides(): Promise<ReadonlyMap<string, { forced: OverrideState }>>;
}

/**
 * The batches in flight. A slow batch releases its concurrency slot, so that batches of other apps
 * and gateways are delivered (protocol/delivery.md#promise-4). A batch whose breaker is forced open
 * is stopped.
 */
export class InFlightBatches {
  readonly #options: InFlightOptions;
  readonly #batches = new Set<TrackedBatch>();
  readonly #slow = new Set<TrackedBatch>();
  #watch: NodeJS.Timeout | undefined;

  constructor(options: InFlightOptions) {
    this.#options = options;
  }

  track(id: string, concurrencySlot: ConcurrencySlot | undefined): TrackedBatch {
    const batch = {
      id,
      progress: new InFlightBatch(),
      concurrencySlot,
      beganAtMs: undefined,
      answered: 0,
      answeredAtMs: 0,
    };
    this.#batches.add(batch);
    this.#watch ??= setInterval(() => void this.#inspect(), watchMs);
    return batch;
  }

  untrack(batch: TrackedBatch): void {
    this.#batches.delete(batch);
    this.#slow.delete(batch);
  }

  /**
   * Returns the number of slow batches of a gateway. A batch that waits for less than half of its
   * recipients does not count: the gateway answers.
   */
  slowOf(id: string): number {
    let count = 0;
    for (const { id: own, progress } of this.#slow)
      if (own === id && progress.answered * 2 < progress.size) count += 1;
    return count;
  }

  /** Returns whether the gateway has answered a request of a batch that is still in flight. */
  hasAnswer(id: string): boolean {
    for (const batch of this.#batches)
      if (batch.id === id && batch.progress.isGatewayUp) return true;
    return false;
  }

  close(): void {
    clearInterval(this.#watch);
  }

  async #inspect(): Promise<void> {
    if (this.#batches.size === 0) {
      clearInterval(this.#watch);
      this.#watch = undefined;
      return;
    }
    for (const batch of this.#batches) this.#measure(batch);
    const overrides = await this.#options.readOverrides().catch(() => undefined);
    for (const { id, progress } of this.#batches)
      if (overrides?.get(id)?.forced === 'open') progress.stop();
  }

  #measure(batch: TrackedBatch): void {
    const { size, answered } = batch.progress;
    if (size === 0) return;
    const nowMs = this.#options.clock.monotonicMs();
    batch.beganAtMs ??= nowMs;
    if (batch.answered !== answered || batch.answeredAtMs === 0) batch.answeredAtMs = nowMs;
    batch.answered = answered;
    const ageMs = nowMs - batch.beganAtMs;
    const isBehind = answered * slowBatchMs < size * ageMs;
    const isSilent = nowMs - batch.answeredAtMs >= silentMs;
    const isSlow = (ageMs >= graceMs && isBehind) || isSilent;
    if (!isSlow) this.#slow.delete(batch);
    else {
      this.#slow.add(batch);
      batch.concurrencySlot?.release();
    }
  }
}
