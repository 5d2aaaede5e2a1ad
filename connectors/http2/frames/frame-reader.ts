import {
  ConnectionError,
  defaultFrameBytes,
  errorCode,
  flag,
  frame,
  frameHeaderBytes,
  readUint24,
  readUint31,
  readUint32,
  throwConnectionError,
} from './wire-format.ts';

/**
 * Splits the bytes of a peer into frames (RFC 9113 4, 6). A frame that is complete in the read
 * buffer is not copied; the handler gets its range. The reader checks each frame alone. The handler
 * checks it against the state of the session.
 */

/**
 * Limits of one header block over all its frames. They protect against floods of CONTINUATION
 * frames.
 */
const maxBlockBytes = 65_536;
const maxContinuations = 32;

export interface FrameHandler {
  /** Receives a complete header block without padding and priority. */
  onHeaders(streamId: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void;
  /** `flowBytes` includes the padding. */
  onData(streamId: number, isEnd: boolean, flowBytes: number, piece: ByteRange): void;
  onSettings(payload: Buffer): void;
  onSettingsAck(): void;
  onPing(isAck: boolean, opaque: Buffer): void;
  onGoaway(lastId: number, code: number, debugData: Buffer): void;
  onReset(streamId: number, code: number): void;
  /** `streamId` 0 means the connection. */
  onWindowUpdate(streamId: number, increment: number): void;
  /** Called for PRIORITY frames and frames of unknown types. */
  onIgnored(): void;
  /**
   * Called for a connection error of the reader, or thrown by another method of the handler.
   * Nothing is read after it.
   */
  onConnectionError(error: ConnectionError): void;
}

/** Range of a read buffer. Valid only during the call. */
export interface ByteRange {
  bytes: Buffer;
  start: number;
  end: number;
}

const nothing = Buffer.alloc(0);

export class FrameReader {
  readonly #handler: FrameHandler;
  /** The frame that is not complete yet. */
  readonly #partial = Buffer.allocUnsafeSlow(frameHeaderBytes + defaultFrameBytes);
  #partialBytes = 0;
  /** Parts of the current header block. Its last frame, with END_HEADERS, has not arrived yet. */
  #block: Buffer[] = [];
  #blockBytes = 0;
  #blockId = 0;
  #isBlockEnd = false;
  #isFirst = true;
  #isStopped = false;
  readonly #piece: ByteRange = { bytes: nothing, start: 0, end: 0 };

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Stops reading, even within the current chunk. */
  stop(): void {
    this.#isStopped = true;
    this.#block = [];
  }

