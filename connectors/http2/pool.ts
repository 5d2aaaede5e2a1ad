import { constants } from 'node:http2';
import { backoffMs } from '../../shared/backoff.ts';
import { hourMs } from '../../shared/clock.ts';
import type { Http2Connection } from './connection.ts';
import type { TransportOptions } from './transport.ts';

const defaultBackoff = { firstMs: 100, maxMs: 30_000 };
/** Number of failures after which waiting requests are rejected instead of kept. */
const unreachableAfter = 3;

/**
 * Delay between connection attempts. It grows exponentially and has jitter, so that processes do
 * not retry at the same time.
 */
export class Backoff {
  #failures = 0;
  #untilMs = 0;

  get isUnreachable(): boolean {
    return this.#failures >= unreachableAfter;
  }

  /** Counts a failure. `firstMs` is the delay after the first failure. */
  fail(nowMs: number, firstMs = defaultBackoff.firstMs): void {
    const fullMs = backoffMs(this.#failures, { ...defaultBackoff, firstMs });
    this.#failures += 1;
    this.#untilMs = nowMs + fullMs * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#failures = 0;
    this.#untilMs = 0;
  }

  /** Returns the milliseconds until the next attempt is allowed; 0 if it is allowed now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.#untilMs - nowMs));
  }
}

/** Interval at which a pool opens another connection if all are full. */
const growEveryMs = 500;
/** Shorter interval, used while the pool has fewer connections than before `drainAll`. */
const regrowEveryMs = 100;
/**
 * Age at which a connection is replaced, ± 25 %. The jitter prevents that all connections are
 * replaced at the same time.
 */
const maxAgeMs = 8 * hourMs;
/** Minimum interval between two replacements of old connections. */
const retireEveryMs = 10_000;
/**
 * First pause after ENHANCE_YOUR_CALM, INADEQUATE_SECURITY and HTTP_1_1_REQUIRED. The next
 * connection would probably be refused too.
 */
const refusedPauseMs = 1000;
/** First pause after other error codes. */
const errorPauseMs = 100;
/** If no error code arrives for this time, the pauses start again with the first pause. */
const forgetErrorsMs = 60_000;

/**
 * Connections of one transport. Picks a connection for a request, and opens, replaces and closes
 * connections.
 */
export class ConnectionPool {
  readonly #options: TransportOptions;
  readonly #open: () => Http2Connection;
  readonly #connections = new Set<Http2Connection>();
  readonly #backoff = new Backoff();
  /**
   * Pauses because of error codes of the peer. Responses do not reset them, because the peer still
   * responds between such errors.
   */
  readonly #errors = new Backoff();
  #errorAtMs = 0;
  readonly #ageJitter = 0.75 + Math.random() / 2;
  #openedAtMs = 0;
  #retiredAtMs = 0;
  /** Number of usable connections when `drainAll` was called. */
  #sizeBeforeDrain = 0;
  #onEmpty: (() => void) | null = null;

  constructor(options: TransportOptions, open: () => Http2Connection) {
    this.#options = options;
    this.#open = open;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** True if a connection is established. */
  get isOpen(): boolean {
    for (const { phase } of this.#connections) if (phase !== 'connecting') return true;
    return false;
  }

  get active(): number {
    let active = 0;
    for (const connection of this.#connections) active += connection.active;
    return active;
  }

  /** Returns the connection with the fewest open streams that has a free stream. */
  pick(): Http2Connection | undefined {
    let best: Http2Connection | undefined;
    for (const connection of this.#connections)
      if (connection.freeStreams > 0 && (best === undefined || connection.active < best.active))
        best = connection;
    return best;
  }

  /**
   * Opens another connection if all are full: one at a time, and at most one every `growEveryMs`.
   * If no connection is usable, returns how long to wait for the next attempt.
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
   * Pauses new connections because of an error code in GOAWAY or RST_STREAM. Open connections are
   * still used.
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
   * Removes a connection. If it broke before its first response, this counts as a failed attempt,
   * which prevents a tight loop.
   */
  remove(connection: Http2Connection): { isUnreachable: boolean; waitMs: number } {
    const nowMs = this.#options.clock.monotonicMs();
    this.#connections.delete(connection);
    if (!connection.hasResponse && !connection.isRetired) this.#backoff.fail(nowMs);
    if (this.#connections.size === 0) this.#onEmpty?.();
    return { isUnreachable: this.#backoff.isUnreachable, waitMs: this.#waitMs(nowMs) };
  }

  /** Drains all connections. New connections are opened one by one as needed. */
  drainAll(): void {
    this.#sizeBeforeDrain = Math.max(0, this.#usable());
    for (const connection of [...this.#connections]) connection.drain();
  }

  sweep(nowMs: number): void {
    for (const connection of [...this.#connections]) connection.sweep(nowMs);
    this.#retireOldest(nowMs);
  }

  /** Drains all connections. Destroys the connections that are left after `drainMs`. */
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
   * Replaces one old connection. Opens its successor first, so that no request waits. Replacing
   * connections uses new addresses, and stream ids never run out.
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
   * Returns the number of usable connections. Returns -1 if a connection is connecting or waits for
   * its first accepted response.
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
