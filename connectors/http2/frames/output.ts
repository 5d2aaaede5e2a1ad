import { frameHeaderBytes, writeFrameHead } from './wire-format.ts';

/** Writes bytes, for example to a socket. Calls `done` when the buffer may be reused. */
export interface ByteSink {
  /** Number of bytes that were passed to `write` but are not written yet. */
  readonly writableLength: number;
  write(bytes: Uint8Array, done: () => void): void;
}

const firstBytes = 65_536;
/**
 * Maximum size of a buffer. Large buffers keep one write per tick; Node.js would copy several
 * buffers into one.
 */
const maxBufferBytes = 524_288;
const keptBuffers = 2;

/**
 * Write buffer for frames. Makes one write per tick for any number of requests, and reuses its
 * buffers.
 */
export class Output {
  /** Current buffer. Valid until the next `reserve`, `append` or `flush`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(firstBytes);
  length = 0;
  /** Number of written buffers. It grows while the peer reads. */
  sentPieces = 0;
  readonly #sink: ByteSink;
  readonly #free: Buffer[] = [];
  /** Bytes of control frames in the current buffer; part of `controlBytes`. */
  #bufferedControlBytes = 0;
  #writtenControlBytes = 0;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** Unsent bytes. */
  get backlog(): number {
    return this.length + this.#sink.writableLength;
  }

  /** Unsent bytes of control frames. Requests and bodies do not count. */
  get controlBytes(): number {
    return this.#bufferedControlBytes + this.#writtenControlBytes;
  }

  /** Ensures that `count` bytes fit after `length`. `count` is at most 64 KiB. */
  reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    if (this.bytes.length >= maxBufferBytes) this.flush();
    else this.#grow();
  }

  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      this.reserve(1);
      const piece = bytes.subarray(at, at + this.bytes.length - this.length);
      this.bytes.set(piece, this.length);
      this.length += piece.length;
      at += piece.length;
    }
  }

  /** Appends a frame of a stream. */
  appendFrame(head: { type: number; flags: number; streamId: number }, payload: Uint8Array): void {
    this.reserve(frameHeaderBytes);
    const { length } = payload;
    this.length = writeFrameHead(this.bytes, this.length, { ...head, length });
    this.append(payload);
  }

  /** Appends a control frame. */
  appendControl(bytes: Uint8Array): void {
    this.#bufferedControlBytes += bytes.length;
    this.append(bytes);
  }

  flush(): void {
    if (this.length === 0) return;
    const written = this.bytes;
    const controlBytes = this.#bufferedControlBytes;
    this.#bufferedControlBytes = 0;
    this.#writtenControlBytes += controlBytes;
    const piece = written.subarray(0, this.length);
    this.bytes = this.#free.pop() ?? Buffer.allocUnsafeSlow(firstBytes);
    this.length = 0;
    this.#sink.write(piece, () => {
      this.sentPieces += 1;
      this.#writtenControlBytes -= controlBytes;
      if (this.#free.length < keptBuffers) this.#free.push(written);
    });
  }

  #grow(): void {
    const grown = Buffer.allocUnsafeSlow(this.bytes.length * 2);
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }
}
