/** A place in the queue was not to be had: too many of the same lane wait already. */
export class QueueFull extends Error {
  override name = 'QueueFull';
}

type Job = () => Promise<void>;

/**
 * Runs a few pieces of work at a time and takes turns between lanes, so that many calls of one lane do not make the
 * others wait behind them.
 */
export class FairQueue {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #lanes = new Map<string, Job[]>();
  #running = 0;

  /** `maxWaiting` is per lane. */
  constructor({ atOnce, maxWaiting }: { atOnce: number; maxWaiting: number }) {
    this.#atOnce = atOnce;
    this.#maxWaiting = maxWaiting;
  }

  /** Resolves with what `work` gives, when its turn has come. Throws `QueueFull` at once. */
  run<T>(lane: string, work: () => Promise<T>): Promise<T> {
    const waiting = this.#lanes.get(lane) ?? [];
    if (waiting.length >= this.#maxWaiting) return Promise.reject(new QueueFull());
    return new Promise<T>((resolve, reject) => {
      waiting.push(() => work().then(resolve, reject));
      this.#lanes.set(lane, waiting);
      this.#next();
    });
  }

  #next(): void {
    while (this.#running < this.#atOnce) {
      const job = this.#take();
      if (!job) return;
      this.#running += 1;
      void job().finally(() => {
        this.#running -= 1;
        this.#next();
      });
    }
  }

  /** The first of the lane whose turn it is; the lane goes to the end. */
  #take(): Job | undefined {
    const [first] = this.#lanes;
    if (!first) return undefined;
    const [lane, jobs] = first;
    const job = jobs.shift();
    this.#lanes.delete(lane);
    if (jobs.length > 0) this.#lanes.set(lane, jobs);
    return job;
  }
}
