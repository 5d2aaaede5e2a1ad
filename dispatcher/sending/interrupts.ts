/**
 * Interrupts of paused or cancelled pushes, for the batches that threads are sending: one counter per push in memory
 * that all threads share. A batch whose counter has changed since it was taken goes back to the gates. Two pushes may
 * share a counter: then one of them goes back without need.
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
