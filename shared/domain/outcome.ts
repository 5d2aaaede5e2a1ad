/**
 * Outcomes of a recipient. Each recipient that planning finds gets exactly one outcome
 * (protocol/operation.md#metrics, protocol/delivery.md#promise-2).
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

/** Number of recipients of a batch or push by outcome. An absent outcome means 0. */
export type OutcomeTotals = Partial<Record<Outcome, number>>;

/**
 * Codes of the bytes in `push_batch.settled`, one byte per recipient. 0 means open. 1 to 6 is an
 * outcome, by its position in `outcomes`. 7 means that the recipient was moved to a retry batch,
 * which then counts it.
 */
export const openCode = 0;
export const retriedCode = outcomes.length + 1;

export const outcomeCode = (outcome: Outcome): number => outcomes.indexOf(outcome) + 1;

export function outcomeOfCode(code: number): Outcome | undefined {
  return outcomes[code - 1];
}

/** Counts the recipients of a batch by outcome. Open and moved recipients are ignored. */
export function totalsOf(settled: Uint8Array): OutcomeTotals {
  const totals: OutcomeTotals = {};
  for (const code of settled) {
    const outcome = outcomeOfCode(code);
    if (outcome) totals[outcome] = (totals[outcome] ?? 0) + 1;
  }
  return totals;
}

/** Adds `more` to `totals`, which is changed, and returns it. */
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
