import {
  type Outcome,
  type OutcomeTotals,
  openCode,
  outcomeCode,
  retriedCode,
  totalsOf,
} from './outcome.ts';

/**
 * State of each recipient of a batch, one byte each, as stored in `push_batch.settled`
 * (`outcome.ts`).
 */
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
