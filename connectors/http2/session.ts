/** HTTP/2 session on an established TLS connection. Handles all frames of the peer (RFC 9113 6). */
import type { TLSSocket } from 'node:tls';
import { ControlFrames, receiveWindowBytes } from './frames/control-frames.ts';
import {
  type ByteRange,
  FloodGuard,
  type FrameHandler,
  FrameReader,
} from './frames/frame-reader.ts';
import { Output } from './frames/output.ts';
import { type ConnectionError, errorCode, throwConnectionError } from './frames/wire-format.ts';
import { RequestWriter } from './requests/request-writer.ts';
import {
  type Http2SessionHost,
  ResponseReader,
  type ResponseReaderHost,
} from './streams/response-reader.ts';
import { StreamTable } from './streams/stream-table.ts';

/**
 * Maximum number of unsent bytes in control frames (acknowledgements, resets, window updates).
 * Above it, the connection is closed, because the peer does not read.
 */
const maxUnreadControlBytes = 131_072;
/** Time that the socket may take to close after GOAWAY. */
const closeMs = 1000;

export class Http2Session implements FrameHandler, ResponseReaderHost {
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
  /** True if further input is ignored. */
  #isClosed = false;
  /** True if GOAWAY was written. Nothing may follow it. */
  #isEnded = false;
  /** True if a frame of the current read may have freed capacity. */
  #mayHaveCapacity = false;

  constructor(socket: TLSSocket, host: Http2SessionHost) {
    this.#socket = socket;
    this.#host = host;
    this.#output = new Output(socket);
    this.#controlFrames = new ControlFrames(this.#output);
    this.writer = new RequestWriter(this.#output, this.table);
    this.#responses = new ResponseReader(this, host, this.table, this.#guard);
    this.#reader = new FrameReader(this);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('drain', () => {
      this.writer.pump();
      this.flush();
      host.onCapacity();
    });
    this.#controlFrames.sendPreface(this.#host.clock.monotonicMs());
    this.flush();
  }

  get nextId(): number {
    return this.writer.nextId;
  }

  get isWritable(): boolean {
    return this.#socket.writable && !this.writer.isBlocked;
  }

  /** True if bytes wait, because the peer reads more slowly than the session writes. */
  get hasBacklog(): boolean {
    return this.#output.backlog > 0;
  }

  get sentPieces(): number {
    return this.#output.sentPieces;
  }

  /** True if the peer causes control frames but does not read them. */
  get isPeerNotReading(): boolean {
    return this.#output.controlBytes > maxUnreadControlBytes;
  }

  flush(): void {
    if (!this.#isEnded) this.#output.flush();
  }

  /** Sends a PING. Calls `callback` when the acknowledgement arrives. */
  ping(callback: () => void): void {
    this.#controlFrames.sendPing(callback);
    this.flush();
  }

  /**
   * Sends GOAWAY and closes the socket after it is written. Further frames of the peer are ignored.
   * Called if no stream is open, or because of a connection error.
   */
  close(code: number): void {
    this.#controlFrames.sendGoaway(code);
    this.flush();
    this.#isClosed = true;
    this.#isEnded = true;
    this.#reader.stop();
    this.#socket.destroySoon();
    // Do not wait for a peer that does not read.
    setTimeout(() => this.#socket.destroy(), closeMs).unref();
  }

  /** Destroys the socket. `settleAll` then settles the requests in flight. */
  destroy(): void {
    this.#isClosed = true;
    this.#reader.stop();
    this.#socket.destroy();
  }

  /** Settles requests whose response is overdue. Returns the `readsBefore` of each. */
  settleTimedOut(nowMs: number, requestMs: number): number[] {
    const { ids, readsBefore, writtenAtMs } = this.table;
    const late: number[] = [];
    this.readAtMs = nowMs;
    this.#guard.onSweep();
    for (let slot = 0; this.table.count > 0 && slot < ids.length; slot++) {
      const id = ids[slot] ?? 0;
      if (id === 0 || nowMs - (writtenAtMs[slot] ?? 0) <= requestMs) continue;
      late.push(readsBefore[slot] ?? 0);
      this.reset(id, errorCode.cancel);
      this.#responses.settleLost(slot, 'timeout');
    }
    return late;
  }

  /** Settles all requests of a lost connection. */
  settleAll(): void {
    this.readAtMs = this.#host.clock.monotonicMs();
    for (const slot of this.table.openSlots()) this.#responses.settleLost(slot, 'connection_lost');
  }

  onHeaders(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    this.#responses.onHeaders(id, isEnd, bytes, start, end);
  }

  onData(id: number, isEnd: boolean, flowBytes: number, piece: ByteRange): void {
    this.#received += flowBytes;
    if (this.#received > receiveWindowBytes)
      throwConnectionError(errorCode.flowControl, 'DATA beyond the window');
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
    if (seconds !== null) this.#host.owner.onRoundTrip(seconds);
  }

  onPing(isAck: boolean, opaque: Buffer): void {
    this.#guard.count();
    this.#controlFrames.onPing(isAck, opaque);
  }

  onWindowUpdate(id: number, increment: number): void {
    this.#guard.countWindowUpdate();
    this.#mayHaveCapacity = true;
    const error = this.writer.onWindowUpdate(id, increment);
    const slot = error === null ? -1 : this.table.find(id);
    if (error !== null && slot >= 0) {
      this.reset(id, error);
      this.#responses.settleUnknown(slot, 'stream_reset');
    } else if (id !== 0 && ((id & 1) === 0 || id >= this.nextId))
      throwConnectionError(errorCode.protocol, 'WINDOW_UPDATE of an idle stream');
  }

  onIgnored(): void {
    this.#guard.count();
  }

  /** Settles all streams above `lastId` as unprocessed (RFC 9113 6.8). */
  onGoaway(lastId: number, code: number, debugData: Buffer): void {
    this.#guard.count();
    this.#goawayLastId = Math.min(this.#goawayLastId, lastId);
    this.#host.onGoaway(goawayReason(debugData) ?? `code_${code}`, code);
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

  onStreamClosed(id: number): void {
    if (this.writer.dropUpload(id)) this.#controlFrames.sendReset(id, errorCode.cancel);
  }

  reset(id: number, code: number): void {
    this.writer.dropUpload(id);
    this.#controlFrames.sendReset(id, code);
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.readAtMs = this.#host.clock.monotonicMs();
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

/**
 * Returns the `reason` in the debug data of a GOAWAY, where APNs writes it as JSON
 * (protocol/apns.md#answers).
 */
function goawayReason(data: ArrayBufferView | undefined): string | undefined {
  if (data === undefined || data.byteLength > 1024) return undefined;
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8');
  return /"reason"\s*:\s*"([A-Za-z]{1,40})"/.exec(text)?.[1];
}
