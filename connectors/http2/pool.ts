import { Backoff } from './backoff.ts';
import type { TransportOptions } from './transport.ts';

/** A full pool gets one more connection this often, … */
const growEveryMs = 500;
/** … and this often while it has fewer than before a renewal. */
const regrowEveryMs = 100;
/** A connection is replaced at this age, give or take a quarter, so that a pool is not renewed all at once. */
const maxAgeMs = 8 * 3_600_000;
/** Between two connections that are let go for their age. */
const retireEveryMs = 10_000;

/** A connection, as far as the pool is concerned. */
export interface PooledConnection {
  readonly phase: 'connecting' | 'open' | 'draining' | 'gone';
  /** Free places; 0 when it takes no requests. */
  readonly freeStreams: number;
  /** It takes fewer requests than the peer would: another connection would not be answered sooner. */
  readonly isBelowPeerLimit?: boolean;
  /** Streams that are open. */
  readonly active: number;
  /** An answer showed that the peer accepts our credentials. */
  readonly hasAcceptedCredentials: boolean;
  /** We let it go ourselves: its end is no failure. */
  readonly isRetired: boolean;
  /** Anything was answered at all. */
  readonly isAnswered: boolean;
  /** When it was begun, monotonic. */
  readonly startedAtMs: number;
  /** Takes no more requests; closes when the last answer is in. */
  drain(): void;
  destroy(code: string): void;
  /** Called every so often: deadlines and the watchdog, without a timer per request. */
  sweep(nowMs: number): void;
}

/** What a transport wants to hear of a connection's life, whatever it carries. */
export interface ConnectionListener<C> {
  onOpen(): void;
  onRoundTrip(seconds: number): void;
  /** A place became free, the limit moved, or the socket caught up. */
  onCapacity(): void;
  onGoaway(detail: string): void;
  /** `code`: of the error that ended it, empty where none did. */
  onClosed(connection: C, code: string, wasOpen: boolean): void;
}

/** 401 and 403 speak of our credentials, 429 and 5xx of nothing: all other answers show that they were accepted. */
export const showsAcceptedCredentials = (status: number): boolean =>
  status !== 401 && status !== 403 && status !== 429 && status < 500;

/** The connections of one transport: how many, which one next, and when another may be made. */
export class ConnectionPool<C extends PooledConnection> {
  readonly #options: TransportOptions;
  readonly #open: () => C;
  readonly #connections = new Set<C>();
  readonly #backoff = new Backoff();
  readonly #ageJitter = 0.75 + Math.random() / 2;
  #openedAtMs = 0;
  #retiredAtMs = 0;
  /** How many there were when all were let go at once. */
  #formerSize = 0;
  #onEmpty: (() => void) | null = null;

  constructor(options: TransportOptions, open: () => C) {
    this.#options = options;
    this.#open = open;
  }

  get size(): number {
    return this.#connections.size;
  }

  get active(): number {
    let active = 0;
    for (const connection of this.#connections) active += connection.active;
    return active;
  }

  /** The least loaded connection with a free place. */
  pick(): C | undefined {
    let best: C | undefined;
    for (const connection of this.#connections)
      if (connection.freeStreams > 0 && (best === undefined || connection.active < best.active))
        best = connection;
    return best;
  }

  /**
   * Makes one more connection when all are full, one at a time and not too often. Gives the milliseconds
   * to wait when there is none and none may be made yet; `isHopeless` says whether waiting is worth it.
   */
  grow(): { waitMs: number; isHopeless: boolean } {
    const nowMs = this.#options.clock.monotonicMs();
    const usable = this.#usable();
    const isFull = usable < 0 || usable >= this.#options.maxConnections || this.#isHeldBack();
    const waitMs = this.#backoff.waitMs(nowMs);
    const everyMs = usable < this.#formerSize ? regrowEveryMs : growEveryMs;
    if (!isFull && waitMs === 0 && (usable === 0 || nowMs - this.#openedAtMs >= everyMs)) this.#add(nowMs);
    return { waitMs: usable === 0 ? waitMs : 0, isHopeless: this.#backoff.isUnreachable };
  }

  onResponse(): void {
    this.#backoff.reset();
  }

  /** Forgets a connection; one that broke before its first answer counts as never made: no tight loop. */
  remove(connection: C): { isHopeless: boolean; waitMs: number } {
    const nowMs = this.#options.clock.monotonicMs();
    this.#connections.delete(connection);
    if (!connection.isAnswered && !connection.isRetired) this.#backoff.fail(nowMs);
    if (this.#connections.size === 0) this.#onEmpty?.();
    return { isHopeless: this.#backoff.isUnreachable, waitMs: this.#backoff.waitMs(nowMs) };
  }

  /** Lets all go; their successors are made one after the other, as they are needed. */
  drainAll(): void {
    this.#formerSize = Math.max(0, this.#usable());
    for (const connection of [...this.#connections]) connection.drain();
  }

  sweep(nowMs: number): void {
    for (const connection of [...this.#connections]) connection.sweep(nowMs);
    this.#retireOldest(nowMs);
  }

  /** Lets every connection finish for `drainMs`, then ends them. */
  async close(): Promise<void> {
    if (this.#connections.size === 0) return;
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    const end = () => {
      for (const connection of [...this.#connections]) connection.destroy('closed');
    };
    const timer = setTimeout(end, this.#options.timing.drainMs);
    this.drainAll();
    await empty;
    clearTimeout(timer);
  }

  /**
   * Replaces one connection that is old: its successor is made first, so that nothing waits. New connections
   * find new addresses, and no stream number ever comes near its end.
   */
  #retireOldest(nowMs: number): void {
    const limitMs = (this.#options.maxAgeMs ?? maxAgeMs) * this.#ageJitter;
    const pauseMs = Math.min(retireEveryMs, limitMs / 10);
    if (nowMs - this.#retiredAtMs < pauseMs) return;
    const open = [...this.#connections].filter(({ phase }) => phase === 'open');
    const oldest = open.find(({ startedAtMs }) => nowMs - startedAtMs > limitMs);
    if (!oldest) return;
    const hasOther = open.some(({ startedAtMs }) => nowMs - startedAtMs <= limitMs);
    if (hasOther) {
      this.#retiredAtMs = nowMs;
      oldest.drain();
    } else if (open.length === this.#connections.size && this.#backoff.waitMs(nowMs) === 0) this.#add(nowMs);
  }

  #add(nowMs: number): void {
    this.#openedAtMs = nowMs;
    this.#connections.add(this.#open());
  }

  #isHeldBack(): boolean {
    for (const connection of this.#connections) if (connection.isBelowPeerLimit) return true;
    return false;
  }

  /** Connections that take requests; -1 while one is being made or the peer has not accepted us yet. */
  #usable(): number {
    let usable = 0;
    for (const { phase, hasAcceptedCredentials: isAccepted } of this.#connections) {
      if (phase === 'connecting') return -1;
      if (phase !== 'open') continue;
      if (!isAccepted && this.#options.firstStreams !== undefined) return -1;
      usable += 1;
    }
    return usable;
  }
}
