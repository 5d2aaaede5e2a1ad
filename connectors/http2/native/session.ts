/** What is said over an established connection: every frame of the peer, and what follows from it (RFC 9113 6). */
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../../shared/clock.ts';
import { goawayReason } from '../stream-outcome.ts';
import type { TransportReason } from '../transport.ts';
import { type ConnectionError, throwConnectionError } from './frames/connection-error.ts';
import { ControlFrames, receiveWindowBytes } from './frames/control-frames.ts';
import { FloodGuard } from './frames/flood-guard.ts';
import { type ByteRange, type FrameHandler, FrameReader } from './frames/frame-reader.ts';
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
  readonly writer: RequestWriter;
  readonly #host: Http2SessionHost;
  readonly #socket: TLSSocket;
  readonly #output: Output;
  readonly #controlFrames: ControlFrames;
  readonly #guard = new FloodGuard();
  readonly #responses: ResponseReader;
  readonly #reader: FrameReader;
  #received = 0;
  #goawayLastId = Number.POSITIVE_INFINITY;
  /** What comes is not read any more. */
  #isClosed = false;
  /** The goodbye has left our hands: nothing may be written behind it. */
  #isEnded = false;
  /** Something in what was read may make room. */
  #mayHaveCapacity = false;

  constructor(socket: TLSSocket, host: Http2SessionHost) {
    this.#socket = socket;
    this.#host = host;
    this.clock = host.clock;
    this.#output = new Output(socket);
    this.#controlFrames = new ControlFrames(this.#output);
    this.writer = new RequestWriter(this.#output, this.table);
    this.#responses = new ResponseReader(this, this.table, this.#guard);
    this.#reader = new FrameReader(this);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('drain', () => {
      this.writer.pump();
      this.flush();
      host.onCapacity();
    });
    this.#controlFrames.sendPreface(this.clock.monotonicMs());
    this.flush();
  }

  get nextId(): number {
    return this.writer.nextId;
  }

  get isWritable(): boolean {
    return this.#socket.writable && !this.writer.isBlocked;
  }

  /** Bytes wait for a peer that does not read as fast as we write. */
  get hasBacklog(): boolean {
    return this.#output.backlog > 0;
  }

  get sentPieces(): number {
    return this.#output.sentPieces;
  }

  /** The peer makes us answer and does not read the answers. */
  get isPeerNotReading(): boolean {
    return this.#output.controlBytes > maxUnreadBytes;
  }

  flush(): void {
    if (!this.#isEnded) this.#output.flush();
  }

  /** Sends a PING; `callback` hears when it was answered. */
  ping(callback: (error: null) => void): void {
    this.#controlFrames.sendPing(callback);
    this.flush();
  }

  /**
   * Says goodbye, with the code of an error or of none, and closes when that has left. No stream is open any more,
   * or the peer broke the rules: what it says from now on is passed over, and gets no answer.
   */
  close(code: number): void {
    this.#controlFrames.sendGoaway(code);
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
  settleTimedOut(nowMs: number, requestMs: number): number[] {
    const { ids, readsBefore, statuses, writtenAtMs } = this.table;
    const late: number[] = [];
    this.readAtMs = nowMs;
    this.#guard.onSweep();
    for (let slot = 0; this.table.count > 0 && slot < ids.length; slot++) {
      const id = ids[slot] ?? 0;
      if (id === 0 || nowMs - (writtenAtMs[slot] ?? 0) <= requestMs) continue;
      late.push(readsBefore[slot] ?? 0);
      this.reset(id, errorCode.cancel);
      if ((statuses[slot] ?? 0) > 0) this.#responses.settleResponse(slot);
      else this.#responses.settleUnknown(slot, 'timeout');
    }
    return late;
  }

  /** The connection is lost: a status is an answer, even when what followed it was cut off. */
  settleAll(): void {
    this.readAtMs = this.clock.monotonicMs();
    for (const slot of this.table.openSlots()) {
      if ((this.table.statuses[slot] ?? 0) > 0) this.#responses.settleResponse(slot);
      else this.#responses.settleUnknown(slot, 'connection_lost');
    }
  }

  onHeaders(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    this.#responses.onHeaders(id, isEnd, bytes, start, end);
  }

  onData(id: number, isEnd: boolean, flowBytes: number, piece: ByteRange): void {
    this.#received += flowBytes;
    if (this.#received > receiveWindowBytes)
      throwConnectionError(errorCode.flowControl, 'more than the window');
    this.#responses.onData(id, isEnd, flowBytes, piece);
  }

  onReset(id: number, code: number): void {
    this.writer.dropUpload(id);
    this.#responses.onReset(id, code);
    this.#mayHaveCapacity = true;
  }

  onSettings(payload: Buffer): void {
    this.#guard.count();
    this.writer.onSettings(payload);
    this.#controlFrames.sendSettingsAck();
    this.#mayHaveCapacity = true;
    this.#host.onSettings();
  }

  onSettingsAck(): void {
    this.#guard.count();
    const seconds = this.#controlFrames.onSettingsAck(this.readAtMs);
    if (seconds !== null) this.#host.onRoundTrip(seconds);
  }

  onPing(isAck: boolean, opaque: Buffer): void {
    this.#guard.count();
    this.#controlFrames.onPing(isAck, opaque);
  }

  onWindowUpdate(id: number, increment: number): void {
    this.#guard.countWindowUpdate();
    this.#mayHaveCapacity = true;
    const problem = this.writer.onWindowUpdate(id, increment);
    const slot = problem === null ? -1 : this.table.find(id);
    if (problem !== null && slot >= 0) {
      this.reset(id, problem);
      this.#responses.settleUnknown(slot, 'stream_reset');
    } else if (id !== 0 && ((id & 1) === 0 || id >= this.nextId))
      throwConnectionError(errorCode.protocol, 'a window of a stream that is not');
  }

  onIgnored(): void {
    this.#guard.count();
  }

  /** Streams above `lastId` were not processed, and the peer takes no more (RFC 9113 6.8). */
  onGoaway(lastId: number, code: number, debugData: Buffer): void {
    this.#guard.count();
    this.#goawayLastId = Math.min(this.#goawayLastId, lastId);
    this.#host.onGoaway(goawayReason(debugData) ?? `code_${code}`);
    for (const slot of this.table.openSlots()) {
      const id = this.table.ids[slot] ?? 0;
      if (id <= this.#goawayLastId) continue;
      this.writer.dropUpload(id);
      this.#responses.settleUnprocessed(slot, 'goaway');
    }
  }

  onConnectionError({ code }: ConnectionError): void {
    this.#isClosed = true;
    this.#socket.pause();
    this.close(code);
    this.#host.onConnectionError(code);
  }

  onResponse(status: number, seconds: number): void {
    this.#mayHaveCapacity = true;
    this.#host.onResponse(status, seconds);
  }

  drain(): void {
    this.#host.drain();
  }

  onStreamClosed(id: number): void {
    if (this.writer.dropUpload(id)) this.#controlFrames.sendReset(id, errorCode.cancel);
  }

  reset(id: number, code: number): void {
    this.writer.dropUpload(id);
    this.#controlFrames.sendReset(id, code);
  }

  onUnprocessed(batch: ActiveBatch, index: number, reason: TransportReason): void {
    this.#host.onUnprocessed(batch, index, reason);
  }

  onUnknown(batch: ActiveBatch, index: number, reason: TransportReason, seconds: number): void {
    this.#host.onUnknown(batch, index, reason, seconds);
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.readAtMs = this.clock.monotonicMs();
    this.#host.onRead();
    this.#mayHaveCapacity = false;
    this.#guard.onUploadProgress(this.writer.uploadProgress);
    this.#reader.push(chunk);
    if (this.#isClosed) return;
    if (this.#received >= receiveWindowBytes / 2) {
      this.#controlFrames.sendWindowUpdate(this.#received);
      this.#received = 0;
    }
    if (this.#mayHaveCapacity) {
      this.writer.pump();
      this.#host.onCapacity();
    }
    this.flush();
  }
}
