/**
 * How a paused or cancelled push reaches batches that threads have in hand: a counter per push in memory
 * that all threads share. A batch whose counter has moved since it was taken is handed back and its gates
 * asked again. Two pushes may share a counter: then one of them is asked once more than needed.
 */
const slots = 1024;

export const cutBytes = slots * Int32Array.BYTES_PER_ELEMENT;

export const cutCount = (cuts: Int32Array, pushId: number): number => Atomics.load(cuts, pushId % slots);

/** Cuts one push short, or all of them where it is not known which (notifications were interrupted). */
export function cut(cuts: Int32Array, pushId?: number): void {
  if (pushId !== undefined) Atomics.add(cuts, pushId % slots, 1);
  else for (let slot = 0; slot < slots; slot += 1) Atomics.add(cuts, slot, 1);
}
