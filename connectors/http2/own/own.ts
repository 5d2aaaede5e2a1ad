/** Our own HTTP/2 transport: frames straight onto `node:tls`, for many small requests that are alike. */
import { connectTls, targetOf } from '../connect.ts';
import { ConnectionPool } from '../pool.ts';
import { requestOne } from '../reply.ts';
import { isCertificateRefusal } from '../tls.ts';
import {
  type Batch,
  defaultStreamsPerConnection,
  type OnReply,
  type Reply,
  type RequestTemplate,
  type Transport,
  type TransportFact,
  type TransportLoad,
  type TransportOptions,
  type TransportReason,
  type TransportRequest,
} from '../transport.ts';
import { BatchQueue } from './batch-queue.ts';
import { BatchRun } from './batch-run.ts';
import { OwnConnection, type OwnConnectionOwner } from './connection.ts';

/** How often one request may be handed back and written again before the caller is told. */
const maxRepeats = 6;
/** Requests that a batch and a connection are given at a turn. */
const quantum = 64;

/** Opens a pool to `options.baseUrl`; see `openTransport`. */
export function openOwnTransport(options: TransportOptions): Transport {
  return new OwnTransport(options);
}

class OwnTransport implements Transport, OwnConnectionOwner {
  readonly #options: TransportOptions;
  readonly #baseUrl: URL;
  readonly #pool: ConnectionPool<OwnConnection>;
  readonly #queue = new BatchQueue();
  readonly #sweeper: NodeJS.Timeout;
  readonly #written = new Set<OwnConnection>();
  #retryTimer: NodeJS.Timeout | null = null;
  #isPumping = false;
  #isClosed = false;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#baseUrl = new URL(options.baseUrl);
    const { clock, firstStreams = Number.POSITIVE_INFINITY, timing } = options;
    const { streamsPerConnection = defaultStreamsPerConnection } = options;
    const target = targetOf(options);
    const connect = (signal: AbortSignal) => connectTls(target, signal);
    this.#pool = new ConnectionPool(
      options,
      () => new OwnConnection({ connect, firstStreams, timing, clock, streamsPerConnection }, this),
    );
    const shortestMs = Math.min(timing.requestMs, timing.connectMs, timing.queueMs);
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(Math.max(shortestMs / 10, 10), 500)).unref();
  }

  sendMany(batch: Batch, onReply: OnReply): Promise<void> {
    if (batch.requests.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => run.stop('aborted');
      const run = new BatchRun(batch, {
        onReply,
        baseUrl: this.#baseUrl,
        nowMs: this.#options.clock.monotonicMs(),
        done: (defect) => {
          batch.signal?.removeEventListener('abort', onAbort);
          if (defect === undefined) resolve();
          else reject(defect);
        },
      });
      batch.signal?.addEventListener('abort', onAbort, { once: true });
      if (this.#isClosed) run.stop('closed');
      else if (batch.signal?.aborted) onAbort();
      else {
        this.#queue.add(run);
        this.#schedulePump();
      }
    });
  }

  request(template: RequestTemplate, request: TransportRequest, signal?: AbortSignal): Promise<Reply> {
    return requestOne(this, { template, requests: [request], signal });
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
    this.#refuseWaiting('closed', null);
    await this.#pool.close();
    clearInterval(this.#sweeper);
  }

  onOpen(): void {
    this.#fact('connected', '');
    this.#schedulePump();
  }

  onRoundTrip(seconds: number): void {
    this.#fact('round_trip', '', seconds);
  }

  onRoom(): void {
    if (!this.#queue.isEmpty) this.#schedulePump();
  }

  onAnswered(): void {
    this.#pool.answered();
  }

  onHandedBack(run: BatchRun, index: number, reason: TransportReason): void {
    if (reason === 'refused_stream') this.#fact('refused', '');
    const isTooOften = run.putBack(index) > maxRepeats;
    if (run.stopped === null && !this.#isClosed && !isTooOften) {
      this.#queue.add(run);
    } else {
      run.withdraw(index);
      const told = run.stopped ?? reason;
      run.reply(index, { kind: 'not_sent', reason: told, afterMs: null });
    }
    this.#schedulePump();
  }

  onUnknown(run: BatchRun, index: number, reason: TransportReason, seconds: number): void {
    if (reason === 'timeout') this.#fact('timeout', '');
    if (reason === 'stream_reset') this.#fact('reset', '');
    run.reply(index, { kind: 'unknown', reason, seconds });
  }

  onGoaway(detail: string): void {
    this.#fact('goaway', detail);
    this.#schedulePump();
  }

  onGone(connection: OwnConnection, code: string, wasOpen: boolean): void {
    const { isHopeless, waitMs } = this.#pool.remove(connection);
    if (wasOpen) {
      if (code === '') this.#fact('closed', '');
      else this.#fact(code === 'ping_timeout' ? 'ping_timeout' : 'lost', code);
    } else if (!connection.isRetired) {
      this.#fact('connect_failed', code);
      if (isCertificateRefusal(code)) this.#refuseWaiting('certificate_refused', null);
      else if (isHopeless && this.#pool.size === 0) this.#refuseWaiting('connect_failed', waitMs);
    }
    this.#schedulePump();
  }

  /** Once per loop turn, not once per reply: a peer that flushes every reply would cost a write for each. */
  #schedulePump(): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    setImmediate(() => {
      this.#isPumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#isClosed) return;
    const nowMs = this.#options.clock.monotonicMs();
    for (let run = this.#queue.next(); run; run = this.#queue.next()) {
      const connection = this.#pool.pick();
      if (!connection) {
        this.#grow();
        break;
      }
      connection.write(run, quantum, nowMs);
      this.#written.add(connection);
    }
    for (const connection of this.#written) connection.flush();
    this.#written.clear();
  }

  /** All connections are full. Where there is none and none may be made: a hopeless peer is told at once. */
  #grow(): void {
    const { waitMs, isHopeless } = this.#pool.grow();
    if (waitMs === 0) return;
    if (isHopeless) {
      this.#refuseWaiting('connect_failed', waitMs);
      return;
    }
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = null;
      this.#pump();
    }, waitMs);
  }

  #sweep(): void {
    const { clock, timing } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#pool.sweep(nowMs);
    for (const run of this.#queue.list(nowMs - timing.queueMs)) run.handBackWaiting('queue_timeout', null);
    this.#pump();
  }

  #refuseWaiting(reason: TransportReason, afterMs: number | null): void {
    for (const run of this.#queue.list()) run.handBackWaiting(reason, afterMs);
  }

  #fact(event: TransportFact['event'], detail: string, seconds?: number): void {
    this.#options.onFact?.({ event, detail, connections: this.#pool.size, seconds });
  }
}
