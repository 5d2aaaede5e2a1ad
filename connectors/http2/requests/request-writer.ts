import { applySettings, initialSettings, type PeerSettings } from '../frames/control-frames.ts';
import type { Output } from '../frames/output.ts';
import {
  defaultFrameBytes,
  defaultWindowBytes,
  errorCode,
  flag,
  frame,
  maxWindowBytes,
  throwConnectionError,
  writeUint24,
  writeUint32,
} from '../frames/wire-format.ts';
import { HeaderEncoder } from '../hpack/encoder.ts';
import type { StreamTable } from '../streams/stream-table.ts';
import type { TransportRequest } from '../transport.ts';
import type { ActiveBatch } from './active-batch.ts';
import { type EncodedRequest, EncoderCache } from './encoded-request.ts';

/**
 * Writes the requests of one connection to its output. Respects the flow-control windows (RFC 9113
 * 5.2, 8.1).
 */

/** Above this number of unsent bytes, no request is written until the socket drains. */
const maxBacklogBytes = 524_288;
/**
 * Largest DATA frame, even if the peer allows more. The unsent bytes may exceed their limit by one
 * frame.
 */
const maxDataBytes = 65_536;
/** Maximum number of bodies that wait for a window at the same time. */
const maxUploads = 64;
/**
 * Largest header block or body that is written as a single frame without checks. Every peer accepts
 * frames of this size.
 */
const usualBytes = defaultFrameBytes;

/**
 * When a request was written: the time for its timeout, and the number of earlier reads for the
 * watchdog.
 */
export interface WriteTime {
  nowMs: number;
  reads: number;
}

export class RequestWriter {
  settings: PeerSettings = initialSettings;
  /** Id of the next stream. Ids of clients are odd (RFC 9113 5.1.1). */
  nextId = 1;
  readonly #encoder = new HeaderEncoder();
  readonly #output: Output;
  readonly #table: StreamTable;
  readonly #uploads = new Uploads();
  readonly #encoders = new EncoderCache(this.#encoder);
  /** Flow-control window of the connection. */
  #window = defaultWindowBytes;
  /** Largest body that is written together with its request, in one frame. */
  #bodyLimit = Math.min(usualBytes, initialSettings.initialWindowSize);

  constructor(output: Output, table: StreamTable) {
    this.#output = output;
    this.#table = table;
  }

  /**
   * True if no request can be written completely: the window is empty, too many bodies wait, or the
   * socket has too many unsent bytes.
   */
  get isBlocked(): boolean {
    return (
      this.#window <= 0 ||
      this.#uploads.count >= maxUploads ||
      this.#output.backlog >= maxBacklogBytes
    );
  }

  /** Writes up to `count` waiting requests of `batch`. Returns how many were written. */
  write(batch: ActiveBatch, count: number, moment: WriteTime): number {
    const encoder = this.#encoders.of(batch);
    const limit = this.isBlocked ? 0 : Math.min(count, batch.waiting);
    let written = 0;
    while (written < limit && this.#window > 0 && this.#uploads.count < maxUploads) {
      const index = batch.take();
      const request = batch.requests[index];
      if (request === undefined) throw new Error('a request beyond the end of its batch');
      this.#open(batch, index, moment);
      this.#write(batch, request, encoder.encode(request));
      written += 1;
    }
    this.#encoder.countBlocks(written);
    return written;
  }

