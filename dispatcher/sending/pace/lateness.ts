/** Lateness of paced batches: the one place that says when a slot is missed. */

/**
 * Lateness up to which a batch may still use its slot. Beyond it the time belongs to the batches behind; a twentieth of
 * a second is half of what the promise allows above the rate (protocol/delivery.md#promise-5).
 */
export const slotToleranceMs = 50;

export const isLate = (lateByMs: number, toleranceMs = slotToleranceMs): boolean => lateByMs > toleranceMs;

/** Batches in a row that may give their slots back; on a machine that is always late the next one is sent all the same. */
const mostMissed = 3;

/** Number of slots that a thread may give back. */
export class LatenessBudget {
  #missed = 0;

  /** Whether a batch that is late gives its slot back, rather than delay the batches behind it. */
  isMissed(lateByMs: number): boolean {
    const isMissed = isLate(lateByMs) && this.#missed < mostMissed;
    this.#missed = isMissed ? this.#missed + 1 : 0;
    return isMissed;
  }
}
