/** Where a written piece goes. `done` is called when its bytes are needed no more. */
export interface ByteSink {
  /** Bytes that were handed over and are not on their way yet. */
  readonly writableLength: number;
  write(bytes: Uint8Array, done: () => void): void;
}

const firstBytes = 65_536;
/**
 * Buffers grow to this while turns fill them, so that a turn stays one write: Node copies the pieces of
 * several into one.
 */
const mostBytes = 524_288;
const keptBuffers = 2;

/**
 * Frames on their way out, gathered in buffers that are used again: one write per loop turn however many
 * requests it holds.
 */
export class Output {
  /** Being filled; valid until the next `reserve`, `append` or `flush`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(firstBytes);
  length = 0;
  /** Pieces that have left in all: it grows as long as the peer reads. */
  sentPieces = 0;
  readonly #sink: ByteSink;
  readonly #free: Buffer[] = [];
  /** Of the piece that is being filled, bytes of answers; see `owed`. */
  #bufferedControlBytes = 0;
  #writtenControlBytes = 0;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** Bytes that did not leave yet. */
  get backlog(): number {
    return this.length + this.#sink.writableLength;
  }

  /** Bytes among them that answer the peer's frames: no requests, no bodies. */
  get controlBytes(): number {
    return this.#bufferedControlBytes + this.#writtenControlBytes;
  }

  /** Makes sure that so many bytes, at most 64 KiB, fit behind `length`. */
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

  /** Appends an answer to a frame of the peer. */
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
