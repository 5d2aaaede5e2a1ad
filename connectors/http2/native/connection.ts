/** One HTTP/2 connection of our own transport: its life from the first packet to the last. */
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../../shared/clock.ts';
import { type ConnectionListener, isAcceptance, type PooledConnection } from '../pool.ts';
import { codeOf } from '../tls.ts';
import type { TransportReason, TransportTiming } from '../transport.ts';
import { Watchdog } from '../watchdog.ts';
import { errorCode } from './frames/wire-format.ts';
import type { ActiveBatch } from './requests/active-batch.ts';
import { Http2Session } from './session.ts';
import type { Http2SessionHost } from './session-host.ts';
import { StreamWindow } from './streams/stream-window.ts';

/** Bound where the peer names none, and where it names more. */
const maxStreams = 1000;

/** What the transport wants to hear from a connection. */
export interface NativeConnectionOwner extends ConnectionListener<NativeConnection> {
  /** The first answer of this connection. */
  onAnswered(): void;
  onHandedBack(run: ActiveBatch, index: number, reason: TransportReason): void;
  onUnknown(run: ActiveBatch, index: number, reason: TransportReason, seconds: number): void;
}

export interface NativeConnectionOptions {
  /** Rejects when there is no connection, or when the signal says that nobody waits for it any more. */
  connect(signal: AbortSignal): Promise<TLSSocket>;
  firstStreams: number;
  timing: TransportTiming;
  clock: Clock;
  /** See `TransportOptions`. */
  streamsPerConnection: number;
}

export class NativeConnection implements PooledConnection, Http2SessionHost {
  phase: 'connecting' | 'open' | 'draining' | 'gone' = 'connecting';
  isAccepted = false;
  isRetired = false;
  isAnswered = false;
  readonly clock: Clock;
  readonly startedAtMs: number;
  readonly #options: NativeConnectionOptions;
  readonly #owner: NativeConnectionOwner;
  readonly #connecting = new AbortController();
  readonly #watchdog: Watchdog;
  readonly #window: StreamWindow;
  #link: Http2Session | null = null;
  /** Streams that it may still open. */
  #left: number;
  #failure = '';
  #isEnding = false;

  constructor(options: NativeConnectionOptions, owner: NativeConnectionOwner) {
    this.#options = options;
    this.#owner = owner;
    this.clock = options.clock;
    this.#left = options.streamsPerConnection;
    this.startedAtMs = options.clock.monotonicMs();
    this.#watchdog = new Watchdog(options.timing, this.startedAtMs);
    this.#window = new StreamWindow(this.startedAtMs);
    void this.#connect();
  }

  get active(): number {
    return this.#link?.table.count ?? 0;
  }

