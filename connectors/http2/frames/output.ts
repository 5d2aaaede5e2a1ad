/** Sink of written bytes. `done` is called when they may be reused. */
export interface ByteSink {
  /** Bytes handed over and not written yet. */
  readonly writableLength: number;
  write(bytes: Uint8Array, done: () => void): void;
}

const firstBytes = 65_536;
/**
 * Size to which buffers grow, so that a turn stays one write: Node would copy several pieces into
 * one.
 */
const mostBytes = 524_288;
const keptBuffers = 2;

/**
 * Write buffer for frames: one write per tick of the event loop, for any number of requests. Reuses
 * its buffers.
 */
export class Output {
  /** Current buffer; valid until the next `reserve`, `append` or `flush`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(firstBytes);
  length = 0;
  /** Number of written pieces; it grows as long as the peer reads. */
  sentPieces = 0;
  readonly #sink: ByteSink;
  readonly #free: Buffer[] = [];
  /** Control bytes in the current buffer; see `controlBytes`. */
  #bufferedControlBytes = 0;
  #writtenControlBytes = 0;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** Unsent bytes. */
  get backlog(): number {
    return this.length + this.#sink.writableLength;
  }

  /** Unsent bytes of control frames, without requests and bodies. */
  get controlBytes(): number {
    return this.#bufferedControlBytes + this.#writtenControlBytes;
  }

  /** Ensures room for `count` bytes, at most 64 KiB, after `length`. */
  reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    if (this.bytes.length >= mostBytes) this.flush();
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
