/** Where a written piece goes. `done` is called when its bytes are needed no more. */
export interface ByteSink {
  /** Bytes that were handed over and are not on their way yet. */
  readonly writableLength: number;
  write(bytes: Uint8Array, done: () => void): void;
}

/** One write of this size is four TLS records; larger ones were no faster. */
const bufferBytes = 65_536;
const keptBuffers = 4;

/**
 * Frames on their way out, gathered in buffers that are used again: one write per loop turn (or per full
 * buffer) however many requests it holds.
 */
export class Output {
  /** Being filled; valid until the next `reserve` or `flush`. */
  bytes: Buffer;
  length = 0;
  readonly #sink: ByteSink;
  readonly #free: Buffer[] = [];

  constructor(sink: ByteSink) {
    this.#sink = sink;
    this.bytes = Buffer.allocUnsafeSlow(bufferBytes);
  }

  /** Bytes that did not leave yet. */
  get backlog(): number {
    return this.length + this.#sink.writableLength;
  }

  /** Makes sure that so many bytes fit behind `length`; more than a buffer holds go through `append`. */
  reserve(count: number): void {
    if (this.length + count > bufferBytes) this.flush();
  }

  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.length === bufferBytes) this.flush();
      const piece = bytes.subarray(at, at + bufferBytes - this.length);
      this.bytes.set(piece, this.length);
      this.length += piece.length;
      at += piece.length;
    }
  }

  flush(): void {
    if (this.length === 0) return;
    const written = this.bytes;
    const piece = written.subarray(0, this.length);
    this.bytes = this.#free.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
    this.length = 0;
    this.#sink.write(piece, () => {
      if (this.#free.length < keptBuffers) this.#free.push(written);
    });
  }
}
