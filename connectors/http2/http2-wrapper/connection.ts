/**
 * One connection of the http2-wrapper transport.
 *
 * The agent of http2-wrapper selects sessions itself, ignores GOAWAY (its issue 89), does not
 * expose a connection that is being made and cannot start with one stream. So this class uses the
 * lower-level function `connect` over a socket of `connectTls`, and manages streams, limits and
 * closing itself.
 */
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import http2 from 'http2-wrapper';
import { connectTls } from '../connect.ts';
import type { PooledConnection } from '../pool.ts';
import { type Goaway, goawayReason, streamOutcome } from '../stream-outcome.ts';
import { codeOf } from '../tls.ts';
import { Watchdog } from '../watchdog.ts';
import { bodyOf, type Exchange, headersOf, keepChunk } from './exchange.ts';
import type { ConnectionOptions, ConnectionOwner } from './owner.ts';

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_FLAG_END_STREAM, NGHTTP2_STREAM_STATE_IDLE } =
  http2.constants;

/** Upper limit of streams, whatever the peer allows. */
const maxStreams = 1000;

/**
 * Memory limit of a session in MB, including bodies that wait for windows. Above it `node:http2` resets streams whose
 * response arrives; its default of 10 is too small for a hundred streams with large bodies.
 */
const maxSessionMemory = 256;

export class WrapperConnection implements PooledConnection {
  phase: 'connecting' | 'open' | 'draining' | 'closed' = 'connecting';
  /** Streams that are not closed and so count towards the peer's limit. */
  active = 0;
  hasAcceptedCredentials = false;
  isRetired = false;
  hasResponse = false;
  /** Oldest first. */
  readonly #inFlight = new Map<Exchange, ClientHttp2Stream>();
  readonly #options: ConnectionOptions;
  readonly #owner: ConnectionOwner<WrapperConnection>;
  readonly startedAtMs: number;
  readonly #connecting = new AbortController();
  #session: ClientHttp2Session | null = null;
  #socket: TLSSocket | null = null;
  #peerLimit = 1;
  #streams = 0;
  #goaway: Goaway | null = null;
  #failure = '';
  readonly #watchdog: Watchdog;

  constructor(options: ConnectionOptions, owner: ConnectionOwner<WrapperConnection>) {
    this.#options = options;
    this.#owner = owner;
    this.startedAtMs = options.monotonicMs();
    this.#watchdog = new Watchdog(options.timing, this.startedAtMs);
    void this.#connect();
  }

