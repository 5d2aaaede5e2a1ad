import { Readable } from 'node:stream';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { ReplyAllowance } from './calls.ts';

const mebibyte = 1024 * 1024;

/**
 * Limits of the memory for batch replies, in bytes. A reply counts from the first inner reply until
 * its last byte is sent.
 */
export interface ReplyLimits {
  perBatch: number;
  /** Less than `perProcess`, so that one app cannot use all memory. */
  perApp: number;
  perProcess: number;
}

const replyLimits: ReplyLimits = {
  perBatch: 16 * mebibyte,
  perApp: 32 * mebibyte,
  perProcess: 64 * mebibyte,
};

/** Estimated size of a reply, which is reserved before the call runs. */
export interface ReplyEstimate {
  /** Minimum of free memory that the call needs to run. */
  minBytes: number;
  maxBytes: number;
  /** True if the call changes data. Its reply is then always kept. */
  isWrite: boolean;
}

/**
 * Maximum size of a reply with one object: 1 MB (shared/domain/users/user.ts) and the members that
 * Carillon adds.
 */
const objectBytes = 1.125 * mebibyte;

/**
 * Estimate for writes. A write returns at most one object. A function may return more, and reserves
 * more memory while its reply arrives.
 */
export const writeEstimate: ReplyEstimate = {
  minBytes: objectBytes,
  maxBytes: objectBytes,
  isWrite: true,
};
/** Estimate for reads of one object. They can still be refused after the read. */
export const objectEstimate: ReplyEstimate = { minBytes: 1, maxBytes: objectBytes, isWrite: false };
/**
 * Estimate for lists. A list uses several times the size of its text while it is read. Callers with
 * the master key may read longer lists.
 */
export const listEstimate = (isMaster: boolean): ReplyEstimate => ({
  minBytes: 1,
  maxBytes: (isMaster ? 8 : 4) * mebibyte,
  isWrite: false,
});

/** Number of discarded bytes after which a batch reads no more, to save database load. */
const maxDiscardedBytes = 8 * mebibyte;

/** Counter of bytes with a limit. */
class MemoryAccount {
  /** Bytes of finished replies. `reserved` counts the bytes reserved for running calls. */
  used = 0;
  reserved = 0;
  readonly #limit: number;
  readonly #refusal: () => Refusal;

  constructor(limit: number, refusal: () => Refusal) {
    this.#limit = limit;
    this.#refusal = refusal;
  }

