import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { ReplyAllowance } from './inner-call.ts';

const mebibyte = 1024 * 1024;

/** Bytes that replies of batches may take in memory, from the first inner reply until the last byte is sent. */
export interface ReplyLimits {
  perBatch: number;
  /** A part of `perProcess`, so that one app leaves room for the others. */
  perApp: number;
  perProcess: number;
}

export const replyLimits: ReplyLimits = {
  perBatch: 16 * mebibyte,
  perApp: 32 * mebibyte,
  perProcess: 64 * mebibyte,
};

/** What a call may answer, and so what is set aside before it runs. */
export interface ReplyEstimate {
  /** The call does not run where less than this is free. */
  minBytes: number;
  maxBytes: number;
  /** The call changes something: its reply is kept in any case. */
  isWrite: boolean;
}

/** A stored object is at most 1 MB (shared/domain/users/members.ts); the rest is what the service adds to it. */
const objectBytes = 1.125 * mebibyte;

/** A write answers with one object at most; a function with more, which it asks for as its answer comes. */
export const writeEstimate: ReplyEstimate = { minBytes: objectBytes, maxBytes: objectBytes, isWrite: true };
/** How long what is read is, is known when it has been read: it can still be refused then. */
export const objectEstimate: ReplyEstimate = { minBytes: 1, maxBytes: objectBytes, isWrite: false };
/** A list takes several times its text in memory while it is read, so few run at a time; the master key reads longer ones. */
export const listEstimate = (isMaster: boolean): ReplyEstimate => ({
  minBytes: 1,
  maxBytes: (isMaster ? 8 : 4) * mebibyte,
  isWrite: false,
});

/** After so much that was read and had no room, a batch reads no more: it would cost the database only. */
const maxDiscardedBytes = 8 * mebibyte;

/** A sum that has a limit. */
class MemoryAccount {
  /** Bytes of replies, and bytes set aside for calls that run now. */
  held = 0;
  reserved = 0;
  readonly #limit: number;
  readonly #refusal: () => Refusal;

  constructor(limit: number, refusal: () => Refusal) {
    this.#limit = limit;
    this.#refusal = refusal;
  }

  /** What would be free if no call ran. */
  get free(): number {
    return this.#limit - this.held;
  }

  get freeNow(): number {
    return this.free - this.reserved;
  }

  refusal(): Refusal {
    return this.#refusal();
  }
}

const batchIsFull = () => refuse('tooLarge', 'The replies of this batch are too large.');
const retryAfterSeconds = 1;
const appIsFull = () =>
  new Refusal('tooManyRequests', { text: 'Too many replies of batches wait to be read.', retryAfterSeconds });
const processIsFull = () => new Refusal('unavailable', { retryAfterSeconds });

/** The memory for replies of all batches of one process. */
export class ReplyBudget {
  readonly #limits: ReplyLimits;
  readonly #process: MemoryAccount;
  readonly #apps = new Map<string, { account: MemoryAccount; batches: number }>();
  readonly #waiting = new Set<() => void>();

  constructor(limits: ReplyLimits = replyLimits) {
    this.#limits = limits;
    this.#process = new MemoryAccount(limits.perProcess, processIsFull);
  }

  /** Bytes that replies take now, over all batches. */
  get heldBytes(): number {
    return this.#process.held;
  }