  get freeStreams(): number {
    if (this.phase !== 'open') return 0;
    const limit = this.hasAcceptedCredentials
      ? this.#peerLimit
      : Math.min(this.#peerLimit, this.#options.firstStreams);
    return limit - this.active;
  }

  /** Writes one request. Requires `freeStreams` > 0. */
  write(exchange: Exchange): void {
    const session = this.#session;
    if (session === null || session.closed || session.destroyed) {
      if (this.phase === 'open') this.phase = 'draining';
      this.#owner.onUnprocessed(exchange, 'connection_lost');
      return;
    }
    exchange.writtenAtMs = this.#options.monotonicMs();
    exchange.readsBefore = this.#watchdog.reads;
    const stream = session.request(headersOf(exchange));
    this.active += 1;
    this.#inFlight.set(exchange, stream);
    this.#watch(stream, exchange);
    stream.end(bodyOf(exchange));
    if (++this.#streams >= this.#options.streamsPerConnection) this.drain();
  }

  drain(): void {
    this.isRetired = true;
    if (this.phase === 'connecting') this.destroy('drained');
    if (this.phase !== 'open') return;
    this.phase = 'draining';
    if (this.active === 0) this.#session?.close();
  }

  destroy(code: string): void {
    if (this.#failure === '') this.#failure = code;
    this.#connecting.abort();
    this.#session?.destroy();
    this.#socket?.destroy();
    if (this.#session === null) this.#onClosed();
  }

  sweep(nowMs: number): void {
    const { connectMs, requestMs } = this.#options.timing;
    if (this.phase === 'connecting') {
      if (nowMs - this.startedAtMs > connectMs) this.destroy('connect_timeout');
      return;
    }
    for (const [exchange, stream] of this.#inFlight) {
      if (nowMs - exchange.writtenAtMs <= requestMs) break;
      this.#watchdog.onTimeout(exchange.readsBefore);
      this.#inFlight.delete(exchange);
      stream.close(NGHTTP2_CANCEL);
      this.#owner.onUnknown(exchange, 'timeout');
    }
    if (this.#session === null) return;
    // A session that closed gracefully waits for the peer to close the socket, without a limit.
    if (this.#session.destroyed) this.#socket?.destroy();
    else if (!this.#watchdog.isAlive(this.#session, nowMs)) this.destroy('ping_timeout');
  }

  async #connect(): Promise<void> {
    const { target } = this.#options;
    const { url } = target;
    try {
      const socket = await connectTls(target, this.#connecting.signal);
      socket.once('error', (error) => this.#recordFailure(error));
      // `drain` or the deadline may have closed the connection.
      if (this.#hasClosed()) {
        socket.destroy();
        return;
      }
      this.#socket = socket;
      const session = http2.connect(url, {
        createConnection: () => socket,
        settings: { enablePush: false },
        maxSessionMemory,
      });
      this.#session = session;
      const settingsSentAtMs = this.#options.monotonicMs();
      session.once('localSettings', () =>
        this.#owner.onRoundTrip((this.#options.monotonicMs() - settingsSentAtMs) / 1000),
      );
      session.on('error', (error) => this.#recordFailure(error));
      session.on('remoteSettings', (settings) => this.#onSettings(settings.maxConcurrentStreams));
      session.on('goaway', (code, lastId, data) => this.#onGoaway(code, lastId, data));
      session.once('close', () => this.#onClosed());
    } catch (error) {
      this.#recordFailure(error);
      this.#onClosed();
    }
  }

  #recordFailure(error: unknown): void {
    if (this.#failure === '') this.#failure = codeOf(error);
  }

  #onSettings(limit: number | undefined): void {
    this.#peerLimit = Math.min(limit ?? maxStreams, maxStreams);
    this.#watchdog.reads += 1;
    if (this.phase === 'connecting') {
      this.phase = 'open';
      this.#owner.onOpen();
    } else this.#owner.onCapacity();
  }

  /** Returns unsent requests. Streams above the last id end with REFUSED_STREAM or with the session; see `#onClosed`. */
  #onGoaway(code: number, lastId: number, data?: Buffer): void {
    // A second GOAWAY may name a lower id, never a higher one (RFC 9113 6.8).
    this.#goaway = { code, lastId: Math.min(lastId, this.#goaway?.lastId ?? lastId) };
    if (this.phase === 'open') this.phase = 'draining';
    this.#returnUnsent();
    this.#owner.onGoaway(goawayReason(data) ?? `code_${code}`, code);
  }

  /**
   * Returns requests that `node:http2` has not written. Called after a GOAWAY only: from then on it writes none of
   * them, while before, ending one stream may flush the others. Node also reports IDLE for a closed stream whose
   * events are still queued, response or reset included.
   */
  #returnUnsent(): void {
    for (const [exchange, stream] of this.#inFlight) {
      if (stream.closed || stream.state.state !== NGHTTP2_STREAM_STATE_IDLE) continue;
      this.#inFlight.delete(exchange);
      stream.destroy();
      this.#owner.onUnprocessed(exchange, 'goaway');
    }
  }

  #watch(stream: ClientHttp2Stream, exchange: Exchange): void {
    let errorCode = '';
    stream.on('response', (headers: IncomingHttpHeaders & { ':status'?: number }, flags: number) => {
      this.#watchdog.reads += 1;
      exchange.status = headers[':status'] ?? 0;
      exchange.retryAfter = headers['retry-after'];
      if ((flags & NGHTTP2_FLAG_END_STREAM) === 0)
        stream.on('data', (chunk: Buffer) => keepChunk(exchange, chunk));
    });
    stream.on('error', (error) => {
      errorCode = codeOf(error);
    });
    stream.on('close', () => {
      this.active -= 1;
      // A deadline or a lost connection settles an exchange before its stream closes.
      if (this.#inFlight.get(exchange) === stream) this.#settle(exchange, stream, errorCode);
      if (this.phase === 'draining' && this.active === 0) this.#session?.close();
      else this.#owner.onCapacity();
    });
  }

  #settle(exchange: Exchange, stream: ClientHttp2Stream, errorCode: string): void {
    this.#inFlight.delete(exchange);
    if (stream.rstCode === NGHTTP2_ENHANCE_YOUR_CALM && this.phase === 'open') {
      this.phase = 'draining';
      this.#owner.onGoaway(`code_${NGHTTP2_ENHANCE_YOUR_CALM}`, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    // A received status is a response, even with an incomplete body.
    if (exchange.status > 0) {
      this.hasResponse = true;
      this.#owner.onResponse(this, exchange);
      return;
    }
    const outcome = streamOutcome({
      id: stream.id,
      rstCode: stream.rstCode,
      errorCode,
      goaway: this.#goaway,
    });
    if (outcome.isProcessed) this.#owner.onUnknown(exchange, outcome.reason);
    else this.#owner.onUnprocessed(exchange, outcome.reason);
  }

  #hasClosed(): boolean {
    return this.phase === 'closed';
  }

  #onClosed(): void {
    if (this.phase === 'closed') return;
    const wasOpen = this.phase !== 'connecting';
    this.phase = 'closed';
    for (const [exchange, stream] of this.#inFlight) this.#settle(exchange, stream, this.#failure);
    this.#owner.onClosed(this, this.#failure, wasOpen);
  }
}
