import { Refusal } from '../../domain/errors/errors.ts';

export interface BudgetLimits {
  /** Maximum number of bytes of all bodies. */
  total: number;
  /** Maximum number of bytes per sender. A sender is an IP address or an app. */
  perSender: number;
}

/** `Retry-After` for a refused sender. A body is in memory only for a fraction of a second. */
const retryAfterSeconds = 1;

/** Limits the memory of request bodies, in total and per sender. */
export class BodyBudget {
  readonly #limits: BudgetLimits;
  readonly #onChange: (bytes: number) => void;
  /** Bytes by sender. Senders without bytes are removed. */
  readonly #bytesBySender = new Map<string, number>();
  #total = 0;

  /** `onChange` is called with each change of the total in bytes. */
  constructor(limits: BudgetLimits, onChange: (bytes: number) => void = () => undefined) {
    this.#limits = limits;
    this.#onChange = onChange;
  }

  /** Bytes that are in memory now. */
  get bytes(): number {
    return this.#total;
  }

  /** Opens a reservation for one request. Its bytes count for each of `senders`. */
  open(senders: string[]): BodyReservation {
    return new BodyReservation((bytes) => this.#change(senders, bytes));
  }

  #change(senders: string[], bytes: number): void {
    if (bytes > 0) this.#check(senders, bytes);
    this.#total += bytes;
    this.#onChange(bytes);
    for (const sender of senders) {
      const senderBytes = (this.#bytesBySender.get(sender) ?? 0) + bytes;
      if (senderBytes > 0) this.#bytesBySender.set(sender, senderBytes);
      else this.#bytesBySender.delete(sender);
    }
  }

  #check(senders: string[], bytes: number): void {
    const isOver = (sender: string) =>
      (this.#bytesBySender.get(sender) ?? 0) + bytes > this.#limits.perSender;
    if (senders.some(isOver)) throw new Refusal('tooManyRequests', { retryAfterSeconds });
    if (this.#total + bytes > this.#limits.total)
      throw new Refusal('unavailable', { retryAfterSeconds });
  }
}

/** Bytes that one request has reserved. */
export class BodyReservation {
  readonly #change: (bytes: number) => void;
  #bytes = 0;

  constructor(change: (bytes: number) => void) {
    this.#change = change;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds bytes. Throws error 429 if a sender exceeds its limit, and 503 if the total limit is
   * exceeded.
   */
  take(bytes: number): void {
    this.#change(bytes);
    this.#bytes += bytes;
  }

  /** Releases all bytes. Further calls do nothing. */
  release(): void {
    if (this.#bytes > 0) this.#change(-this.#bytes);
    this.#bytes = 0;
  }
}
