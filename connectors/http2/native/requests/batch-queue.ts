import type { ActiveBatch } from './active-batch.ts';

/**
 * Batches that wait for free streams, in turns: each is asked for a handful of requests at a time, so that
 * a push to one device does not wait behind thousands of another.
 */
export class BatchQueue {
  readonly #runs: ActiveBatch[] = [];
  #turn = 0;

  get isEmpty(): boolean {
    return this.#runs.length === 0;
  }

  /** Whatever waits in a run, new or handed back. */
  add(run: ActiveBatch): void {
    if (run.isQueued || run.waiting === 0) return;
    run.isQueued = true;
    this.#runs.push(run);
  }

  /** The batch whose turn it is; one of which nothing waits any more gives up its place. */
  next(): ActiveBatch | undefined {
    while (this.#runs.length > 0) {
      if (this.#turn >= this.#runs.length) this.#turn = 0;
      const run = this.#runs[this.#turn];
      if (run && run.waiting > 0) {
        this.#turn += 1;
        return run;
      }
      if (run) run.isQueued = false;
      this.#runs.splice(this.#turn, 1);
    }
    return undefined;
  }

  /** All that wait, or those that were queued before `queuedBeforeMs`. A copy: whoever reads it may stop them. */
  list(queuedBeforeMs = Number.POSITIVE_INFINITY): ActiveBatch[] {
    return this.#runs.filter((run) => run.queuedAtMs < queuedBeforeMs);
  }
}
