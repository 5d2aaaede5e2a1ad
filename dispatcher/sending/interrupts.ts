/**
 * How a paused or cancelled push reaches batches that threads have in hand: a counter per push in memory
 * that all threads share. A batch whose counter has moved since it was taken is handed back and its gates
 * asked again. Two pushes may share a counter: then one of them is asked once more than needed.
 */
const slots = 1024;

export const interruptBytes = slots * Int32Array.BYTES_PER_ELEMENT;

export const interruptCount = (interrupts: Int32Array, pushId: number): number =>
  Atomics.load(interrupts, pushId % slots);

/** Cuts one push short, or all of them where it is not known which (notifications were interrupted). */
export function interrupt(interrupts: Int32Array, pushId?: number): void {
  if (pushId !== undefined) Atomics.add(interrupts, pushId % slots, 1);
  else for (let slot = 0; slot < slots; slot += 1) Atomics.add(interrupts, slot, 1);
}
