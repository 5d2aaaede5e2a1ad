/** Native HTTP/2 transport: writes frames to `node:tls` directly, for many small, similar requests. */
import { connectTls } from '../connect.ts';
import { maxRepeats, PooledTransport } from '../pooled-transport.ts';
import type { OnResult, RequestBatch, Transport, TransportOptions, TransportReason } from '../transport.ts';
import { NativeConnection, type NativeConnectionOwner } from './connection.ts';
import { ActiveBatch } from './requests/active-batch.ts';
import { BatchQueue } from './requests/batch-queue.ts';

/** Requests of one batch written to one connection per turn. */
const quantum = 64;

/** Opens a connection pool to `options.baseUrl`; see `openTransport`. */
export function openNativeTransport(options: TransportOptions): Transport {
  return new NativeTransport(options);
}

class NativeTransport extends PooledTransport<NativeConnection> implements NativeConnectionOwner {
  readonly #queue = new BatchQueue();
  readonly #written = new Set<NativeConnection>();

  override sendMany(requests: RequestBatch, onResult: OnResult): Promise<void> {
    if (requests.requests.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const { signal } = requests;
      const onAbort = () => batch.stop('aborted');
      const batch = new ActiveBatch(requests, {
        onResult,
        baseUrl: this.target.url,
        nowMs: this.options.clock.monotonicMs(),
        done: (callbackError) => {
          signal?.removeEventListener('abort', onAbort);
          if (callbackError === undefined) resolve();
          else reject(callbackError);
        },
      });
      signal?.addEventListener('abort', onAbort, { once: true });
      if (this.isClosed) batch.stop('closed');
      else if (signal?.aborted) onAbort();
      else {
        this.#queue.add(batch);
        this.schedulePump();
      }
    });
  }

  override onCapacity(): void {
    if (!this.#queue.isEmpty) this.schedulePump();
  }

  onFirstResponse(): void {
    this.pool.onResponse();
  }

  onUnprocessed(batch: ActiveBatch, index: number, reason: TransportReason): void {
    if (reason === 'refused_stream') this.emit('refused', '');
    const isLimitReached = batch.putBack(index) > maxRepeats;
    if (batch.stopped === null && !this.isClosed && !isLimitReached) {
      this.#queue.add(batch);
    } else {
      batch.withdraw(index);
      batch.settle(index, { kind: 'not_sent', reason: batch.stopped ?? reason, afterMs: null });
    }
    this.schedulePump();
  }

  onUnknown(batch: ActiveBatch, index: number, reason: TransportReason, seconds: number): void {
    if (reason === 'timeout') this.emit('timeout', '');
    if (reason === 'stream_reset') this.emit('reset', '');
    batch.settle(index, { kind: 'unknown', reason, seconds });
  }

  protected override open(): NativeConnection {
    const { clock, timing } = this.options;
    const connect = (signal: AbortSignal) => connectTls(this.target, signal);
    return new NativeConnection({ connect, timing, clock, ...this.streamLimits }, this);
  }

  protected override pump(): void {
    if (this.isClosed) return;
    const nowMs = this.options.clock.monotonicMs();
    for (let batch = this.#queue.next(); batch; batch = this.#queue.next()) {
      const connection = this.pool.pick();
      if (!connection) {
        this.grow();
        break;
      }
      connection.write(batch, quantum, nowMs);
      this.#written.add(connection);
    }
    for (const connection of this.#written) connection.flush();
    this.#written.clear();
  }

  protected override rejectWaiting(
    reason: TransportReason,
    afterMs: number | null,
    queuedBeforeMs?: number,
  ): void {
    for (const batch of this.#queue.list(queuedBeforeMs)) batch.rejectWaiting(this.notSent(reason, afterMs));
  }
}
