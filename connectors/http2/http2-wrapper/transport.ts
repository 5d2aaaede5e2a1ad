/**
 * Transport over http2-wrapper and `node:http2` (`"transport":"standard"` in a profile).
 *
 * Keeps a queue in front of a connection pool, and the state of each batch. Repeats requests that were provably not
 * processed a few times before it reports them.
 */
import { showsAcceptedCredentials } from '../pool.ts';
import { maxRepeats, PooledTransport } from '../pooled-transport.ts';
import type {
  OnResult,
  RequestBatch,
  RequestResult,
  ResponseDecision,
  Transport,
  TransportOptions,
  TransportReason,
} from '../transport.ts';
import { WrapperConnection } from './connection.ts';
import { type BatchState, type Exchange, newBatchState, newExchange, responseOf } from './exchange.ts';
import type { ConnectionOwner } from './owner.ts';
import { RequestQueue } from './request-queue.ts';

/** Opens a connection pool to `options.baseUrl`; see `openTransport`. */
export function openWrapperTransport(options: TransportOptions): Transport {
  return new WrapperTransport(options);
}

class WrapperTransport
  extends PooledTransport<WrapperConnection>
  implements ConnectionOwner<WrapperConnection>
{
  readonly #queue = new RequestQueue();

  override sendMany(batch: RequestBatch, onResult: OnResult): Promise<void> {
    if (batch.requests.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#stop(state, 'aborted');
      const state = newBatchState(batch, onResult, this.options.baseUrl, (callbackError) => {
        batch.signal?.removeEventListener('abort', onAbort);
        if (callbackError === undefined) resolve();
        else reject(callbackError);
      });
      const nowMs = this.options.clock.monotonicMs();
      batch.requests.forEach((request, index) => {
        this.#queue.push(newExchange(state, index, request, nowMs));
      });
      batch.signal?.addEventListener('abort', onAbort, { once: true });
      if (this.isClosed) this.#stop(state, 'closed');
      else if (batch.signal?.aborted) onAbort();
      else this.pump();
    });
  }

  /** Writes at once, so that requests refused by an immediate GOAWAY count as repeats, which are limited. */
  override onOpen(): void {
    super.onOpen();
    this.pump();
  }

  override onCapacity(): void {
    if (this.#queue.length > 0) this.schedulePump();
  }

  onResponse(connection: WrapperConnection, exchange: Exchange): void {
    const { clock } = this.options;
    const { status } = exchange;
    this.pool.onResponse();
    if (showsAcceptedCredentials(status)) connection.hasAcceptedCredentials = true;
    const decision = this.#settle(exchange, responseOf(exchange, clock.monotonicMs(), clock.now()));
    if (decision === 'drain') connection.drain();
  }

  onUnprocessed(exchange: Exchange, reason: TransportReason): void {
    if (reason === 'refused_stream') this.emit('refused', '');
    const { stopped } = exchange.state;
    exchange.repeats += 1;
    if (stopped !== null) this.#settle(exchange, { kind: 'not_sent', reason: stopped, afterMs: null });
    else if (this.isClosed || exchange.repeats > maxRepeats)
      this.#settle(exchange, { kind: 'not_sent', reason, afterMs: null });
    else this.#queue.pushFront(exchange);
    this.schedulePump();
  }

  onUnknown(exchange: Exchange, reason: TransportReason): void {
    if (reason === 'timeout') this.emit('timeout', '');
    if (reason === 'stream_reset') this.emit('reset', '');
    const seconds = (this.options.clock.monotonicMs() - exchange.writtenAtMs) / 1000;
    this.#settle(exchange, { kind: 'unknown', reason, seconds });
  }

  protected override open(): WrapperConnection {
    const { clock, timing } = this.options;
    const monotonicMs = () => clock.monotonicMs();
    const deps = { target: this.target, timing, monotonicMs };
    return new WrapperConnection({ ...deps, ...this.streamLimits }, this);
  }

  protected override pump(): void {
    while (this.#queue.length > 0 && !this.isClosed) {
      const connection = this.pool.pick();
      if (!connection) {
        this.grow();
        return;
      }
      const exchange = this.#queue.shift();
      if (exchange) connection.write(exchange);
    }
  }

  protected override rejectWaiting(
    reason: TransportReason,
    afterMs: number | null,
    queuedBeforeMs?: number,
  ): void {
    const rejected =
      queuedBeforeMs === undefined ? this.#queue.takeAll() : this.#queue.takeOlderThan(queuedBeforeMs);
    const result = this.notSent(reason, afterMs);
    for (const exchange of rejected) this.#settle(exchange, result);
  }

  #stop(state: BatchState, reason: TransportReason): void {
    if (state.stopped !== null) return;
    state.stopped = reason;
    for (const exchange of this.#queue.takeBatch(state))
      this.#settle(exchange, { kind: 'not_sent', reason, afterMs: null });
  }

  #settle(exchange: Exchange, result: RequestResult): ResponseDecision {
    const { state } = exchange;
    let decision: ResponseDecision;
    try {
      decision = state.onResult(exchange.index, result);
    } catch (error) {
      state.callbackError = error;
      decision = 'stop';
    }
    state.unsettled -= 1;
    if (state.unsettled === 0) state.done(state.callbackError);
    else if (decision === 'stop') this.#stop(state, 'stopped');
    return decision;
  }
}
