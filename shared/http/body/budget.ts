import { Refusal } from '../../domain/errors/errors.ts';

export interface BudgetLimits {
  /** Bytes of all bodies. */
  total: number;
  /** Bytes of one sender: an IP address or an app. */
  perSender: number;
}

/** `Retry-After` of a refused sender: a body is in memory for a fraction of a second. */
const retryAfterSeconds = 1;

/** Memory budget of request bodies, limited in total and per sender. */
export class BodyBudget {
  readonly #limits: BudgetLimits;
  readonly #onChange: (bytes: number) => void;
  /** Bytes by sender, without senders at zero. */
  readonly #held = new Map<string, number>();
  #total = 0;

  /** `onChange` receives each change of the total, in bytes. */
  constructor(limits: BudgetLimits, onChange: (bytes: number) => void = () => undefined) {
    this.#limits = limits;
    this.#onChange = onChange;
  }

  /** Bytes in memory now. */
  get bytes(): number {
    return this.#total;
  }

  /** Opens a reservation for one request, charged to all of `senders`. */
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
    const isOver = (sender: string) =>
      (this.#held.get(sender) ?? 0) + bytes > this.#limits.perSender;
    if (senders.some(isOver)) throw new Refusal('tooManyRequests', { retryAfterSeconds });
    if (this.#total + bytes > this.#limits.total)
      throw new Refusal('unavailable', { retryAfterSeconds });
  }
}

/** Reservation of one request in a budget. */
export class BodyReservation {
  readonly #change: (bytes: number) => void;
  #bytes = 0;

  constructor(change: (bytes: number) => void) {
    this.#change = change;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes. Throws 429 if a sender of the request is over its limit, 503 if the process is. */
  take(bytes: number): void {
    this.#change(bytes);
    this.#bytes += bytes;
  }

  /** Releases all bytes; idempotent. */
  release(): void {
    if (this.#bytes > 0) this.#change(-this.#bytes);
    this.#bytes = 0;
  }
}
