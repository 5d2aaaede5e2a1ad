/** One connection of a transport, from the connection attempt until it is closed. */
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../shared/clock.ts';
import { isTemporaryStatus } from '../../shared/http/result.ts';
import { type ConnectTarget, codeOf, connectTls } from './connect.ts';
import { errorCode } from './frames/wire-format.ts';
import type { ActiveBatch } from './requests/active-batch.ts';
import { Http2Session } from './session.ts';
import type { Http2SessionHost, SessionListener } from './streams/response-reader.ts';
import { StreamWindow } from './streams/stream-table.ts';
import { defaultStreamsPerConnection, type TransportOptions } from './transport.ts';

/** Detects a dead peer by PING (protocol/apns.md#connections). Times are monotonic. */
export class Watchdog {
  /** Number of reads. The owner increments it. */
  reads = 0;
  readonly #pingAfterMs: number;
  readonly #pingMs: number;
  #readsSeen = 0;
  #lastReadMs: number;
  #pingSentMs: number | null = null;
  #sentSeen = 0;
  #mustPing = false;

  constructor(timing: { pingAfterMs: number; pingMs: number }, nowMs: number) {
    this.#pingAfterMs = timing.pingAfterMs;
    this.#pingMs = timing.pingMs;
    this.#lastReadMs = nowMs;
  }

  /**
   * Reports a request timeout. If nothing was read since the request was written, a PING is sent at
   * the next check.
   */
  onTimeout(readsBefore: number): void {
    if (this.reads === readsBefore) this.#mustPing = true;
  }

  /**
   * Returns false if a PING was not acknowledged in time. Called periodically. The timeout starts
   * again while a large upload before the PING makes progress, because the PING may not be written
   * yet.
   */
  isAlive(
    session: Pick<Http2Session, 'ping' | 'hasBacklog' | 'sentPieces'>,
    nowMs: number,
  ): boolean {
    if (this.reads !== this.#readsSeen) {
      this.#readsSeen = this.reads;
      this.#lastReadMs = nowMs;
      this.#mustPing = false;
    }
    const isMoving = session.hasBacklog && session.sentPieces !== this.#sentSeen;
    this.#sentSeen = session.sentPieces;
    if (this.#pingSentMs !== null) {
      if (isMoving) this.#pingSentMs = nowMs;
      return nowMs - this.#pingSentMs <= this.#pingMs;
    }
    if (!this.#mustPing && nowMs - this.#lastReadMs < this.#pingAfterMs) return true;
    this.#pingSentMs = nowMs;
    session.ping(() => {
      this.#pingSentMs = null;
      this.reads += 1;
    });
    return true;
  }
}

/** Maximum number of streams per connection, even if the peer allows more. */
const maxStreams = 1000;

/**
 * Returns true if a status shows that the credentials were accepted. The statuses 401, 403 and
 * temporary statuses do not show it.
 */
const showsAcceptedCredentials = (status: number): boolean =>
  status !== 401 && status !== 403 && !isTemporaryStatus(status);

/** Callbacks of a connection to its transport. */
export interface Http2ConnectionOwner extends SessionListener {
  onOpen(): void;
  /** Called when the connection has received its first response. */
  onFirstResponse(): void;
  /** A stream has ended, the stream limit has changed or the socket has drained. */
  onCapacity(): void;
  /**
   * The peer ended the connection with an error code of RFC 9113 7, or reset a stream with
   * ENHANCE_YOUR_CALM.
   */
  onGoaway(detail: string, code: number): void;
  /** `code` is the error that ended the connection; empty if there was none. */
  onClosed(connection: Http2Connection, code: string, wasOpen: boolean): void;
}

export class Http2Connection implements Http2SessionHost {
  phase: 'connecting' | 'open' | 'draining' | 'closed' = 'connecting';
  /** True if a response has shown that the peer accepts our credentials. */
  hasAcceptedCredentials = false;
  /** True if the pool has drained the connection, so its end is not a failure. */
  isRetired = false;
  hasResponse = false;
  readonly clock: Clock;
  readonly responseHeader: string | undefined;
  /** Start of the connection attempt (monotonic). */
  readonly startedAtMs: number;
  readonly owner: Http2ConnectionOwner;
  readonly #options: TransportOptions;
  readonly #target: ConnectTarget;
  readonly #connecting = new AbortController();
  readonly #watchdog: Watchdog;
  readonly #window: StreamWindow;
  #session: Http2Session | null = null;
  /** Number of streams that this connection may still open in its lifetime. */
  #streamsLeft: number;
  #failure = '';
  #isEnding = false;

  constructor(options: TransportOptions, target: ConnectTarget, owner: Http2ConnectionOwner) {
    this.#options = options;
    this.#target = target;
    this.owner = owner;
    this.clock = options.clock;
    this.responseHeader = options.responseHeader;
    this.#streamsLeft = options.streamsPerConnection ?? defaultStreamsPerConnection;
    this.startedAtMs = options.clock.monotonicMs();
    this.#watchdog = new Watchdog(options.timing, this.startedAtMs);
    this.#window = new StreamWindow(this.startedAtMs);
    void this.#connect();
  }

  /** Number of open streams. */
  get active(): number {
    return this.#session?.table.count ?? 0;
  }

