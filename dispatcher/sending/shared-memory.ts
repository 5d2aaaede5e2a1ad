/** Numbers of one batch in flight, by their place in the shared memory. */
const places = { stop: 0, size: 1, answered: 2, isGatewayUp: 3 } as const;

const progressBytes = Object.keys(places).length * Int32Array.BYTES_PER_ELEMENT;

/**
 * Progress of one batch in flight, in memory that the main thread and a worker thread share:
 * reading it costs neither thread a message, however many batches there are.
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

/**
 * Interrupts of paused or cancelled pushes, for the batches that threads are sending: one counter
 * per push in memory that all threads share. A batch whose counter has changed since it was taken
 * goes back to the gates. Two pushes may share a counter: then one of them goes back without need.
 */
const counters = 1024;

export const interruptBytes = counters * Int32Array.BYTES_PER_ELEMENT;

export const interruptCount = (interrupts: Int32Array, pushId: number): number =>
  Atomics.load(interrupts, pushId % counters);

/** Interrupts one push; all of them if no push is named (the LISTEN connection was lost). */
export function interrupt(interrupts: Int32Array, pushId?: number): void {
  if (pushId !== undefined) Atomics.add(interrupts, pushId % counters, 1);
  else for (let counter = 0; counter < counters; counter += 1) Atomics.add(interrupts, counter, 1);
}