  get room(): number {
    const link = this.#link;
    if (this.phase !== 'open' || link === null || !link.isWritable) return 0;
    const allowed = this.#window.of(this.#peerLimit(link));
    const limit = this.isAccepted ? allowed : Math.min(allowed, this.#options.firstStreams);
    return limit - link.table.count;
  }

  get isHeldBack(): boolean {
    if (this.phase !== 'open' || this.#link === null) return false;
    const peerLimit = this.#peerLimit(this.#link);
    return this.#window.of(peerLimit) < peerLimit;
  }

  /** Writes up to `count` requests of `run` into the output; gives how many. `flush` sends them. */
  write(run: ActiveBatch, count: number, nowMs: number): number {
    const link = this.#link;
    if (link === null) return 0;
    const room = Math.min(count, this.room, this.#left);
    const written = link.sending.write(run, room, { nowMs, reads: this.#watchdog.reads });
    if (this.room <= 0) this.#window.onFull();
    if (this.#left === written) this.drain();
    this.#left -= written;
    return written;
  }

  flush(): void {
    this.#link?.flush();
  }

  drain(): void {
    this.isRetired = true;
    if (this.phase === 'connecting') this.destroy('drained');
    else if (this.phase === 'open') {
      this.phase = 'draining';
      this.#endIfIdle();
    }
  }

  destroy(code: string): void {
    if (this.phase === 'gone') return;
    if (this.#failure === '') this.#failure = code;
    this.#connecting.abort();
    this.#link?.destroy();
    this.#gone();
  }

  sweep(nowMs: number): void {
    const { connectMs, requestMs } = this.#options.timing;
    if (this.phase === 'connecting' && nowMs - this.startedAtMs > connectMs) this.destroy('connect_timeout');
    const link = this.#link;
    if (link === null || this.phase === 'connecting' || this.phase === 'gone') return;
    const late = link.timeOut(nowMs, requestMs);
    for (const readsBefore of late) this.#watchdog.onTimeout(readsBefore);
    if (late.length > 0) this.#owner.onRoom();
    this.#endIfIdle();
    if (link.isUnread) this.destroy('unread');
    else if (!this.#isEnding && !this.#watchdog.isAlive(link, nowMs)) this.destroy('ping_timeout');
    this.flush();
  }

  onSettings(): void {
    if (this.phase !== 'connecting') return;
    this.phase = 'open';
    this.#owner.onOpen();
  }

  onRoundTrip(seconds: number): void {
    this.#owner.onRoundTrip(seconds);
  }

  onRead(): void {
    this.#watchdog.reads += 1;
  }

  onRoom(): void {
    if (this.#link) this.#window.onRead(this.#link.readAtMs);
    this.#owner.onRoom();
    this.#endIfIdle();
  }

  onAnswer(status: number, seconds: number): void {
    this.#window.onAnswer(seconds);
    if (!this.isAnswered) {
      this.isAnswered = true;
      this.#owner.onAnswered();
    }
    if (isAcceptance(status)) this.isAccepted = true;
  }

  onHandedBack(run: ActiveBatch, index: number, reason: TransportReason): void {
    this.#owner.onHandedBack(run, index, reason);
  }

  onUnknown(run: ActiveBatch, index: number, reason: TransportReason, seconds: number): void {
    this.#owner.onUnknown(run, index, reason, seconds);
  }

  onGoaway(detail: string): void {
    if (this.phase === 'open') this.phase = 'draining';
    this.#owner.onGoaway(detail);
    setImmediate(() => this.#endIfIdle());
  }

  onFault(code: number): void {
    this.#failure = `h2_error_${code}`;
    this.#gone();
  }

  async #connect(): Promise<void> {
    let socket: TLSSocket;
    try {
      socket = await this.#options.connect(this.#connecting.signal);
    } catch (error) {
      if (this.#failure === '') this.#failure = codeOf(error);
      this.#gone();
      return;
    }
    socket.on('error', (error) => {
      // After the goodbye nothing is owed any more: a peer that answers it with a reset has lost nothing.
      if (this.#failure === '' && !this.#isEnding) this.#failure = codeOf(error);
    });
    if (this.phase !== 'connecting') {
      socket.destroy();
      return;
    }
    socket.on('end', () => this.destroy(this.#failure));
    socket.on('close', () => this.destroy(this.#failure));
    this.#link = new Http2Session(socket, this);
  }

  #peerLimit(link: Http2Session): number {
    return Math.min(link.sending.settings.maxConcurrentStreams ?? maxStreams, maxStreams);
  }

  /** The last answer is in and no more will be asked: says goodbye. */
  #endIfIdle(): void {
    if (this.phase !== 'draining' || this.active > 0 || this.#isEnding) return;
    this.#isEnding = true;
    this.#link?.close(errorCode.none);
  }

  #gone(): void {
    if (this.phase === 'gone') return;
    const wasOpen = this.phase !== 'connecting';
    this.phase = 'gone';
    this.#link?.giveUpAll();
    this.#owner.onGone(this, this.#failure, wasOpen);
  }
}
