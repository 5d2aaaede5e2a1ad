/** Numbers of one batch in flight, by their place in the shared memory. */
const places = { stop: 0, size: 1, answered: 2, isGatewayUp: 3 } as const;

const progressBytes = Object.keys(places).length * Int32Array.BYTES_PER_ELEMENT;

/**
 * Progress of one batch in flight, in memory that the main thread and a worker thread share: reading it costs
 * neither thread a message, however many batches there are.
 */
export class InFlightBatch {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  constructor(memory = new SharedArrayBuffer(progressBytes)) {
    this.memory = memory;
    this.#numbers = new Int32Array(memory);
  }

  /** Recipients of the request to the gateway; 0 before the thread has begun. */
  get size(): number {
    return Atomics.load(this.#numbers, places.size);
  }

  /** Recipients that have an outcome. */
  get answered(): number {
    return Atomics.load(this.#numbers, places.answered);
  }

  /** The gateway answered a request of it. */
  get isGatewayUp(): boolean {
    return Atomics.load(this.#numbers, places.isGatewayUp) === 1;
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

  /** Counts a recipient with an outcome. `isFailure`: see `gateway-health.ts`. */
  countAnswer(isFailure: boolean | null): void {
    Atomics.add(this.#numbers, places.answered, 1);
    if (isFailure === false) Atomics.store(this.#numbers, places.isGatewayUp, 1);
  }
}
