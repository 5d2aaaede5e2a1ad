/** Indexes of the numbers of a batch in flight in its shared memory. */
const indexes = { stop: 0, size: 1, answered: 2, isGatewayUp: 3 } as const;

const progressBytes = Object.keys(indexes).length * Int32Array.BYTES_PER_ELEMENT;

/**
 * Progress of one batch in flight, in memory that the main thread and a worker thread share.
 * Reading it needs no message between the threads.
 */
export class InFlightBatch {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  constructor(memory = new SharedArrayBuffer(progressBytes)) {
    this.memory = memory;
    this.#numbers = new Int32Array(memory);
  }

  /** Recipients in the request to the gateway; 0 before the thread has begun. */
  get size(): number {
    return Atomics.load(this.#numbers, indexes.size);
  }

  /** Recipients that have an outcome. */
  get answered(): number {
    return Atomics.load(this.#numbers, indexes.answered);
  }

  /** True if the gateway has answered a request of the batch. */
  get isGatewayUp(): boolean {
    return Atomics.load(this.#numbers, indexes.isGatewayUp) === 1;
  }

  get isStopped(): boolean {
    return Atomics.load(this.#numbers, indexes.stop) === 1;
  }

  /** Makes the thread stop sending this batch. */
  stop(): void {
    Atomics.store(this.#numbers, indexes.stop, 1);
  }

  begin(size: number): void {
    Atomics.store(this.#numbers, indexes.size, size);
  }

  /** Counts a recipient with an outcome. For `isFailure` see `gateway-health.ts`. */
  countAnswer(isFailure: boolean | null): void {
    Atomics.add(this.#numbers, indexes.answered, 1);
    if (isFailure === false) Atomics.store(this.#numbers, indexes.isGatewayUp, 1);
  }
}

/**
 * Interrupts of paused or cancelled pushes, for batches that threads are sending. Shared memory
 * contains 1,024 counters, and a push uses the counter of its id modulo 1,024. If the counter has
 * changed since a batch was loaded, the batch returns to the gates. If two pushes share a counter,
 * a batch of the other push returns too, which costs time but changes nothing.
 */
const counters = 1024;

export const interruptBytes = counters * Int32Array.BYTES_PER_ELEMENT;

export const interruptCount = (interrupts: Int32Array, pushId: number): number =>
  Atomics.load(interrupts, pushId % counters);

/**
 * Interrupts one push. Without `pushId`, interrupts all pushes, because the LISTEN connection was
 * lost.
 */
export function interrupt(interrupts: Int32Array, pushId?: number): void {
  if (pushId !== undefined) Atomics.add(interrupts, pushId % counters, 1);
  else for (let counter = 0; counter < counters; counter += 1) Atomics.add(interrupts, counter, 1);
}
