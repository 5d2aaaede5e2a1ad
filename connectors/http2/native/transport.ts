/** Our own HTTP/2 transport: frames straight onto `node:tls`, for many small requests that are alike. */
import { connectTls } from '../connect.ts';
import { maxRepeats, PooledTransport } from '../pooled-transport.ts';
import type { OnResult, RequestBatch, Transport, TransportOptions, TransportReason } from '../transport.ts';
import { NativeConnection, type NativeConnectionOwner } from './connection.ts';
import { ActiveBatch } from './requests/active-batch.ts';
import { BatchQueue } from './requests/batch-queue.ts';

/** Requests that a batch and a connection are given at a turn. */
const quantum = 64;

/** Opens a pool to `options.baseUrl`; see `openTransport`. */
export function openNativeTransport(options: TransportOptions): Transport {
  return new NativeTransport(options);
}

class NativeTransport extends PooledTransport<NativeConnection> implements NativeConnectionOwner {
  readonly #queue = new BatchQueue();
  readonly #written = new Set<NativeConnection>();

  override sendMany(batch: RequestBatch, onReply: OnResult): Promise<void> {
    if (batch.requests.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => run.stop('aborted');
      const run = new ActiveBatch(batch, {
        onReply,
        baseUrl: this.target.url,
        nowMs: this.options.clock.monotonicMs(),
        done: (defect) => {
          batch.signal?.removeEventListener('abort', onAbort);
          if (defect === undefined) resolve();
          else reject(defect);
        },
      });
      batch.signal?.addEventListener('abort', onAbort, { once: true });
      if (this.isClosed) run.stop('closed');
      else if (batch.signal?.aborted) onAbort();
      else {
        this.#queue.add(run);
        this.schedulePump();
      }
    });
  }

  override onRoom(): void {
    if (!this.#queue.isEmpty) this.schedulePump();
  }

  onAnswered(): void {
    this.pool.answered();
  }

  onHandedBack(run: ActiveBatch, index: number, reason: TransportReason): void {
    if (reason === 'refused_stream') this.fact('refused', '');
    const isTooOften = run.putBack(index) > maxRepeats;
    if (run.stopped === null && !this.isClosed && !isTooOften) {
      this.#queue.add(run);
    } else {
      run.withdraw(index);
      const told = run.stopped ?? reason;
      run.reply(index, { kind: 'not_sent', reason: told, afterMs: null });
    }
    this.schedulePump();
  }

  onUnknown(run: ActiveBatch, index: number, reason: TransportReason, seconds: number): void {
    if (reason === 'timeout') this.fact('timeout', '');
    if (reason === 'stream_reset') this.fact('reset', '');
    run.reply(index, { kind: 'unknown', reason, seconds });
  }

  protected override open(): NativeConnection {
    const { clock, timing } = this.options;
    const connect = (signal: AbortSignal) => connectTls(this.target, signal);
    return new NativeConnection({ connect, timing, clock, ...this.streamLimits }, this);
  }

  protected override pump(): void {
    if (this.isClosed) return;
    const nowMs = this.options.clock.monotonicMs();
    for (let run = this.#queue.next(); run; run = this.#queue.next()) {
      const connection = this.pool.pick();
      if (!connection) {
        this.grow();
        break;
      }
      connection.write(run, quantum, nowMs);
      this.#written.add(connection);
    }
    for (const connection of this.#written) connection.flush();
    this.#written.clear();
  }

  protected override refuse(reason: TransportReason, afterMs: number | null, queuedBeforeMs?: number): void {
    for (const run of this.#queue.list(queuedBeforeMs)) run.handBackWaiting(this.notSent(reason, afterMs));
  }
}
