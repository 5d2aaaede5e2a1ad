/** One HTTP/2 connection of our own transport: its life from the socket to the last frame (RFC 9113). */
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../../shared/clock.ts';
import { goawayReason } from '../fate.ts';
import type { PooledConnection } from '../pool.ts';
import { codeOf } from '../tls.ts';
import type { TransportReason, TransportTiming } from '../transport.ts';
import { Watchdog } from '../watchdog.ts';
import type { BatchRun } from './batch-run.ts';
import { type ConnectionFault, fault } from './fault.ts';
import { FloodGuard } from './flood-guard.ts';
import { type FrameHandler, FrameReader, type Piece } from './frame-reader.ts';
import { Output } from './output.ts';
import { maxHeaderListBytes, Replies, type RepliesHost, streamWindowBytes } from './replies.ts';
import { Sending } from './sending.ts';
import { StreamTable } from './stream-table.ts';
import {
  defaultWindowBytes,
  errorCode,
  flag,
  frame,
  frameOf,
  goawayFrame,
  numberFrame,
  preface,
  setting,
  settingsFrame,
} from './wire-format.ts';

/** Bound where the peer names none, and where it names more. */
const maxStreams = 1000;
/** What the peer may send on all streams before we say that we read it. */
const receiveWindowBytes = 1_048_576;
/** Answers to its PINGs and SETTINGS that a peer may leave unread. */
const maxUnreadBytes = 1_048_576;
/** How long a connection that said goodbye may take to close. */
const farewellMs = 1000;

const ourSettings = settingsFrame([
  [setting.enablePush, 0],
  [setting.initialWindowSize, streamWindowBytes],
  [setting.maxHeaderListSize, maxHeaderListBytes],
]);

/** What the transport wants to hear from a connection. */
export interface OwnConnectionOwner {
  onOpen(): void;
  onRoundTrip(seconds: number): void;
  /** A place became free, the limit moved, or the socket caught up. */
  onRoom(): void;
  onAnswered(): void;
  onHandedBack(run: BatchRun, index: number, reason: TransportReason): void;
  onUnknown(run: BatchRun, index: number, reason: TransportReason, seconds: number): void;
  onGoaway(detail: string): void;
  onGone(connection: OwnConnection, code: string, wasOpen: boolean): void;
}

export interface OwnConnectionOptions {
  /** Rejects when there is no connection, or when the signal says that nobody waits for it any more. */
  connect(signal: AbortSignal): Promise<TLSSocket>;
  firstStreams: number;
  timing: TransportTiming;
  clock: Clock;
  /** See `TransportOptions`. */
  streamsPerConnection: number;
}

export class OwnConnection implements PooledConnection, FrameHandler, RepliesHost {
  phase: 'connecting' | 'open' | 'draining' | 'gone' = 'connecting';
  isAccepted = false;
  isRetired = false;
  isAnswered = false;
  readonly clock: Clock;
  readonly startedAtMs: number;
  readAtMs = 0;
  readonly #options: OwnConnectionOptions;
  readonly #owner: OwnConnectionOwner;
  readonly #connecting = new AbortController();
  readonly #table = new StreamTable();
  readonly #guard = new FloodGuard();
  readonly #replies: Replies;
  readonly #reader: FrameReader;
  readonly #watchdog: Watchdog;
  #socket: TLSSocket | null = null;
  #output: Output | null = null;
  #sending: Sending | null = null;
  #received = 0;
  /** Streams that it may still open. */
  #left: number;
  #pong: ((error: null) => void) | null = null;
  #goawayLastId = Number.POSITIVE_INFINITY;
  #failure = '';
  /** When our SETTINGS left; 0 once they were acknowledged. */
  #greetedAtMs = 0;
  #endedAtMs = 0;
  /** Something happened in what was read that may make room. */
  #isStirred = false;

  constructor(options: OwnConnectionOptions, owner: OwnConnectionOwner) {
    this.#options = options;
    this.#owner = owner;
    this.clock = options.clock;
    this.#left = options.streamsPerConnection;
    this.startedAtMs = options.clock.monotonicMs();
    this.#replies = new Replies(this, this.#table, this.#guard);
    this.#reader = new FrameReader(this);
    this.#watchdog = new Watchdog(options.timing, this.startedAtMs);
    void this.#connect();
  }

  get active(): number {
    return this.#table.count;
  }

  get nextId(): number {
    return this.#sending?.nextId ?? 1;
  }

