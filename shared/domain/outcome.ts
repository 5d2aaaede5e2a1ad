/**
 * Outcomes of a recipient of a push. Each recipient that planning matches ends in exactly one of
 * them (protocol/operation.md#metrics, protocol/delivery.md#promise-2).
 */
export const outcomes = [
  'sent',
  'invalid_token',
  'failed',
  'expired',
  'capped',
  'dropped',
] as const;

export type Outcome = (typeof outcomes)[number];

/** Number of recipients of a batch or a push by outcome; absent means 0. */
export type OutcomeTotals = Partial<Record<Outcome, number>>;

/**
 * Codes of the bytes in `push_batch.settled`, one per recipient: 0 is open, 1–6 the outcome at that
 * position of `outcomes`, 7 moved to a retry batch, which counts the recipient.
 */
export const openCode = 0;
export const retriedCode = outcomes.length + 1;

export const outcomeCode = (outcome: Outcome): number => outcomes.indexOf(outcome) + 1;

export function outcomeOfCode(code: number): Outcome | undefined {
  return outcomes[code - 1];
}

/** Counts the settled bytes of a batch by outcome; ignores open and moved ones. */
export function totalsOf(settled: Uint8Array): OutcomeTotals {
  const totals: OutcomeTotals = {};
  for (const code of settled) {
    const outcome = outcomeOfCode(code);
    if (outcome) totals[outcome] = (totals[outcome] ?? 0) + 1;
  }
  return totals;
}

/** Adds `more` to `totals` in place and returns it. */
export function addTotals(totals: OutcomeTotals, more: OutcomeTotals): OutcomeTotals {
  for (const outcome of outcomes) {
    const n = more[outcome];
    if (n) totals[outcome] = (totals[outcome] ?? 0) + n;
  }
  return totals;
}

export function sumTotals(totals: OutcomeTotals): number {
  return outcomes.reduce((sum, outcome) => sum + (totals[outcome] ?? 0), 0);
}
