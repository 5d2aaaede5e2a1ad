import type { ActiveBatch } from './active-batch.ts';

/**
 * Batches that wait for free streams, in turns: each is asked for a handful of requests at a time, so that
 * a push to one device does not wait behind thousands of another.
 */
export class BatchQueue {
  readonly #batches: ActiveBatch[] = [];
  #turn = 0;

  get isEmpty(): boolean {
    return this.#batches.length === 0;
  }

  /** Whatever waits in a run, new or handed back. */
  add(batch: ActiveBatch): void {
    if (batch.isQueued || batch.waiting === 0) return;
    batch.isQueued = true;
    this.#batches.push(batch);
  }

  /** The batch whose turn it is; one of which nothing waits any more gives up its place. */
  next(): ActiveBatch | undefined {
    while (this.#batches.length > 0) {
      if (this.#turn >= this.#batches.length) this.#turn = 0;
      const batch = this.#batches[this.#turn];
      if (batch && batch.waiting > 0) {
        this.#turn += 1;
        return batch;
      }
      if (batch) batch.isQueued = false;
      this.#batches.splice(this.#turn, 1);
    }
    return undefined;
  }

  /** All that wait, or those that were queued before `queuedBeforeMs`. A copy: whoever reads it may stop them. */
  list(queuedBeforeMs = Number.POSITIVE_INFINITY): ActiveBatch[] {
    return this.#batches.filter((batch) => batch.queuedAtMs < queuedBeforeMs);
  }
}
