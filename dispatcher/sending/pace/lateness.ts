/** Lateness of paced batches: the one place that says when a slot is missed. */

/** Lateness that every slot forgives: short slots are missed by a pause of the process. */
const leastToleranceMs = 50;

/**
 * Returns whether a batch is too late for its slot: by more than a quarter of it. A batch that is
 * less late begins late, and what no longer fits its slot gets another one.
 */
export const isLate = (lateByMs: number, slotMs: number): boolean =>
  lateByMs > Math.max(leastToleranceMs, slotMs / 4);

/**
 * Batches in a row that may give their slots back; on a machine that is always late the next one is
 * sent all the same. After a stall a tenth of what is overdue is sent at once, at most.
 */
const mostMissed = 9;

/** Number of slots that a thread may give back. */
export class LatenessBudget {
  #missed = 0;

  /** Whether a batch that is late gives its slot back, rather than delay the batches behind it. */
  isMissed(lateByMs: number, slotMs: number): boolean {
    const isMissed = isLate(lateByMs, slotMs) && this.#missed < mostMissed;
    this.#missed = isMissed ? this.#missed + 1 : 0;
    return isMissed;
  }
}
