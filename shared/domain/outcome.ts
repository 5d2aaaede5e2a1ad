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

/** Adds `more` to `totals` in place. Returns `totals`. */
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

/** State of each recipient of a batch, one byte each, as stored in `push_batch.settled`. */
export class RecipientStates {
  /** The bytes, for the database and for messages between threads. */
  readonly bytes: Uint8Array<ArrayBuffer>;

  /** Uses `bytes` without copying them. */
  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.bytes = bytes;
  }

  /** Returns the states of `size` open recipients. */
  static allOpen(size: number): RecipientStates {
    return new RecipientStates(new Uint8Array(size));
  }

  /**
   * Returns the states of a row. Recipients at the positions `moved` are in retry batches. Their
   * bytes may be wrong, because a process that did not know of the move may have overwritten them
   * by a checkpoint.
   */
  static ofRow(
    row: { settled: Uint8Array | null; moved: number[] | null },
    size: number,
  ): RecipientStates {
    const states = row.settled
      ? new RecipientStates(Uint8Array.from(row.settled))
      : RecipientStates.allOpen(size);
    for (const index of row.moved ?? []) states.markRetried(index);
    return states;
  }

  copy(): RecipientStates {
    return new RecipientStates(this.bytes.slice());
  }

  isOpen(index: number): boolean {
    return this.bytes[index] === openCode;
  }

  get hasOpen(): boolean {
    return this.bytes.includes(openCode);
  }

  get openIndexes(): number[] {
    return this.#indexes((code) => code === openCode);
  }

  get closedIndexes(): number[] {
    return this.#indexes((code) => code !== openCode);
  }

  settle(index: number, outcome: Outcome): void {
    this.bytes[index] = outcomeCode(outcome);
  }

  /** Marks a recipient as moved to a retry batch, which then counts it. */
  markRetried(index: number): void {
    this.bytes[index] = retriedCode;
  }

  /** Returns a copy in which moved recipients are open. */
  withRetriedOpen(): RecipientStates {
    return new RecipientStates(this.bytes.map((code) => (code === retriedCode ? openCode : code)));
  }

  /** Returns a copy that has the states of `other` at these positions. */
  withStatesOf(other: RecipientStates, indexes: ReadonlySet<number>): RecipientStates {
    return new RecipientStates(
      this.bytes.map((code, index) => (indexes.has(index) ? (other.bytes[index] ?? code) : code)),
    );
  }

  /** Counts the recipients by outcome. Open and moved recipients are ignored. */
  totals(): OutcomeTotals {
    return totalsOf(this.bytes);
  }

  #indexes(matches: (code: number) => boolean): number[] {
    const indexes: number[] = [];
    for (const [index, code] of this.bytes.entries()) if (matches(code)) indexes.push(index);
    return indexes;
  }
}