  get room(): number {
    const sending = this.#sending;
    if (this.phase !== 'open' || sending === null || sending.isBlocked || !this.#socket?.writable) return 0;
    const peerLimit = Math.min(sending.settings.maxConcurrentStreams ?? maxStreams, maxStreams);
    const limit = this.isAccepted ? peerLimit : Math.min(peerLimit, this.#options.firstStreams);
    return limit - this.#table.count;
  }

  /** Writes up to `count` requests of `run` into the output; gives how many. `flush` sends them. */
  write(run: BatchRun, count: number, nowMs: number): number {
    const sending = this.#sending;
    if (sending === null) return 0;
    const room = Math.min(count, this.room, this.#left);
    const written = sending.write(run, room, { nowMs, reads: this.#watchdog.reads });
    if (this.#left === written) this.drain();
    this.#left -= written;
    return written;
  }

  flush(): void {
    this.#output?.flush();
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
    this.#reader.stop();
    this.#connecting.abort();
    this.#socket?.destroy();
    this.#gone();
  }

  sweep(nowMs: number): void {
    const { connectMs, requestMs } = this.#options.timing;
    if (this.phase === 'connecting') {
      if (nowMs - this.startedAtMs > connectMs) this.destroy('connect_timeout');
      return;
    }
    this.#guard.onSweep();
    if (this.#table.count > 0) this.#timeOut(nowMs, requestMs);
    if (this.#endedAtMs > 0) {
      if (nowMs - this.#endedAtMs > farewellMs) this.destroy('');
    } else if (!this.#watchdog.isAlive(this, nowMs)) this.destroy('ping_timeout');
    this.flush();
  }

  /** Sends a PING; `callback` hears when it was answered. */
  ping(callback: (error: null) => void): void {
    this.#pong = callback;
    this.#send(frameOf(frame.ping, 0, 0, Buffer.alloc(8)));
    this.flush();
  }

  onHeaders(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    this.#replies.onHeaders(id, isEnd, bytes, start, end);
  }

  onData(id: number, isEnd: boolean, flowBytes: number, piece: Piece): void {
    this.#received += flowBytes;
    if (this.#received > receiveWindowBytes) fault(errorCode.flowControl, 'more than the window');
    this.#replies.onData(id, isEnd, flowBytes, piece);
  }

  onReset(id: number, code: number): void {
    this.#sending?.dropUpload(id);
    this.#replies.onReset(id, code);
    this.#isStirred = true;
  }

  onSettings(payload: Buffer): void {
    this.#guard.note();
    this.#sending?.onSettings(payload);
    this.#send(frameOf(frame.settings, flag.ack, 0, Buffer.alloc(0)));
    this.#isStirred = true;
    if (this.phase !== 'connecting') return;
    this.phase = 'open';
    this.#owner.onOpen();
  }

  onSettingsAck(): void {
    this.#guard.note();
    if (this.#greetedAtMs > 0) this.#owner.onRoundTrip((this.readAtMs - this.#greetedAtMs) / 1000);
    this.#greetedAtMs = 0;
  }

  onPing(isAck: boolean, opaque: Buffer): void {
    this.#guard.note();
    if (!isAck) this.#send(frameOf(frame.ping, flag.ack, 0, opaque));
    else {
      this.#pong?.(null);
      this.#pong = null;
    }
  }

  onWindow(id: number, increment: number): void {
    this.#guard.note();
    this.#isStirred = true;
    const problem = this.#sending?.onWindow(id, increment) ?? null;
    const slot = problem === null ? -1 : this.#table.find(id);
    if (problem !== null && slot >= 0) {
      this.reset(id, problem);
      this.#replies.giveUp(slot, 'stream_reset');
    } else if (id !== 0 && ((id & 1) === 0 || id >= this.nextId))
      fault(errorCode.protocol, 'a window of a stream that is not');
  }

  onIgnored(): void {
    this.#guard.note();
  }

  /** Streams above `lastId` were not processed, and the peer takes no more (RFC 9113 6.8). */
  onGoaway(lastId: number, code: number, debugData: Buffer): void {
    this.#guard.note();
    this.#goawayLastId = Math.min(this.#goawayLastId, lastId);
    if (this.phase === 'open' || this.phase === 'connecting') this.phase = 'draining';
    for (const slot of this.#table.openSlots()) {
      const id = this.#table.ids[slot] ?? 0;
      if (id <= this.#goawayLastId) continue;
      this.#sending?.dropUpload(id);
      this.#replies.handBack(slot, 'goaway');
    }
    this.#owner.onGoaway(goawayReason(debugData) ?? `code_${code}`);
  }

  /** Tells the peer why, and closes once that has left; a peer that reads nothing is not waited for. */
  onFault(problem: ConnectionFault): void {
    this.#failure = `h2_error_${problem.code}`;
    this.#send(goawayFrame(problem.code));
    this.flush();
    const socket = this.#socket;
    socket?.pause();
    socket?.destroySoon();
    setTimeout(() => socket?.destroy(), farewellMs).unref();
    this.#gone();
  }

  onAnswer(status: number): void {
    this.#isStirred = true;
    if (!this.isAnswered) {
      this.isAnswered = true;
      this.#owner.onAnswered();
    }
    // 401 and 403 speak of our credentials, 429 and 5xx of nothing: all others show that they were accepted.
    if (status !== 401 && status !== 403 && status !== 429 && status < 500) this.isAccepted = true;
  }

  onClosed(id: number): void {
    if (this.#sending?.dropUpload(id)) this.#send(numberFrame(frame.reset, id, errorCode.cancel));
  }

  reset(id: number, code: number): void {
    this.#sending?.dropUpload(id);
    this.#send(numberFrame(frame.reset, id, code));
  }

  onHandedBack(run: BatchRun, index: number, reason: TransportReason): void {
    this.#owner.onHandedBack(run, index, reason);
  }

  onUnknown(run: BatchRun, index: number, reason: TransportReason, seconds: number): void {
    this.#owner.onUnknown(run, index, reason, seconds);
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
      if (this.#failure === '') this.#failure = codeOf(error);
    });
    if (this.phase !== 'connecting') {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    this.#output = new Output(socket);
    this.#sending = new Sending(this.#output, this.#table);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('drain', () => {
      this.#sending?.pump();
      this.flush();
      this.#owner.onRoom();
    });
    socket.on('end', () => this.destroy(this.#failure));
    socket.on('close', () => this.destroy(this.#failure));
    this.#greetedAtMs = this.clock.monotonicMs();
    this.#send(preface);
    this.#send(ourSettings);
    this.#send(numberFrame(frame.windowUpdate, 0, receiveWindowBytes - defaultWindowBytes));
    this.flush();
  }

  #receive(chunk: Buffer): void {
    this.readAtMs = this.clock.monotonicMs();
    this.#watchdog.reads += 1;
    this.#isStirred = false;
    this.#reader.push(chunk);
    if (this.#isGone()) return;
    if (this.#received >= receiveWindowBytes / 2) {
      this.#send(numberFrame(frame.windowUpdate, 0, this.#received));
      this.#received = 0;
    }
    if (this.#isStirred) {
      this.#guard.onProgress(this.#sending?.pump() ?? 0);
      this.#owner.onRoom();
    }
    this.#endIfIdle();
    this.flush();
    if ((this.#socket?.writableLength ?? 0) > maxUnreadBytes) this.destroy('unread');
  }

  #timeOut(nowMs: number, requestMs: number): void {
    const { ids, readsBefore, statuses, writtenAtMs } = this.#table;
    this.readAtMs = nowMs;
    for (let slot = 0; slot < ids.length; slot++) {
      const id = ids[slot] ?? 0;
      if (id === 0 || nowMs - (writtenAtMs[slot] ?? 0) <= requestMs) continue;
      this.#watchdog.onTimeout(readsBefore[slot] ?? 0);
      this.reset(id, errorCode.cancel);
      if ((statuses[slot] ?? 0) > 0) this.#replies.answer(slot);
      else this.#replies.giveUp(slot, 'timeout');
    }
    this.#endIfIdle();
    this.#owner.onRoom();
  }

  #send(bytes: Buffer): void {
    this.#output?.append(bytes);
  }

  /** The last answer is in and no more will be asked: says goodbye. */
  #endIfIdle(): void {
    if (this.phase !== 'draining' || this.#table.count > 0 || this.#endedAtMs > 0) return;
    this.#endedAtMs = this.clock.monotonicMs();
    this.#send(goawayFrame(errorCode.none));
    this.flush();
    this.#socket?.destroySoon();
  }

  #isGone(): boolean {
    return this.phase === 'gone';
  }

  #gone(): void {
    if (this.phase === 'gone') return;
    const wasOpen = this.phase !== 'connecting';
    this.phase = 'gone';
    this.readAtMs = this.clock.monotonicMs();
    for (const slot of this.#table.openSlots()) {
      // A status is an answer, even when what followed it was cut off.
      if ((this.#table.statuses[slot] ?? 0) > 0) this.#replies.answer(slot);
      else this.#replies.giveUp(slot, 'connection_lost');
    }
    this.#owner.onGone(this, this.#failure, wasOpen);
  }
}
