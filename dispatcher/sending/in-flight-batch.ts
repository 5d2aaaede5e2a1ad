/**
 * What the main thread and a worker thread share of one batch in flight: three numbers in memory. A look at
 * them costs neither thread anything, however many batches there are.
 */
const places = { stop: 0, size: 1, answered: 2 } as const;

const progressBytes = Object.keys(places).length * Int32Array.BYTES_PER_ELEMENT;

export const newProgressMemory = (): SharedArrayBuffer => new SharedArrayBuffer(progressBytes);

/** One side's view of a batch in flight. */
export class InFlightBatch {
  readonly #numbers: Int32Array;

  constructor(shared: SharedArrayBuffer) {
    this.#numbers = new Int32Array(shared);
  }

  /** Recipients that the gateway is being asked for; 0 before the thread has begun. */
  get size(): number {
    return Atomics.load(this.#numbers, places.size);
  }

  /** How many of them have an outcome. */
  get answered(): number {
    return Atomics.load(this.#numbers, places.answered);
  }

  get isStopped(): boolean {
    return Atomics.load(this.#numbers, places.stop) === 1;
  }

  /** Tells the thread to send no more of this batch. */
  stop(): void {
    Atomics.store(this.#numbers, places.stop, 1);
  }

  begin(size: number): void {
    Atomics.store(this.#numbers, places.size, size);
  }

  answer(): void {
    Atomics.add(this.#numbers, places.answered, 1);
  }
}
