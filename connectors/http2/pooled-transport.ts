/**
 * What both transports are made of: a pool of connections, a loop that hands what waits to them once per turn, a
 * sweep that stands for all timers, and what is told of connections.
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

/** How often one request may be handed back and written again before the caller is told. */
export const maxRepeats = 6;

/** Reasons that the failure to connect explains; the others are our own doing. */
const ofConnecting = new Set<TransportReason>(['connect_failed', 'certificate_refused', 'queue_timeout']);

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
  /** Why the last connection did not come to be; gone with the next that does. */
  #lastFailure: string | undefined;

  /** Throws as `targetOf`. */
  constructor(options: TransportOptions) {
    this.options = options;
    this.target = targetOf(options);
    this.pool = new ConnectionPool(options, () => this.open());
    const { connectMs, queueMs, requestMs } = options.timing;
    const shortestMs = Math.min(requestMs, connectMs, queueMs);
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(Math.max(shortestMs / 10, 10), 500)).unref();
  }

  abstract sendMany(batch: RequestBatch, onReply: OnResult): Promise<void>;

  /** Begins another connection. */
  protected abstract open(): C;

  /** What every connection may have of streams, at first and in its life. */
  protected get streamLimits(): { firstStreams: number; streamsPerConnection: number } {
    const { firstStreams = Number.POSITIVE_INFINITY } = this.options;
    const { streamsPerConnection = defaultStreamsPerConnection } = this.options;
    return { firstStreams, streamsPerConnection };
  }

  /** Gives connections with a free place what waits; `grow` where there is none. */
  protected abstract pump(): void;

  /** How what waits is handed back; without a connection the reason says too little. */
  protected notSent(reason: TransportReason, afterMs: number | null): NotSent {
    const cause = ofConnecting.has(reason) ? this.#lastFailure : undefined;
    return { kind: 'not_sent', reason, afterMs, ...(cause === undefined ? {} : { cause }) };
  }

  /** Hands back what waits, or of it what came before a time (monotonic). */
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
    this.schedulePump();
  }

  abstract onCapacity(): void;

  onRoundTrip(seconds: number): void {
    this.emit('round_trip', '', seconds);
  }

  onGoaway(detail: string): void {
    this.emit('goaway', detail);
    this.schedulePump();
  }

  onClosed(connection: C, code: string, wasOpen: boolean): void {
    const { isHopeless, waitMs } = this.pool.remove(connection);
    if (wasOpen) {
      if (code === '') this.emit('closed', '');
      else this.emit(code === 'ping_timeout' ? 'ping_timeout' : 'lost', code);
    } else if (!connection.isRetired) {
      this.emit('connect_failed', code);
      this.#lastFailure = failureCode(code);
      if (isCertificateRefusal(code)) this.rejectWaiting('certificate_refused', null);
      else if (isHopeless && this.pool.size === 0) this.rejectWaiting('connect_failed', waitMs);
    }
    this.schedulePump();
  }

  /** Once per loop turn, not once per reply: a peer that flushes every reply would cost a write for each. */
  protected schedulePump(): void {
    if (this.#isPumping || this.isClosed) return;
    this.#isPumping = true;
    setImmediate(() => {
      this.#isPumping = false;
      this.pump();
    });
  }

  /** All connections are full. Where there is none and none may be made: a hopeless peer is told at once. */
  protected grow(): void {
    const { waitMs, isHopeless } = this.pool.grow();
    if (waitMs === 0) return;
    if (isHopeless) {
      this.rejectWaiting('connect_failed', waitMs);
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

  #sweep(): void {
    const nowMs = this.options.clock.monotonicMs();
    this.pool.sweep(nowMs);
    this.rejectWaiting('queue_timeout', null, nowMs - this.options.timing.queueMs);
    this.pump();
  }
}