  /** Number of streams that may be opened now; 0 if the connection accepts no requests. */
  get freeStreams(): number {
    const session = this.#session;
    if (this.phase !== 'open' || session === null || !session.isWritable) return 0;
    const allowed = this.#window.limitFor(this.#peerLimit(session));
    const { firstStreams = allowed } = this.#options;
    const limit = this.hasAcceptedCredentials ? allowed : Math.min(allowed, firstStreams);
    return limit - session.table.count;
  }

  /**
   * True if its congestion window is below the peer's limit. Another connection would not make
   * responses faster then.
   */
  get isBelowPeerLimit(): boolean {
    if (this.phase !== 'open' || this.#session === null) return false;
    const peerLimit = this.#peerLimit(this.#session);
    return this.#window.limitFor(peerLimit) < peerLimit;
  }

  /**
   * Writes up to `count` requests of `batch` to the output buffer and returns how many were
   * written. `flush` sends them.
   */
  write(batch: ActiveBatch, count: number, nowMs: number): number {
    const session = this.#session;
    if (session === null) return 0;
    const room = Math.min(count, this.freeStreams, this.#streamsLeft);
    const written = session.writer.write(batch, room, { nowMs, reads: this.#watchdog.reads });
    if (this.freeStreams <= 0) this.#window.onFull();
    if (this.#streamsLeft === written) this.drain();
    this.#streamsLeft -= written;
    return written;
  }

  flush(): void {
    this.#session?.flush();
  }

  /** Accepts no more requests and closes after the last response. */
  drain(): void {
    this.isRetired = true;
    if (this.phase === 'connecting') this.destroy('drained');
    else if (this.phase === 'open') {
      this.phase = 'draining';
      this.#endIfIdle();
    }
  }

  destroy(code: string): void {
    if (this.phase === 'closed') return;
    if (this.#failure === '') this.#failure = code;
    this.#connecting.abort();
    this.#session?.destroy();
    this.#onClosed();
  }

  /** Checks timeouts and the watchdog. Called periodically, which saves a timer per request. */
  sweep(nowMs: number): void {
    const { connectMs, requestMs } = this.#options.timing;
    if (this.phase === 'connecting' && nowMs - this.startedAtMs > connectMs)
      this.destroy('connect_timeout');
    const session = this.#session;
    if (session === null || this.phase === 'connecting' || this.phase === 'closed') return;
    const overdue = session.settleTimedOut(nowMs, requestMs);
    for (const readsBefore of overdue) this.#watchdog.onTimeout(readsBefore);
    if (overdue.length > 0) this.owner.onCapacity();
    this.#endIfIdle();
    if (session.isPeerNotReading) this.destroy('unread');
    else if (!this.#isEnding && !this.#watchdog.isAlive(session, nowMs))
      this.destroy('ping_timeout');
    this.flush();
  }

  onSettings(): void {
    if (this.phase !== 'connecting') return;
    this.phase = 'open';
    this.owner.onOpen();
  }

  onRead(): void {
    this.#watchdog.reads += 1;
  }

  onCapacity(): void {
    if (this.#session) this.#window.onRead(this.#session.readAtMs);
    this.owner.onCapacity();
    this.#endIfIdle();
  }

  onResponse(status: number, seconds: number): void {
    this.#window.onResponse(seconds);
    if (!this.hasResponse) {
      this.hasResponse = true;
      this.owner.onFirstResponse();
    }
    if (showsAcceptedCredentials(status)) this.hasAcceptedCredentials = true;
  }

  onGoaway(detail: string, code: number): void {
    if (this.phase === 'open') this.phase = 'draining';
    this.owner.onGoaway(detail, code);
    setImmediate(() => this.#endIfIdle());
  }

  onCalm(): void {
    if (this.phase === 'open')
      this.onGoaway(`code_${errorCode.enhanceYourCalm}`, errorCode.enhanceYourCalm);
  }

  onConnectionError(code: number): void {
    this.#failure = `h2_error_${code}`;
    this.#onClosed();
  }

  async #connect(): Promise<void> {
    let socket: TLSSocket;
    try {
      socket = await connectTls(this.#target, this.#connecting.signal);
    } catch (error) {
      if (this.#failure === '') this.#failure = codeOf(error);
      this.#onClosed();
      return;
    }
    socket.on('error', (error) => {
      // After our GOAWAY no request is in flight, so a reset by the peer is not a failure.
      if (this.#failure === '' && !this.#isEnding) this.#failure = codeOf(error);
    });
    if (this.phase !== 'connecting') {
      socket.destroy();
      return;
    }
    socket.on('end', () => this.destroy(this.#failure));
    socket.on('close', () => this.destroy(this.#failure));
    this.#session = new Http2Session(socket, this);
  }

  #peerLimit(session: Http2Session): number {
    return Math.min(session.writer.settings.maxConcurrentStreams ?? maxStreams, maxStreams);
  }

  /** Sends GOAWAY if a draining connection has no open stream. */
  #endIfIdle(): void {
    if (this.phase !== 'draining' || this.active > 0 || this.#isEnding) return;
    this.#isEnding = true;
    this.#session?.close(errorCode.none);
  }

  #onClosed(): void {
    if (this.phase === 'closed') return;
    const wasOpen = this.phase !== 'connecting';
    this.phase = 'closed';
    this.#session?.settleAll();
    this.owner.onClosed(this, this.#failure, wasOpen);
  }
}
