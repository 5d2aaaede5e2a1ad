import { constants } from 'node:http2';
import { backoffMs } from '../../shared/backoff.ts';
import { hourMs } from '../../shared/clock.ts';
import { isTemporaryStatus } from '../../shared/http/result.ts';
import type { TransportOptions } from './transport.ts';

const usual = { firstMs: 100, longestMs: 30_000 };
/** Failures after which waiting requests are rejected instead of kept. */
const unreachableAfter = 3;

/**
 * Delay between connection attempts: exponential, with jitter so that processes do not retry in
 * step.
 */
export class Backoff {
  #failures = 0;
  #untilMs = 0;

  get isUnreachable(): boolean {
    return this.#failures >= unreachableAfter;
  }

  /** Counts a failure; `firstMs` is the delay after the first one. */
  fail(nowMs: number, firstMs = usual.firstMs): void {
    const fullMs = backoffMs(this.#failures, { ...usual, firstMs });
    this.#failures += 1;
    this.#untilMs = nowMs + fullMs * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#failures = 0;
    this.#untilMs = 0;
  }

  /** Returns the milliseconds until the next attempt; 0 when it may be made now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.#untilMs - nowMs));
  }
}

/** Interval at which a full pool opens another connection. */
const growEveryMs = 500;
/** The same while it has fewer connections than before `drainAll`. */
const regrowEveryMs = 100;
/** Age at which a connection is replaced, ± 25 % so that a pool is not replaced all at once. */
const maxAgeMs = 8 * hourMs;
/** Shortest interval between two replacements for age. */
const retireEveryMs = 10_000;
/**
 * First pause after ENHANCE_YOUR_CALM, INADEQUATE_SECURITY and HTTP_1_1_REQUIRED: the next
 * connection is likely refused too.
 */
const refusedPauseMs = 1000;
/** First pause after other error codes. */
const errorPauseMs = 100;
/** Time without an error code after which the next pause is a first one again. */
const forgetErrorsMs = 60_000;

/** Connection, as the pool uses it. */
export interface PooledConnection {
  readonly phase: 'connecting' | 'open' | 'draining' | 'closed';
  /** Streams that may be opened now; 0 when it takes no requests. */
  readonly freeStreams: number;
  /**
   * Its own window limits it below the peer's limit, so another connection would not speed up
   * responses.
   */
  readonly isBelowPeerLimit: boolean;
  /** Open streams. */
  readonly active: number;
  /** A response showed that the peer accepts our credentials. */
  readonly hasAcceptedCredentials: boolean;
  /** The pool drained it: its end is not a failure. */
  readonly isRetired: boolean;
  /** It received at least one response. */
  readonly hasResponse: boolean;
  /** Start of the connection attempt, monotonic. */
  readonly startedAtMs: number;
  /** Stops taking requests and closes after the last response. */
  drain(): void;
  destroy(code: string): void;
  /** Checks deadlines and the watchdog; called periodically, instead of a timer per request. */
  sweep(nowMs: number): void;
}

/** Events of a connection. */
export interface ConnectionListener<C> {
  onOpen(): void;
  onRoundTrip(seconds: number): void;
  /** A stream ended, the limit changed or the socket drained. */
  onCapacity(): void;
  /**
   * The peer ended the connection with a code of RFC 9113 7, or a stream with ENHANCE_YOUR_CALM.
   */
  onGoaway(detail: string, code: number): void;
  /** `code`: of the error that ended it, empty without one. */
  onClosed(connection: C, code: string, wasOpen: boolean): void;
}

/**
 * Returns whether a status shows that the credentials were accepted: all do but 401, 403 and the
 * temporary ones.
 */
export const showsAcceptedCredentials = (status: number): boolean =>
  status !== 401 && status !== 403 && !isTemporaryStatus(status);

/** Connections of one transport: selects one for a request, opens, replaces and closes them. */
export class ConnectionPool<C extends PooledConnection> {
  readonly #options: TransportOptions;
  readonly #open: () => C;
  readonly #connections = new Set<C>();
  readonly #backoff = new Backoff();
  /**
   * Pauses by error codes of the peer. Responses do not end them: the peer answers between its
   * complaints.
   */
  readonly #errors = new Backoff();
  #errorAtMs = 0;
  readonly #ageJitter = 0.75 + Math.random() / 2;
  #openedAtMs = 0;
  #retiredAtMs = 0;
  /** Usable connections at the time of `drainAll`. */
  #sizeBeforeDrain = 0;
  #onEmpty: (() => void) | null = null;

  constructor(options: TransportOptions, open: () => C) {
    this.#options = options;
    this.#open = open;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Has a connection that is established. */
  get isOpen(): boolean {
    for (const { phase } of this.#connections) if (phase !== 'connecting') return true;
    return false;
  }

  get active(): number {
    let active = 0;
    for (const connection of this.#connections) active += connection.active;
    return active;
  }

  /** Returns the least loaded connection with a free stream. */
  pick(): C | undefined {
    let best: C | undefined;
    for (const connection of this.#connections)
      if (connection.freeStreams > 0 && (best === undefined || connection.active < best.active))
        best = connection;
    return best;
  }

  /**
   * Opens another connection when all are full, one at a time and at most every `growEveryMs`.
   * Without any usable connection, returns the back-off time to wait.
   */
  grow(): { waitMs: number; isUnreachable: boolean } {
    const nowMs = this.#options.clock.monotonicMs();
    const usable = this.#usable();
    const cannotGrow =
      usable < 0 || usable >= this.#options.maxConnections || this.#isBelowPeerLimit();
    const waitMs = this.#waitMs(nowMs);
    const everyMs = usable < this.#sizeBeforeDrain ? regrowEveryMs : growEveryMs;
    if (!cannotGrow && waitMs === 0 && (usable === 0 || nowMs - this.#openedAtMs >= everyMs))
      this.#add(nowMs);
    return { waitMs: usable === 0 ? waitMs : 0, isUnreachable: this.#backoff.isUnreachable };
  }

  onResponse(): void {
    this.#backoff.reset();
  }

  /**
   * Pauses new connections for an error code of GOAWAY or RST_STREAM; the open ones are used on.
   */
  onErrorCode(code: number): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (code === constants.NGHTTP2_NO_ERROR || this.#errors.waitMs(nowMs) > 0) return;
    if (nowMs - this.#errorAtMs > forgetErrorsMs) this.#errors.reset();
    this.#errorAtMs = nowMs;
    this.#errors.fail(
      nowMs,
      code >= constants.NGHTTP2_ENHANCE_YOUR_CALM ? refusedPauseMs : errorPauseMs,
    );
  }

  /**
   * Removes a connection. One that broke before its first response counts as a failed attempt, to
   * prevent a tight loop.
   */
  remove(connection: C): { isUnreachable: boolean; waitMs: number } {
    const nowMs = this.#options.clock.monotonicMs();
    this.#connections.delete(connection);
    if (!connection.hasResponse && !connection.isRetired) this.#backoff.fail(nowMs);
    if (this.#connections.size === 0) this.#onEmpty?.();
    return { isUnreachable: this.#backoff.isUnreachable, waitMs: this.#waitMs(nowMs) };
  }

  /** Drains all connections; new ones are opened one after the other, as needed. */
  drainAll(): void {
    this.#sizeBeforeDrain = Math.max(0, this.#usable());
    for (const connection of [...this.#connections]) connection.drain();
  }

  sweep(nowMs: number): void {
    for (const connection of [...this.#connections]) connection.sweep(nowMs);
    this.#retireOldest(nowMs);
  }

  /** Drains all connections and destroys those that are left after `drainMs`. */
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
   * Replaces one old connection, opening its successor first so that no request waits. New
   * connections use new addresses, and stream ids never run out.
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
    } else if (open.length === this.#connections.size && this.#waitMs(nowMs) === 0)
      this.#add(nowMs);
  }

  #waitMs(nowMs: number): number {
    return Math.max(this.#backoff.waitMs(nowMs), this.#errors.waitMs(nowMs));
  }

  #add(nowMs: number): void {
    this.#openedAtMs = nowMs;
    this.#connections.add(this.#open());
  }

  #isBelowPeerLimit(): boolean {
    for (const connection of this.#connections) if (connection.isBelowPeerLimit) return true;
    return false;
  }

  /**
   * Returns the number of usable connections; -1 while one connects or waits for its first accepted
   * response.
   */
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