  push(chunk: Buffer): void {
    if (this.#isStopped) return;
    try {
      this.#read(chunk);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.stop();
      this.#handler.onConnectionError(error);
    }
  }

  #read(chunk: Buffer): void {
    let at = this.#partialBytes > 0 ? this.#complete(chunk) : 0;
    while (!this.#isStopped && chunk.length - at >= frameHeaderBytes) {
      const end = at + frameBytesAt(chunk, at);
      if (end > chunk.length) break;
      this.#frame(chunk, at, end);
      at = end;
    }
    if (this.#isStopped || at >= chunk.length) return;
    chunk.copy(this.#partial, 0, at);
    this.#partialBytes = chunk.length - at;
  }

  /** Completes the partial frame. Returns the offset of the next frame in `chunk`. */
  #complete(chunk: Buffer): number {
    let at = 0;
    if (this.#partialBytes < frameHeaderBytes) {
      at = this.#take(chunk, 0, frameHeaderBytes);
      if (this.#partialBytes < frameHeaderBytes) return at;
    }
    const frameBytes = frameBytesAt(this.#partial, 0);
    at = this.#take(chunk, at, frameBytes);
    if (this.#partialBytes < frameBytes) return at;
    this.#partialBytes = 0;
    this.#frame(this.#partial, 0, frameBytes);
    return at;
  }

  #take(chunk: Buffer, at: number, upTo: number): number {
    const end = Math.min(chunk.length, at + upTo - this.#partialBytes);
    chunk.copy(this.#partial, this.#partialBytes, at, end);
    this.#partialBytes += end - at;
    return end;
  }

  #frame(bytes: Buffer, at: number, end: number): void {
    const type = bytes[at + 3] ?? 0;
    const flags = bytes[at + 4] ?? 0;
    const streamId = readUint31(bytes, at + 5);
    const start = at + frameHeaderBytes;
    if (this.#isFirst) {
      this.#isFirst = false;
      if (type !== frame.settings || flags & flag.ack)
        throwConnectionError(errorCode.protocol, 'the first frame is not SETTINGS');
    }
    if (this.#blockId !== 0 && (type !== frame.continuation || streamId !== this.#blockId))
      throwConnectionError(errorCode.protocol, 'a header block is interrupted');
    switch (type) {
      case frame.headers:
        this.#headers(flags, streamId, bytes, start, end);
        break;
      case frame.data:
        this.#data(flags, streamId, bytes, start, end);
        break;
      case frame.continuation:
        this.#continuation(flags, bytes, start, end);
        break;
      default:
        this.#rareFrame(type, flags, streamId, bytes, start, end);
    }
  }

  #headers(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId === 0) throwConnectionError(errorCode.protocol, 'HEADERS without a stream');
    let from = start;
    let to = end;
    if (flags & (flag.padded | flag.priority)) {
      const padding = flags & flag.padded ? (bytes[from++] ?? 0) : 0;
      if (flags & flag.priority) from += 5;
      to -= padding;
      if (from > to || start === end)
        throwConnectionError(
          from > end ? errorCode.frameSize : errorCode.protocol,
          'HEADERS with more padding than bytes',
        );
    }
    const isEnd = (flags & flag.endStream) !== 0;
    if (flags & flag.endHeaders) {
      this.#handler.onHeaders(streamId, isEnd, bytes, from, to);
      return;
    }
    this.#blockId = streamId;
    this.#isBlockEnd = isEnd;
    this.#blockBytes = to - from;
    this.#block = [Buffer.from(bytes.subarray(from, to))];
  }

  #continuation(flags: number, bytes: Buffer, start: number, end: number): void {
    if (this.#blockId === 0)
      throwConnectionError(errorCode.protocol, 'CONTINUATION without HEADERS');
    this.#blockBytes += end - start;
    if (this.#blockBytes > maxBlockBytes || this.#block.length > maxContinuations)
      throwConnectionError(errorCode.enhanceYourCalm, 'a header block above the limit');
    this.#block.push(Buffer.from(bytes.subarray(start, end)));
    if ((flags & flag.endHeaders) === 0) return;
    const block = Buffer.concat(this.#block);
    const streamId = this.#blockId;
    this.#block = [];
    this.#blockId = 0;
    this.#handler.onHeaders(streamId, this.#isBlockEnd, block, 0, block.length);
  }

  #data(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId === 0) throwConnectionError(errorCode.protocol, 'DATA without a stream');
    const piece = this.#piece;
    piece.bytes = bytes;
    piece.start = start;
    piece.end = end;
    if (flags & flag.padded) {
      piece.start += 1;
      piece.end -= bytes[start] ?? 0;
      if (start === end)
        throwConnectionError(errorCode.frameSize, 'DATA without its padding length');
      if (piece.start > piece.end)
        throwConnectionError(errorCode.protocol, 'DATA with more padding than bytes');
    }
    this.#handler.onData(streamId, (flags & flag.endStream) !== 0, end - start, piece);
    piece.bytes = nothing;
  }

  #rareFrame(
    type: number,
    flags: number,
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    const isAck = (flags & flag.ack) !== 0;
    const error = frameError(type, streamId, end - start, isAck);
    if (error !== null) throwConnectionError(error, `an invalid frame of type ${type}`);
    const handler = this.#handler;
    if (type === frame.settings && isAck) handler.onSettingsAck();
    else if (type === frame.settings) handler.onSettings(bytes.subarray(start, end));
    else if (type === frame.ping) handler.onPing(isAck, bytes.subarray(start, end));
    else if (type === frame.reset) handler.onReset(streamId, readUint32(bytes, start));
    else if (type === frame.windowUpdate)
      handler.onWindowUpdate(streamId, readUint31(bytes, start));
    else if (type === frame.goaway)
      handler.onGoaway(
        readUint31(bytes, start),
        readUint32(bytes, start + 4),
        bytes.subarray(start + 8, end),
      );
    else handler.onIgnored();
  }
}

/** Returns the number of bytes of the frame at an offset. Throws if it is above our limit. */
function frameBytesAt(bytes: Buffer, at: number): number {
  const length = readUint24(bytes, at);
  if (length > defaultFrameBytes)
    throwConnectionError(errorCode.frameSize, 'a frame is larger than announced');
  return frameHeaderBytes + length;
}

/**
 * Checks type, length and stream of a frame (RFC 9113 6). Returns the error code of the connection;
 * null if the frame is valid.
 */
function frameError(type: number, streamId: number, length: number, isAck: boolean): number | null {
  const isOfConnection = type === frame.settings || type === frame.ping || type === frame.goaway;
  const isOfStream = type === frame.priority || type === frame.reset;
  if (isOfConnection && streamId !== 0) return errorCode.protocol;
  if (isOfStream && streamId === 0) return errorCode.protocol;
  // Our SETTINGS disable server push (RFC 9113 6.6).
  if (type === frame.pushPromise) return errorCode.protocol;
  if (type === frame.settings && (isAck ? length !== 0 : length % 6 !== 0))
    return errorCode.frameSize;
  const fixed = fixedLengths.get(type);
  if (fixed !== undefined && length !== fixed) return errorCode.frameSize;
  return type === frame.goaway && length < 8 ? errorCode.frameSize : null;
}

const fixedLengths = new Map<number, number>([
  [frame.priority, 5],
  [frame.reset, 4],
  [frame.ping, 8],
  [frame.windowUpdate, 4],
]);

/** Number of useless frames that are allowed in a burst. */
const burst = 10_000;
/** Number of additional useless frames allowed per response. */
const perReply = 4;
/**
 * Number of additional useless frames allowed per sweep. There are at least two sweeps per second.
 */
const perSweep = 250;
/**
 * Number of WINDOW_UPDATE frames that are allowed per DATA frame of a waiting body, and per KiB in
 * it.
 */
const windowsPerStep = 4;
/**
 * Maximum number of unused WINDOW_UPDATE frames. A peer may read a body long after it was written.
 */
const maxWindows = 100_000;

/**
 * Detects floods of frames that cause work but contain no response: SETTINGS, PING, WINDOW_UPDATE,
 * RST_STREAM, empty DATA, frames of closed streams and of unknown types. Throws ENHANCE_YOUR_CALM
 * above the limits (RFC 9113 10.5).
 */
export class FloodGuard {
  #count = 0;
  #uploaded = 0;
  #windows = 0;

  count(): void {
    this.#count += 1;
    if (this.#count > burst)
      throwConnectionError(errorCode.enhanceYourCalm, 'too many frames without a response');
  }

  /** Counts a WINDOW_UPDATE frame. */
  countWindowUpdate(): void {
    if (this.#windows > 0) this.#windows -= 1;
    else this.count();
  }

  /**
   * Allows WINDOW_UPDATE frames for the bodies written so far. `progress` is
   * `Uploads.uploadProgress`.
   */
  onUploadProgress(progress: number): void {
    if (progress === this.#uploaded) return;
    this.#windows = Math.min(
      maxWindows,
      this.#windows + windowsPerStep * (progress - this.#uploaded),
    );
    this.#uploaded = progress;
  }

  onResponse(): void {
    if (this.#count > 0) this.#count = Math.max(0, this.#count - perReply);
  }

  onSweep(): void {
    this.#count = Math.max(0, this.#count - perSweep);
  }
}