  /** Begins a batch; `close` of what this gives must follow. Throws 429 or 503 where not one write has room. */
  open(appId: string): BatchBudget {
    const app = this.#apps.get(appId) ?? {
      account: new MemoryAccount(this.#limits.perApp, appIsFull),
      batches: 0,
    };
    for (const account of [app.account, this.#process])
      if (account.free < writeEstimate.minBytes) throw account.refusal();
    this.#apps.set(appId, app);
    app.batches += 1;
    const own = new MemoryAccount(this.#limits.perBatch, batchIsFull);
    return new BatchBudget([own, app.account, this.#process], {
      changed: () => this.#changed(),
      nextChange: () => new Promise((resolve) => void this.#waiting.add(resolve)),
      closed: () => {
        app.batches -= 1;
        if (app.batches === 0) this.#apps.delete(appId);
      },
    });
  }

  #changed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }
}

interface BudgetEvents {
  changed(): void;
  nextChange(): Promise<void>;
  closed(): void;
}

/** The part of one batch: of its own limit, of its app's and of the process's. */
export class BatchBudget {
  readonly #accounts: MemoryAccount[];
  readonly #events: BudgetEvents;
  #held = 0;
  /** Bytes of lists and objects that were read and had no room. */
  #discardedBytes = 0;
  #isClosed = false;

  constructor(accounts: MemoryAccount[], events: BudgetEvents) {
    this.#accounts = accounts;
    this.#events = events;
  }

  /**
   * Sets bytes aside for a call that is about to run; gives the refusal of a call that must not run. Waits while calls
   * that run now hold what is missing: each of them ends without waiting here, so somebody can always go on.
   */
  async reserve({ minBytes, maxBytes, isWrite }: ReplyEstimate): Promise<Reservation | Refusal> {
    for (;;) {
      if (!isWrite && this.#discardedBytes > maxDiscardedBytes) return batchIsFull();
      const full = this.#accounts.find((account) => account.free < minBytes);
      if (full) return full.refusal();
      const bytes = Math.min(maxBytes, ...this.#accounts.map(({ free }) => free));
      if (this.#tryReserve(bytes)) return new Reservation(this, bytes, isWrite);
      await this.#events.nextChange();
    }
  }

  /** Frees all that the batch holds: its reply was sent, or will never be. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.add('held', -this.#held);
    this.#events.closed();
  }

  /** Reserves further bytes, if they are free now. */
  tryExtend(bytes: number): boolean {
    return this.#tryReserve(bytes);
  }

  /** The refusal of a reply that was read and has no room in place of the `reserved` bytes. */
  refusalFor(bytes: number, reserved: number): Refusal | undefined {
    const full = this.#accounts.find(({ freeNow }) => freeNow + reserved < bytes);
    if (full) this.#discardedBytes += bytes;
    return full?.refusal();
  }

  add(kind: 'held' | 'reserved', bytes: number): void {
    if (kind === 'held') this.#held += bytes;
    for (const account of this.#accounts) account[kind] += bytes;
    this.#events.changed();
  }

  #tryReserve(bytes: number): boolean {
    if (this.#accounts.some(({ freeNow }) => freeNow < bytes)) return false;
    for (const account of this.#accounts) account.reserved += bytes;
    return true;
  }
}

/** The room of one call that runs; `keep` or `drop` ends it. */
export class Reservation implements ReplyAllowance {
  readonly #budget: BatchBudget;
  readonly #isWrite: boolean;
  #reserved: number;

  constructor(budget: BatchBudget, reserved: number, isWrite: boolean) {
    this.#budget = budget;
    this.#reserved = reserved;
    this.#isWrite = isWrite;
  }

  /** Says that the reply has `bytes` so far; false where there is no room for them. */
  growTo(bytes: number): boolean {
    const missing = bytes - this.#reserved;
    if (missing <= 0) return true;
    if (this.#budget.tryExtend(missing)) {
      this.#reserved += missing;
      return true;
    }
    // Such a reply is given up: another one that grows at the same time may have its part.
    this.release();
    return false;
  }

  /**
   * Counts a reply of `bytes` from now on. Gives a refusal where it is too large, never for a write: what was done
   * must be told.
   */
  keep(bytes: number): Refusal | undefined {
    const full = this.#isWrite ? undefined : this.#budget.refusalFor(bytes, this.#reserved);
    if (!full) this.#budget.add('held', bytes);
    this.release();
    return full;
  }

  /** Frees what was set aside. */
  release(): void {
    const bytes = this.#reserved;
    this.#reserved = 0;
    this.#budget.add('reserved', -bytes);
  }
}
