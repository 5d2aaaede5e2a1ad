/** What is said over an established connection: every frame of the peer, and what follows from it (RFC 9113 6). */
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../../shared/clock.ts';
import { goawayReason } from '../stream-outcome.ts';
import type { TransportReason } from '../transport.ts';
import { type ConnectionError, throwConnectionError } from './frames/connection-error.ts';
import { ControlFrames, receiveWindowBytes } from './frames/control-frames.ts';
import { FloodGuard } from './frames/flood-guard.ts';
import { type FrameHandler, FrameReader, type Piece } from './frames/frame-reader.ts';
import { Output } from './frames/output.ts';
import { errorCode } from './frames/wire-format.ts';
import type { ActiveBatch } from './requests/active-batch.ts';
import { RequestWriter } from './requests/request-writer.ts';
import type { Http2SessionHost } from './session-host.ts';
import { ResponseReader, type ResponseReaderHost } from './streams/response-reader.ts';
import { StreamTable } from './streams/stream-table.ts';

/** Answers to its PINGs, SETTINGS and replies that a peer may leave unread; requests and bodies are not among them. */
const maxUnreadBytes = 131_072;
/** How long a connection that said goodbye may take to close. */
const farewellMs = 1000;

export class Http2Session implements FrameHandler, ResponseReaderHost {
  readonly clock: Clock;
  readAtMs = 0;
  readonly table = new StreamTable();
  readonly sending: RequestWriter;
  readonly #host: Http2SessionHost;
  readonly #socket: TLSSocket;
  readonly #output: Output;
  readonly #words: ControlFrames;
  readonly #guard = new FloodGuard();
  readonly #replies: ResponseReader;
  readonly #reader: FrameReader;
  #received = 0;
  #goawayLastId = Number.POSITIVE_INFINITY;
  /** What comes is not read any more. */
  #isClosed = false;
  /** The goodbye has left our hands: nothing may be written behind it. */
  #isEnded = false;
  /** Something in what was read may make room. */
  #isStirred = false;

