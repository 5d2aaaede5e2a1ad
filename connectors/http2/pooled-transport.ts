/**
 * Base of both transports: connection pool, a pump that writes waiting requests once per turn of the event loop, a
 * periodic sweep instead of timers per request, and events of connections.
 */
import { failureCode } from '../../shared/http/connect-failure.ts';
import { type ConnectTarget, targetOf } from './connect.ts';
import { type ConnectionListener, ConnectionPool, type PooledConnection } from './pool.ts';
import { sendSingleRequest } from './single-request.ts';
import { isCertificateRefusal } from './tls.ts';
import {
  defaultStreamsPerConnection,
  type NotSent,
  type OnResult,
  type RequestBatch,
  type RequestResult,
  type RequestTemplate,
  type Transport,
  type TransportEvent,
  type TransportLoad,
  type TransportOptions,
  type TransportReason,
  type TransportRequest,
} from './transport.ts';

/** Repeats of a request that was not processed, before the caller gets `not_sent`. */
export const maxRepeats = 6;

/** Reasons whose cause is the last connection failure. */
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

export abstract class PooledTransport<C extends PooledConnection>
  implements Transport, ConnectionListener<C>
{
  protected readonly options: TransportOptions;
  protected readonly target: ConnectTarget;
  protected readonly pool: ConnectionPool<C>;
  protected isClosed = false;
  readonly #sweeper: NodeJS.Timeout;
  #retryTimer: NodeJS.Timeout | null = null;
  #isPumping = false;
  /** Callers of `connect` that wait for the end of a connection attempt. */
  #connectWaiters: (() => void)[] = [];
  /** Code of the last connection failure; cleared by the next success. */
  #lastFailure: string | undefined;
  /** What that failure means for waiting requests. */
  #failureReason: TransportReason = 'connect_failed';

  /** Throws like `targetOf`. */
  constructor(options: TransportOptions) {
    this.options = options;
    this.target = targetOf(options);
    this.pool = new ConnectionPool(options, () => this.open());
    const { connectMs, queueMs, requestMs } = options.timing;
    const shortestMs = Math.min(requestMs, connectMs, queueMs);
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(Math.max(shortestMs / 10, 10), 500)).unref();
  }

  abstract sendMany(batch: RequestBatch, onReply: OnResult): Promise<void>;

  /** Starts another connection. */
  protected abstract open(): C;

  /** Streams of a connection before its first accepted response, and over its life. */
  protected get streamLimits(): { firstStreams: number; streamsPerConnection: number } {
    const { firstStreams = Number.POSITIVE_INFINITY } = this.options;
    const { streamsPerConnection = defaultStreamsPerConnection } = this.options;
    return { firstStreams, streamsPerConnection };
  }

  /** Writes waiting requests to connections with free streams; calls `grow` without such a connection. */
  protected abstract pump(): void;

  /** Returns the result of a waiting request, with the cause of a failed connection. */
  protected notSent(reason: TransportReason, afterMs: number | null): NotSent {
    const cause = connectReasons.has(reason) ? this.#lastFailure : undefined;
    return { kind: 'not_sent', reason, afterMs, ...(cause === undefined ? {} : { cause }) };
  }

  /** Rejects waiting requests, all or those queued before a time (monotonic). */
  protected abstract rejectWaiting(
    reason: TransportReason,
    afterMs: number | null,
    queuedBeforeMs?: number,
  ): void;

  request(
    template: RequestTemplate,
    request: TransportRequest,
    signal?: AbortSignal,
  ): Promise<RequestResult> {
    return sendSingleRequest(this, { template, requests: [request], signal });
  }

  connect(): Promise<void> {
    if (this.isClosed || this.pool.isOpen) return Promise.resolve();
    if (this.pool.size === 0) this.pool.grow();
    // No attempt was started: the back-off of an earlier failure has not ended.
    if (this.pool.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#connectWaiters.push(resolve));
  }

  load(): TransportLoad {
    return { connections: this.pool.size, streams: this.pool.active };
  }

  renew(): void {
    this.pool.drainAll();
    this.schedulePump();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    if (this.#retryTimer) clearTimeout(this.#retryTimer);
    this.rejectWaiting('closed', null);
    await this.pool.close();
    clearInterval(this.#sweeper);
  }

  onOpen(): void {
    this.#lastFailure = undefined;
    this.emit('connected', '');
    this.#endConnect();
    this.schedulePump();
  }

  abstract onCapacity(): void;

  onRoundTrip(seconds: number): void {
    this.emit('round_trip', '', seconds);
  }

  onGoaway(detail: string, code: number): void {
    this.emit('goaway', detail);
    this.pool.onErrorCode(code);
    this.schedulePump();
  }

  onClosed(connection: C, code: string, wasOpen: boolean): void {
    const { isUnreachable, waitMs } = this.pool.remove(connection);
    this.#endConnect();
    if (wasOpen) {
      if (code === '') this.emit('closed', '');
      else this.emit(code === 'ping_timeout' ? 'ping_timeout' : 'lost', code);
    } else if (!connection.isRetired) {
      this.emit('connect_failed', code);
      this.#lastFailure = failureCode(code);
      this.#failureReason = failureReason(code);
      if (this.#failureReason !== 'connect_failed') this.rejectWaiting(this.#failureReason, null);
      else if (isUnreachable && this.pool.size === 0) this.rejectWaiting('connect_failed', waitMs);
    }
    this.schedulePump();
  }

  /** Pumps once per turn of the event loop: once per response would cost a write for each. */
  protected schedulePump(): void {
    if (this.#isPumping || this.isClosed) return;
    this.#isPumping = true;
    setImmediate(() => {
      this.#isPumping = false;
      this.pump();
    });
  }

  /** Opens another connection when all are full. Rejects waiting requests at once when the peer is unreachable. */
  protected grow(): void {
    const { waitMs, isUnreachable } = this.pool.grow();
    if (waitMs === 0) return;
    if (isUnreachable) {
      this.rejectWaiting(this.#failureReason, this.#failureReason === 'connect_failed' ? waitMs : null);
      return;
    }
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = null;
      this.pump();
    }, waitMs);
  }

  protected emit(event: TransportEvent['event'], detail: string, seconds?: number): void {
    this.options.onEvent?.({ event, detail, connections: this.pool.size, seconds });
  }

  #endConnect(): void {
    for (const resolve of this.#connectWaiters.splice(0)) resolve();
  }

  #sweep(): void {
    const nowMs = this.options.clock.monotonicMs();
    this.pool.sweep(nowMs);
    this.rejectWaiting('queue_timeout', null, nowMs - this.options.timing.queueMs);
    this.pump();
  }
}
