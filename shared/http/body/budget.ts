import { Refusal } from '../../domain/errors/errors.ts';

export interface BudgetLimits {
  /** Bytes of all bodies together. */
  total: number;
  /** Bytes of one sender: an address, an app. */
  perSender: number;
}

/** When a refused sender may try again: a body is in hand for a fraction of a second. */
const retryAfterSeconds = 1;

/** Bytes of request bodies that a process has in memory, bounded in total and per sender. */
export class BodyBudget {
  readonly #limits: BudgetLimits;
  readonly #onChange: (bytes: number) => void;
  /** By sender; senders that hold nothing are left out. */
  readonly #held = new Map<string, number>();
  #total = 0;

  /** `onChange` is told by how many bytes the total changes. */
  constructor(limits: BudgetLimits, onChange: (bytes: number) => void = () => undefined) {
    this.#limits = limits;
    this.#onChange = onChange;
  }

  /** Bytes in hand now. */
  get bytes(): number {
    return this.#total;
  }

  /** An account of one request, charged to all of `senders`. */
  open(senders: string[]): BodyReservation {
    return new BodyReservation((bytes) => this.#change(senders, bytes));
  }

  #change(senders: string[], bytes: number): void {
    if (bytes > 0) this.#check(senders, bytes);
    this.#total += bytes;
    this.#onChange(bytes);
    for (const sender of senders) {
      const held = (this.#held.get(sender) ?? 0) + bytes;
      if (held > 0) this.#held.set(sender, held);
      else this.#held.delete(sender);
    }
  }

  #check(senders: string[], bytes: number): void {
    const isOver = (sender: string) => (this.#held.get(sender) ?? 0) + bytes > this.#limits.perSender;
    if (senders.some(isOver)) throw new Refusal('tooManyRequests', { retryAfterSeconds });
    if (this.#total + bytes > this.#limits.total) throw new Refusal('unavailable', { retryAfterSeconds });
  }
}

/** What one request holds of a budget. */
export class BodyReservation {
  readonly #change: (bytes: number) => void;
  #bytes = 0;

  constructor(change: (bytes: number) => void) {
    this.#change = change;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Throws 429 when a sender of the request holds too much, 503 when all requests together do. */
  take(bytes: number): void {
    this.#change(bytes);
    this.#bytes += bytes;
  }

  /** Gives everything back; a second call changes nothing. */
  release(): void {
    if (this.#bytes > 0) this.#change(-this.#bytes);
    this.#bytes = 0;
  }
}