  constructor(socket: TLSSocket, host: Http2SessionHost) {
    this.#socket = socket;
    this.#host = host;
    this.clock = host.clock;
    this.#output = new Output(socket);
    this.#words = new ControlFrames(this.#output);
    this.sending = new RequestWriter(this.#output, this.table);
    this.#replies = new ResponseReader(this, this.table, this.#guard);
    this.#reader = new FrameReader(this);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('drain', () => {
      this.sending.pump();
      this.flush();
      host.onRoom();
    });
    this.#words.sendPreface(this.clock.monotonicMs());
    this.flush();
  }

  get nextId(): number {
    return this.sending.nextId;
  }

  get isWritable(): boolean {
    return this.#socket.writable && !this.sending.isBlocked;
  }

  /** Bytes wait for a peer that does not read as fast as we write. */
  get isBehind(): boolean {
    return this.#output.backlog > 0;
  }

  get departed(): number {
    return this.#output.departed;
  }

  /** The peer makes us answer and does not read the answers. */
  get isUnread(): boolean {
    return this.#output.owed > maxUnreadBytes;
  }

  flush(): void {
    if (!this.#isEnded) this.#output.flush();
  }

  /** Sends a PING; `callback` hears when it was answered. */
  ping(callback: (error: null) => void): void {
    this.#words.ping(callback);
    this.flush();
  }

  /**
   * Says goodbye, with the code of an error or of none, and closes when that has left. No stream is open any more,
   * or the peer broke the rules: what it says from now on is passed over, and gets no answer.
   */
  close(code: number): void {
    this.#words.sendGoaway(code);
    this.flush();
    this.#isClosed = true;
    this.#isEnded = true;
    this.#reader.stop();
    this.#socket.destroySoon();
    // A peer that reads nothing is not waited for.
    setTimeout(() => this.#socket.destroy(), farewellMs).unref();
  }

  /** Reads and answers no more; requests on their way end as `giveUpAll` says. */
  destroy(): void {
    this.#isClosed = true;
    this.#reader.stop();
    this.#socket.destroy();
  }

  /** Ends requests that waited too long for their answer; gives `readsBefore` of each. */
  timeOut(nowMs: number, requestMs: number): number[] {
    const { ids, readsBefore, statuses, writtenAtMs } = this.table;
    const late: number[] = [];
    this.readAtMs = nowMs;
    this.#guard.onSweep();
    for (let slot = 0; this.table.count > 0 && slot < ids.length; slot++) {
      const id = ids[slot] ?? 0;
      if (id === 0 || nowMs - (writtenAtMs[slot] ?? 0) <= requestMs) continue;
      late.push(readsBefore[slot] ?? 0);
      this.reset(id, errorCode.cancel);
      if ((statuses[slot] ?? 0) > 0) this.#replies.answer(slot);
      else this.#replies.giveUp(slot, 'timeout');
    }
    return late;
  }

  /** The connection is lost: a status is an answer, even when what followed it was cut off. */
  giveUpAll(): void {
    this.readAtMs = this.clock.monotonicMs();
    for (const slot of this.table.openSlots()) {
      if ((this.table.statuses[slot] ?? 0) > 0) this.#replies.answer(slot);
      else this.#replies.giveUp(slot, 'connection_lost');
    }
  }

  onHeaders(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    this.#replies.onHeaders(id, isEnd, bytes, start, end);
  }

  onData(id: number, isEnd: boolean, flowBytes: number, piece: Piece): void {
    this.#received += flowBytes;
    if (this.#received > receiveWindowBytes)
      throwConnectionError(errorCode.flowControl, 'more than the window');
    this.#replies.onData(id, isEnd, flowBytes, piece);
  }

  onReset(id: number, code: number): void {
    this.sending.dropUpload(id);
    this.#replies.onReset(id, code);
    this.#isStirred = true;
  }

  onSettings(payload: Buffer): void {
    this.#guard.note();
    this.sending.onSettings(payload);
    this.#words.acknowledgeSettings();
    this.#isStirred = true;
    this.#host.onSettings();
  }

  onSettingsAck(): void {
    this.#guard.note();
    const seconds = this.#words.onSettingsAck(this.readAtMs);
    if (seconds !== null) this.#host.onRoundTrip(seconds);
  }

  onPing(isAck: boolean, opaque: Buffer): void {
    this.#guard.note();
    this.#words.onPing(isAck, opaque);
  }

  onWindow(id: number, increment: number): void {
    this.#guard.noteWindow();
    this.#isStirred = true;
    const problem = this.sending.onWindow(id, increment);
    const slot = problem === null ? -1 : this.table.find(id);
    if (problem !== null && slot >= 0) {
      this.reset(id, problem);
      this.#replies.giveUp(slot, 'stream_reset');
    } else if (id !== 0 && ((id & 1) === 0 || id >= this.nextId))
      throwConnectionError(errorCode.protocol, 'a window of a stream that is not');
  }

  onIgnored(): void {
    this.#guard.note();
  }

  /** Streams above `lastId` were not processed, and the peer takes no more (RFC 9113 6.8). */
  onGoaway(lastId: number, code: number, debugData: Buffer): void {
    this.#guard.note();
    this.#goawayLastId = Math.min(this.#goawayLastId, lastId);
    this.#host.onGoaway(goawayReason(debugData) ?? `code_${code}`);
    for (const slot of this.table.openSlots()) {
      const id = this.table.ids[slot] ?? 0;
      if (id <= this.#goawayLastId) continue;
      this.sending.dropUpload(id);
      this.#replies.handBack(slot, 'goaway');
    }
  }

  onFault({ code }: ConnectionError): void {
    this.#isClosed = true;
    this.#socket.pause();
    this.close(code);
    this.#host.onFault(code);
  }

  onAnswer(status: number, seconds: number): void {
    this.#isStirred = true;
    this.#host.onAnswer(status, seconds);
  }

  drain(): void {
    this.#host.drain();
  }

  onClosed(id: number): void {
    if (this.sending.dropUpload(id)) this.#words.reset(id, errorCode.cancel);
  }

  reset(id: number, code: number): void {
    this.sending.dropUpload(id);
    this.#words.reset(id, code);
  }

  onHandedBack(run: ActiveBatch, index: number, reason: TransportReason): void {
    this.#host.onHandedBack(run, index, reason);
  }

  onUnknown(run: ActiveBatch, index: number, reason: TransportReason, seconds: number): void {
    this.#host.onUnknown(run, index, reason, seconds);
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.readAtMs = this.clock.monotonicMs();
    this.#host.onRead();
    this.#isStirred = false;
    this.#guard.onUploaded(this.sending.progress);
    this.#reader.push(chunk);
    if (this.#isClosed) return;
    if (this.#received >= receiveWindowBytes / 2) {
      this.#words.sendWindowUpdate(this.#received);
      this.#received = 0;
    }
    if (this.#isStirred) {
      this.sending.pump();
      this.#host.onRoom();
    }
    this.flush();
  }
}
