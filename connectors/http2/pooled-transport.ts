/**
 * HTTP/2 transport for many small, similar requests. Writes frames directly to `node:tls`. Waiting
 * requests are written once per tick. Timeouts are checked by a periodic sweep instead of a timer
 * per request.
 */
import { failureCode } from '../../shared/http/result.ts';
import { type ConnectTarget, isCertificateRefusal, targetOf } from './connect.ts';
import { Http2Connection, type Http2ConnectionOwner } from './connection.ts';
import { ConnectionPool } from './pool.ts';
import { ActiveBatch, BatchQueue } from './requests/active-batch.ts';
import type {
  NotSent,
  OnResult,
  RequestBatch,
  RequestResult,
  RequestTemplate,
  Transport,
  TransportEvent,
  TransportLoad,
  TransportOptions,
  TransportReason,
  TransportRequest,
} from './transport.ts';

/** Number of times that an unprocessed request is repeated before the caller gets `not_sent`. */
const maxRepeats = 6;

/** Reasons for which the last connection failure is the cause. */
const connectReasons = new Set<TransportReason>([
  'address_refused',
  'connect_failed',
  'certificate_refused',
  'queue_timeout',
]);

function failureReason(code: string): TransportReason {
  if (code === 'ADDRESS_REFUSED') return 'address_refused';
  return isCertificateRefusal(code) ? 'certificate_refused' : 'connect_failed';
}

/**
 * Number of requests of a batch that are written to a connection before the next batch gets its
 * turn.
 */
const quantum = 64;

/**
 * Opens a connection pool to `options.baseUrl`. Connects when the first batch is sent. Throws if
 * the URL or a PEM is invalid, or if certificate and key do not match. The caller must have checked
 * the credentials.
 */
export const openTransport = (options: TransportOptions): Transport => new PooledTransport(options);

class PooledTransport implements Transport, Http2ConnectionOwner {
  readonly #options: TransportOptions;
  readonly #target: ConnectTarget;
  readonly #pool: ConnectionPool;
  readonly #queue = new BatchQueue();
  readonly #written = new Set<Http2Connection>();
  #isClosed = false;
  readonly #sweeper: NodeJS.Timeout;
  #retryTimer: NodeJS.Timeout | null = null;
  #isPumping = false;
  /** Callers of `connect` that wait until a connection attempt ends. */
  #connectWaiters: (() => void)[] = [];
  /** The last connection failure. The next success clears it. */
  #lastFailure: { reason: TransportReason; cause: string | undefined } | undefined;

