/**
 * The standard transport: http2-wrapper over `node:http2` (`"transport":"standard"`).
 *
 * A queue before a pool of connections, and a batch's bookkeeping. Requests that were provably not
 * processed are repeated here, a few times, before the caller hears of them.
 */
import http2 from 'http2-wrapper';
import { targetOf } from './connect.ts';
import { type BatchState, type Exchange, newBatchState, newExchange, responseOf } from './exchange.ts';
import { ConnectionPool } from './pool.ts';
import { requestOne } from './reply.ts';
import { RequestQueue } from './request-queue.ts';
import { type ConnectionOwner, StandardConnection } from './standard-connection.ts';
import { isCertificateRefusal } from './tls.ts';
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
  type Verdict,
} from './transport.ts';

/** How often one request may be handed back and written again before the caller is told. */
const maxRepeats = 6;

/**
 * Opens a pool to `options.baseUrl`; connects when the first batch comes.
 * Throws when the URL, the PEMs or their match are wrong: check credentials before.
 */
export function openStandardTransport(options: TransportOptions): Transport {
  return new StandardTransport(options);
}

class StandardTransport implements Transport, ConnectionOwner {
  readonly #options: TransportOptions;
  readonly #pool: ConnectionPool<StandardConnection>;
  readonly #agent = new http2.Agent();
  readonly #queue = new RequestQueue();
  readonly #sweeper: NodeJS.Timeout;
  #retryTimer: NodeJS.Timeout | null = null;
  #isPumping = false;
  #isClosed = false;

  constructor(options: TransportOptions) {
    this.#options = options;
    const { clock, firstStreams = Number.POSITIVE_INFINITY, timing } = options;
    const connectionOptions = {
      target: targetOf(options),
      agent: this.#agent,
      firstStreams,
      streamsPerConnection: options.streamsPerConnection ?? defaultStreamsPerConnection,
      timing,
      monotonicMs: () => clock.monotonicMs(),
    };
    this.#pool = new ConnectionPool(options, () => new StandardConnection(connectionOptions, this));
    const shortestMs = Math.min(options.timing.requestMs, options.timing.connectMs, options.timing.queueMs);
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(Math.max(shortestMs / 10, 10), 500)).unref();
  }

  sendMany(batch: Batch, onReply: OnReply): Promise<void> {
    if (batch.requests.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#stop(state, 'aborted');
      const state = newBatchState(batch, onReply, this.#options.baseUrl, (defect) => {
        batch.signal?.removeEventListener('abort', onAbort);
        if (defect === undefined) resolve();
        else reject(defect);
      });
      const nowMs = this.#options.clock.monotonicMs();
      batch.requests.forEach((request, index) => {
        this.#queue.push(newExchange(state, index, request, nowMs));
      });
      batch.signal?.addEventListener('abort', onAbort, { once: true });
      if (this.#isClosed) this.#stop(state, 'closed');
      else if (batch.signal?.aborted) onAbort();
      else this.#pump();
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
    this.#agent.destroy();
    clearInterval(this.#sweeper);
  }

  onOpen(): void {
    this.#fact('connected', '');
    this.#pump();
  }

  onRoundTrip(seconds: number): void {
    this.#fact('round_trip', '', seconds);
  }

  onRoom(): void {
    if (this.#queue.length > 0) this.#schedulePump();
  }

  onAnswer(connection: StandardConnection, exchange: Exchange): void {
    const { clock } = this.#options;
    const { status } = exchange;
    this.#pool.answered();
    // 401 and 403 speak of our credentials, 429 and 5xx of nothing: all others show that they were accepted.
    if (status !== 401 && status !== 403 && status !== 429 && status < 500) connection.isAccepted = true;
    const verdict = this.#reply(exchange, responseOf(exchange, clock.monotonicMs(), clock.now()));
    if (verdict === 'drain') connection.drain();
  }

  onHandedBack(exchange: Exchange, reason: TransportReason): void {
    if (reason === 'refused_stream') this.#fact('refused', '');
    const { stopped } = exchange.state;
    exchange.repeats += 1;
    if (stopped !== null) this.#reply(exchange, { kind: 'not_sent', reason: stopped, afterMs: null });
    else if (this.#isClosed || exchange.repeats > maxRepeats)
      this.#reply(exchange, { kind: 'not_sent', reason, afterMs: null });
    else this.#queue.pushFront(exchange);
    this.#schedulePump();
  }

  onUnknown(exchange: Exchange, reason: TransportReason): void {
    if (reason === 'timeout') this.#fact('timeout', '');
    if (reason === 'stream_reset') this.#fact('reset', '');
    const seconds = (this.#options.clock.monotonicMs() - exchange.writtenAtMs) / 1000;
    this.#reply(exchange, { kind: 'unknown', reason, seconds });
  }

  onGoaway(detail: string): void {
    this.#fact('goaway', detail);
    this.#schedulePump();
  }

  onGone(connection: StandardConnection, code: string, wasOpen: boolean): void {
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

  #schedulePump(): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    setImmediate(() => {
      this.#isPumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#queue.length > 0 && !this.#isClosed) {
      const connection = this.#pool.pick();
      if (!connection) {
        this.#grow();
        return;
      }
      const exchange = this.#queue.shift();
      if (exchange) connection.write(exchange);
    }
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
    const nowMs = this.#options.clock.monotonicMs();
    this.#pool.sweep(nowMs);
    for (const exchange of this.#queue.takeOlderThan(nowMs - this.#options.timing.queueMs))
      this.#reply(exchange, { kind: 'not_sent', reason: 'queue_timeout', afterMs: null });
    this.#pump();
  }

  #stop(state: BatchState, reason: TransportReason): void {
    if (state.stopped !== null) return;
    state.stopped = reason;
    for (const exchange of this.#queue.takeBatch(state))
      this.#reply(exchange, { kind: 'not_sent', reason, afterMs: null });
  }

  #refuseWaiting(reason: TransportReason, afterMs: number | null): void {
    for (const exchange of this.#queue.takeAll())
      this.#reply(exchange, { kind: 'not_sent', reason, afterMs });
  }

  #reply(exchange: Exchange, reply: Reply): Verdict {
    const { state } = exchange;
    let verdict: Verdict;
    try {
      verdict = state.onReply(exchange.index, reply);
    } catch (error) {
      state.defect = error;
      verdict = 'stop';
    }
    state.owed -= 1;
    if (state.owed === 0) state.done(state.defect);
    else if (verdict === 'stop') this.#stop(state, 'stopped');
    return verdict;
  }

  #fact(event: TransportFact['event'], detail: string, seconds?: number): void {
    this.#options.onFact?.({ event, detail, connections: this.#pool.size, seconds });
  }
}
