import type { ActiveBatch } from './active-batch.ts';

/**
 * Round-robin queue of batches that wait for free streams: each gets a few requests per turn, so that a push to one
 * device does not wait for thousands of another push.
 */
export class BatchQueue {
  readonly #batches: ActiveBatch[] = [];
  #turn = 0;

  get isEmpty(): boolean {
    return this.#batches.length === 0;
  }

  /** Queues a batch with waiting requests, new or returned. */
  add(batch: ActiveBatch): void {
    if (batch.isQueued || batch.waiting === 0) return;
    batch.isQueued = true;
    this.#batches.push(batch);
  }

  /** Returns the batch whose turn it is; removes batches without waiting requests. */
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

  /** Returns a copy of the queue, of all batches or of those queued before `queuedBeforeMs`. */
  list(queuedBeforeMs = Number.POSITIVE_INFINITY): ActiveBatch[] {
    return this.#batches.filter((batch) => batch.queuedAtMs < queuedBeforeMs);
  }
}