  /** Throws the errors of `targetOf`. */
  constructor(options: TransportOptions) {
    this.#options = options;
    this.#target = targetOf(options);
    this.#pool = new ConnectionPool(
      options,
      () => new Http2Connection(options, this.#target, this),
    );
    const { connectMs, queueMs, requestMs } = options.timing;
    const minMs = Math.min(requestMs, connectMs, queueMs);
    this.#sweeper = setInterval(
      () => this.#sweep(),
      Math.min(Math.max(minMs / 10, 10), 500),
    ).unref();
  }

  sendMany(requests: RequestBatch, onResult: OnResult): Promise<void> {
    if (requests.requests.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const { signal } = requests;
      const onAbort = () => batch.stop('aborted');
      const batch = new ActiveBatch(requests, {
        onResult,
        baseUrl: this.#target.url,
        nowMs: this.#options.clock.monotonicMs(),
        done: (callbackError) => {
          signal?.removeEventListener('abort', onAbort);
          if (callbackError === undefined) resolve();
          else reject(callbackError);
        },
      });
      signal?.addEventListener('abort', onAbort, { once: true });
      if (this.#isClosed) batch.stop('closed');
      else if (signal?.aborted) onAbort();
      else {
        this.#queue.add(batch);
        this.#schedulePump();
      }
    });
  }

  /** Returns the result of a waiting request. Adds the cause if the connection failed. */
  #notSent(reason: TransportReason, afterMs: number | null): NotSent {
    const cause = connectReasons.has(reason) ? this.#lastFailure?.cause : undefined;
    return { kind: 'not_sent', reason, afterMs, ...(cause === undefined ? {} : { cause }) };
  }

  request(
    template: RequestTemplate,
    request: TransportRequest,
    signal?: AbortSignal,
  ): Promise<RequestResult> {
    return new Promise((resolve, reject) => {
      const onResult = (_: number, result: RequestResult) => {
        resolve({ ...result });
        return undefined;
      };
      this.sendMany({ template, requests: [request], signal }, onResult).catch(reject);
    });
  }

  connect(): Promise<void> {
    if (this.#isClosed || this.#pool.isOpen) return Promise.resolve();
    if (this.#pool.size === 0) this.#pool.grow();
    // The pool did not start an attempt, because the backoff of an earlier failure has not ended.
    if (this.#pool.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#connectWaiters.push(resolve));
  }

  load(): TransportLoad {
    return { connections: this.#pool.size, streams: this.#pool.active };
  }

  renew(): void {
    this.#pool.drainAll();
    this.#schedulePump();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#retryTimer) clearTimeout(this.#retryTimer);
    this.#rejectWaiting('closed', null);
    await this.#pool.close();
    clearInterval(this.#sweeper);
  }

  onOpen(): void {
    this.#lastFailure = undefined;
    this.#emit('connected', '');
    this.#endConnect();
    this.#schedulePump();
  }

  onRoundTrip(seconds: number): void {
    this.#emit('round_trip', '', seconds);
  }

  onGoaway(detail: string, code: number): void {
    this.#emit('goaway', detail);
    this.#pool.onErrorCode(code);
    this.#schedulePump();
  }

  onClosed(connection: Http2Connection, code: string, wasOpen: boolean): void {
    const { isUnreachable, waitMs } = this.#pool.remove(connection);
    this.#endConnect();
    if (wasOpen) {
      if (code === '') this.#emit('closed', '');
      else this.#emit(code === 'ping_timeout' ? 'ping_timeout' : 'lost', code);
    } else if (!connection.isRetired) {
      this.#emit('connect_failed', code);
      const reason = failureReason(code);
      this.#lastFailure = { reason, cause: failureCode(code) };
      if (reason !== 'connect_failed') this.#rejectWaiting(reason, null);
      else if (isUnreachable && this.#pool.size === 0)
        this.#rejectWaiting('connect_failed', waitMs);
    }
    this.#schedulePump();
  }

  /** Calls `#pump` once per tick. Pumping after each response would cost a write per response. */
  #schedulePump(): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    setImmediate(() => {
      this.#isPumping = false;
      this.#pump();
    });
  }

  /**
   * Opens another connection if all are full. Rejects waiting requests at once if the peer is
   * unreachable.
   */
  #grow(): void {
    const { waitMs, isUnreachable } = this.#pool.grow();
    if (waitMs === 0) return;
    if (isUnreachable) {
      const { reason } = this.#lastFailure ?? { reason: 'connect_failed' };
      this.#rejectWaiting(reason, reason === 'connect_failed' ? waitMs : null);
      return;
    }
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = null;
      this.#pump();
    }, waitMs);
  }

  #emit(event: TransportEvent['event'], detail: string, seconds?: number): void {
    this.#options.onEvent?.({ event, detail, connections: this.#pool.size, seconds });
  }

  #endConnect(): void {
    for (const resolve of this.#connectWaiters.splice(0)) resolve();
  }

  #sweep(): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#pool.sweep(nowMs);
    this.#rejectWaiting('queue_timeout', null, nowMs - this.#options.timing.queueMs);
    this.#pump();
  }

  onCapacity(): void {
    if (!this.#queue.isEmpty) this.#schedulePump();
  }

  onFirstResponse(): void {
    this.#pool.onResponse();
  }

  onUnprocessed(batch: ActiveBatch, index: number, reason: TransportReason): void {
    if (reason === 'refused_stream') this.#emit('refused', '');
    const isLimitReached = batch.putBack(index) > maxRepeats;
    if (batch.stopped === null && !this.#isClosed && !isLimitReached) {
      this.#queue.add(batch);
    } else {
      batch.withdraw(index);
      batch.settle(index, { kind: 'not_sent', reason: batch.stopped ?? reason, afterMs: null });
    }
    this.#schedulePump();
  }

  onUnknown(batch: ActiveBatch, index: number, reason: TransportReason, seconds: number): void {
    if (reason === 'timeout') this.#emit('timeout', '');
    if (reason === 'stream_reset') this.#emit('reset', '');
    batch.settle(index, { kind: 'unknown', reason, seconds });
  }

  /**
   * Writes waiting requests to connections with free streams. Opens another connection if all are
   * full.
   */
  #pump(): void {
    if (this.#isClosed) return;
    const nowMs = this.#options.clock.monotonicMs();
    for (let batch = this.#queue.next(); batch; batch = this.#queue.next()) {
      const connection = this.#pool.pick();
      if (!connection) {
        this.#grow();
        break;
      }
      connection.write(batch, quantum, nowMs);
      this.#written.add(connection);
    }
    for (const connection of this.#written) connection.flush();
    this.#written.clear();
  }

  /**
   * Rejects waiting requests. With `queuedBeforeMs` (monotonic), only requests that were queued
   * before this time.
   */
  #rejectWaiting(reason: TransportReason, afterMs: number | null, queuedBeforeMs?: number): void {
    for (const batch of this.#queue.list(queuedBeforeMs))
      batch.rejectWaiting(this.#notSent(reason, afterMs));
  }
}