  onSettings(payload: Buffer): void {
    const before = this.settings.initialWindowSize;
    this.settings = applySettings(this.settings, payload, (bytes) =>
      this.#encoder.setPeerTableSize(bytes),
    );
    this.#bodyLimit = Math.min(usualBytes, this.settings.initialWindowSize);
    if (!this.#uploads.adjustWindows(this.settings.initialWindowSize - before))
      throwConnectionError(errorCode.flowControl, 'a window beyond 2^31-1');
  }

  /** Handles a WINDOW_UPDATE (RFC 9113 6.9). Returns the code of a stream error, or null. */
  onWindowUpdate(id: number, increment: number): number | null {
    if (id !== 0) {
      if (increment === 0) return errorCode.protocol;
      return this.#uploads.onWindowUpdate(id, increment) ? null : errorCode.flowControl;
    }
    if (increment === 0) throwConnectionError(errorCode.protocol, 'WINDOW_UPDATE of 0');
    this.#window += increment;
    if (this.#window > maxWindowBytes)
      throwConnectionError(errorCode.flowControl, 'a window beyond 2^31-1');
    return null;
  }

  /** See `Uploads.progress`. */
  get uploadProgress(): number {
    return this.#uploads.uploadProgress;
  }

  /** Writes waiting bodies as far as the windows allow. */
  pump(): void {
    if (this.#uploads.count === 0) return;
    const frameBytes = Math.min(this.settings.maxFrameSize, maxDataBytes);
    this.#window -= this.#uploads.pump(this.#output, this.#window, frameBytes);
  }

  /** Drops the rest of a body. Returns true if there was a rest. */
  dropUpload(id: number): boolean {
    return this.#uploads.count > 0 && this.#uploads.drop(id);
  }

  #open(batch: ActiveBatch, index: number, { nowMs, reads }: WriteTime): void {
    const table = this.#table;
    const slot = table.open(this.nextId);
    table.batches[slot] = batch;
    table.indices[slot] = index;
    table.writtenAtMs[slot] = nowMs;
    table.readsBefore[slot] = reads;
  }

  #write(batch: ActiveBatch, request: TransportRequest, encoded: EncodedRequest): void {
    const id = this.nextId;
    this.nextId = id + 2;
    const { tail } = encoded;
    const splice = tail === null ? '' : (request.splice ?? '');
    const spliceBytes = typeof splice === 'string' ? Buffer.byteLength(splice) : splice.length;
    const bodyBytes = encoded.bodyBytes + spliceBytes;
    if (
      bodyBytes > this.#window ||
      bodyBytes > this.#bodyLimit ||
      encoded.blockBytes > usualBytes
    ) {
      this.#writeLarge(batch, id, request, encoded);
      return;
    }
    const output = this.#output;
    const length = encoded.bytes.length;
    output.reserve(length + spliceBytes + (tail === null ? 0 : tail.length));
    const { bytes, length: at } = output;
    bytes.set(encoded.bytes, at);
    writeUint32(bytes, at + 5, id);
    if (request.path !== '') bytes.write(request.path, at + encoded.pathOffset, 'latin1');
    if (encoded.headerOffset >= 0)
      bytes.write(request.headerValue ?? '', at + encoded.headerOffset, 'latin1');
    if (encoded.dataOffset >= 0) writeUint32(bytes, at + encoded.dataOffset + 5, id);
    let end = at + length;
    if (tail !== null) {
      if (typeof splice === 'string') bytes.write(splice, end, 'utf8');
      else bytes.set(splice, end);
      bytes.set(tail, end + spliceBytes);
      end += spliceBytes + tail.length;
      writeUint24(bytes, at + encoded.dataOffset, bodyBytes);
    }
    output.length = end;
    this.#window -= bodyBytes;
  }

  /**
   * Writes a request that does not fit into two frames: with CONTINUATION frames, and the body as
   * far as the windows allow.
   */
  #writeLarge(
    batch: ActiveBatch,
    id: number,
    request: TransportRequest,
    encoded: EncodedRequest,
  ): void {
    const body = bodyOf(batch, request);
    const block = encoded.blockOf(request);
    const { maxFrameSize } = this.settings;
    for (let at = 0; at < block.length; at += maxFrameSize) {
      const piece = block.subarray(at, at + maxFrameSize);
      const isLast = at + piece.length === block.length;
      const flags =
        (at === 0 && body.length === 0 ? flag.endStream : 0) | (isLast ? flag.endHeaders : 0);
      const type = at === 0 ? frame.headers : frame.continuation;
      this.#output.appendFrame({ type, flags, streamId: id }, piece);
    }
    if (body.length === 0) return;
    this.#uploads.add(id, body, this.settings.initialWindowSize);
    this.pump();
  }
}

function bodyOf({ template }: ActiveBatch, { splice }: TransportRequest): Buffer {
  const { body, spliceAt } = template;
  if (spliceAt === undefined || splice === undefined) return body;
  const inserted = typeof splice === 'string' ? Buffer.from(splice) : splice;
  return Buffer.concat([body.subarray(0, spliceAt), inserted, body.subarray(spliceAt)]);
}

/**
 * Body that did not fit into the windows, a frame or the socket when its request was written (RFC
 * 9113 5.2).
 */
interface Upload {
  id: number;
  body: Buffer;
  at: number;
  /** Flow-control window of the stream. */
  window: number;
}

class Uploads {
  /**
   * Number of written frames plus one per KiB in them. A peer may send this number of WINDOW_UPDATE
   * frames.
   */
  uploadProgress = 0;
  readonly #uploads = new Map<number, Upload>();

  get count(): number {
    return this.#uploads.size;
  }

  add(id: number, body: Buffer, window: number): void {
    this.#uploads.set(id, { id, body, at: 0, window });
  }

  drop(id: number): boolean {
    return this.#uploads.delete(id);
  }

  /** Handles a WINDOW_UPDATE of a stream. Returns false if the window exceeds the maximum. */
  onWindowUpdate(id: number, bytes: number): boolean {
    const upload = this.#uploads.get(id);
    if (upload) upload.window += bytes;
    return upload === undefined || upload.window <= maxWindowBytes;
  }

  /**
   * Adjusts all stream windows to a new initial window. A window may become negative (RFC 9113
   * 6.9.2).
   */
  adjustWindows(bytes: number): boolean {
    for (const upload of this.#uploads.values()) {
      upload.window += bytes;
      if (upload.window > maxWindowBytes) return false;
    }
    return true;
  }

  /**
   * Writes as much as the limits allow, oldest body first, in frames of up to `frameBytes`. Returns
   * the number of bytes taken from the connection's window.
   */
  pump(output: Output, connectionWindow: number, frameBytes: number): number {
    let left = connectionWindow;
    for (const upload of this.#uploads.values()) {
      let isDone = false;
      while (!isDone && output.backlog < maxBacklogBytes) {
        const rest = upload.body.length - upload.at;
        const length = Math.min(rest, upload.window, left, frameBytes);
        if (length <= 0) break;
        isDone = length === rest;
        output.appendFrame(
          { type: frame.data, flags: isDone ? flag.endStream : 0, streamId: upload.id },
          upload.body.subarray(upload.at, upload.at + length),
        );
        this.uploadProgress += 1 + (length >>> 10);
        upload.at += length;
        upload.window -= length;
        left -= length;
      }
      if (isDone) this.#uploads.delete(upload.id);
      if (left <= 0) break;
    }
    return connectionWindow - left;
  }
}