  /** Bytes that are free when all running calls have ended. */
  get free(): number {
    return this.#limit - this.used;
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
  new Refusal('tooManyRequests', {
    text: 'Too many replies of batches wait to be read.',
    retryAfterSeconds,
  });
const processIsFull = () => new Refusal('unavailable', { retryAfterSeconds });

/** Memory for the replies of all batches of one process. */
export class ReplyBudget {
  readonly #limits: ReplyLimits;
  readonly #process: MemoryAccount;
  readonly #apps = new Map<string, { account: MemoryAccount; batches: number }>();
  readonly #waiting = new Set<() => void>();

  constructor(limits: ReplyLimits = replyLimits) {
    this.#limits = limits;
    this.#process = new MemoryAccount(limits.perProcess, processIsFull);
  }

  /** Number of bytes in the replies of all batches. */
  get usedBytes(): number {
    return this.#process.used;
  }

  /**
   * Opens the budget of a batch. The caller must close it. Throws error 429 or 503 if the memory
   * does not suffice for one write.
   */
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

/** Changes of the memory that a batch reports and waits for. */
interface BudgetEvents {
  changed(): void;
  nextChange(): Promise<void>;
  closed(): void;
}

/** Budget of one batch. It counts against the limits of the batch, its app and the process. */
export class BatchBudget {
  readonly #accounts: MemoryAccount[];
  readonly #events: BudgetEvents;
  #used = 0;
  /** Bytes of lists and objects that were read and then refused. */
  #discardedBytes = 0;
  #isClosed = false;

  constructor(accounts: MemoryAccount[], events: BudgetEvents) {
    this.#accounts = accounts;
    this.#events = events;
  }

  /**
   * Reserves bytes for a call before it runs. Returns a refusal if the call must not run. Waits
   * while running calls use the missing bytes. Running calls never wait here, so there are no
   * deadlocks.
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

  /** Frees all bytes of the batch. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.add('used', -this.#used);
    this.#events.closed();
  }

  /** Reserves more bytes if they are free now. */
  tryExtend(bytes: number): boolean {
    return this.#tryReserve(bytes);
  }

  /** Returns a refusal if a reply is larger than the free memory plus its `reserved` bytes. */
  refusalFor(bytes: number, reserved: number): Refusal | undefined {
    const full = this.#accounts.find(({ freeNow }) => freeNow + reserved < bytes);
    if (full) this.#discardedBytes += bytes;
    return full?.refusal();
  }

  add(kind: 'used' | 'reserved', bytes: number): void {
    if (kind === 'used') this.#used += bytes;
    for (const account of this.#accounts) account[kind] += bytes;
    this.#events.changed();
  }

  #tryReserve(bytes: number): boolean {
    if (this.#accounts.some(({ freeNow }) => freeNow < bytes)) return false;
    for (const account of this.#accounts) account.reserved += bytes;
    return true;
  }
}

/** Bytes reserved for a running call. Ends with `keep` or `release`. */
class Reservation implements ReplyAllowance {
  readonly #budget: BatchBudget;
  readonly #isWrite: boolean;
  #reserved: number;

  constructor(budget: BatchBudget, reserved: number, isWrite: boolean) {
    this.#budget = budget;
    this.#reserved = reserved;
    this.#isWrite = isWrite;
  }

  growTo(bytes: number): boolean {
    const missing = bytes - this.#reserved;
    if (missing <= 0) return true;
    if (this.#budget.tryExtend(missing)) {
      this.#reserved += missing;
      return true;
    }
    // This reply is refused, so other growing replies may use its bytes.
    this.release();
    return false;
  }

  /**
   * Counts a reply of `bytes` until the batch closes. Returns a refusal if the reply is too large.
   * A write is never refused, because its result must reach the client.
   */
  keep(bytes: number): Refusal | undefined {
    const full = this.#isWrite ? undefined : this.#budget.refusalFor(bytes, this.#reserved);
    if (!full) this.#budget.add('used', bytes);
    this.release();
    return full;
  }

  /** Frees the reserved bytes. */
  release(): void {
    const bytes = this.#reserved;
    this.#reserved = 0;
    this.#budget.add('reserved', -bytes);
  }
}

/** JSON text. A large reply is a stream, so that its memory counts until it is sent. */
export type BatchReply = string | Readable;

/** Maximum length of a reply that fits into the buffers of a connection. */
const shortLength = 64 * 1024;
/** Time that a client has to read a large reply. */
const readTimeoutMs = 60_000;

/** Joins parts with commas. Calls `release` once, when the parts are no longer in memory. */
export function writeReply(
  { begin, parts, end }: { begin: string; parts: string[]; end: string },
  release: () => void,
  timeoutMs = readTimeoutMs,
): BatchReply {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length <= shortLength) {
    release();
    return `${begin}${parts.join(',')}${end}`;
  }
  const stream = Readable.from(chunksOf(begin, parts, end), { objectMode: false });
  const timer = setTimeout(
    () => stream.destroy(new Error('the reply was not read in time')),
    timeoutMs,
  );
  stream.on('error', () => undefined);
  return stream.once('close', () => {
    clearTimeout(timer);
    release();
  });
}

/**
 * Splits the reply into chunks. Unread text then stays in the stream, where it counts, and not in a
 * socket's buffer.
 */
function* chunksOf(begin: string, parts: string[], end: string): Generator<Buffer> {
  for (const [index, part] of parts.entries()) {
    const bytes = Buffer.from(`${index === 0 ? begin : ','}${part}`);
    for (let from = 0; from < bytes.length; from += shortLength)
      yield bytes.subarray(from, from + shortLength);
  }
  yield Buffer.from(end);
}
