import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Refusal } from '../../domain/errors/errors.ts';
import type { BodyReservation } from './budget.ts';

/** A body of 20 MB at 8 Mbit/s. Slower senders hold memory that others could use. */
export const defaultBodyMs = 20_000;

const unpackers = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** Memory of a decompressor and its buffers; counts as bytes of the body. */
const unpackerBytes = 64 * 1024;

const encodingOf = ({ headers }: IncomingMessage): string =>
  headers['content-encoding']?.trim().toLowerCase() ?? '';

/** Returns whether a request has a `Content-Encoding` other than identity. */
export const isCompressed = (request: IncomingMessage): boolean =>
  !['', 'identity'].includes(encodingOf(request));

/** Returns the `Content-Length` of a request; undefined for a chunked one. */
export function declaredBytes({ headers }: IncomingMessage): number | undefined {
  const told = headers['content-length'];
  return told === undefined ? undefined : Number(told);
}

export interface ReaderOptions {
  holding: BodyReservation;
  /** Time limit of the whole body. */
  timeoutMs?: number;
}

/**
 * Reads and decompresses the body of one request into memory, up to a limit. Counts bytes as they are decompressed, so
 * that the overshoot is at most one chunk (16 KB).
 */
export class BodyReader {
  readonly #request: IncomingMessage;
  readonly #source: Readable;
  readonly #timeoutMs: number;
  #timer: NodeJS.Timeout | undefined;
  #holding: BodyReservation;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isWhole = false;
  #fail: ((error: Error) => void) | undefined;
  #failure: Error | undefined;

  /** Throws 415 for an unknown encoding, 429 and 503 if the budget has no memory for a decompressor. */
  constructor(request: IncomingMessage, { holding, timeoutMs = defaultBodyMs }: ReaderOptions) {
    this.#request = request;
    this.#holding = holding;
    this.#timeoutMs = timeoutMs;
    this.#source = isCompressed(request) ? this.#unpacker() : request;
    request.once('error', this.#onBroken).once('close', this.#onClose);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Continues reading; resolves true at the end of the body, false at `limit` bytes or more. Throws 408 after the time
   * limit, 107 for a body that breaks off or cannot be decompressed, and as the budget.
   */
  async fill(limit: number): Promise<boolean> {
    if (this.#failure) throw this.#failure;
    if (this.#isWhole || this.#bytes >= limit) return this.#isWhole;
    const { complete: isComplete, destroyed: isGone } = this.#request;
    if (isComplete && !isGone && this.#source === this.#request) return this.#takeComplete(limit);
    this.#timer ??= setTimeout(() => this.#end(new Refusal('requestTimeout')), this.#timeoutMs);
    const countPacked = this.#packedCounter(limit);
    try {
      return await this.#take(limit);
    } finally {
      this.#request.off('data', countPacked);
    }
  }

  /** Takes a body that has arrived with its headers, as small ones do, or since. */
  #takeComplete(limit: number): boolean {
    for (let chunk = this.#request.read(); chunk !== null; chunk = this.#request.read()) this.#keep(chunk);
    if (this.#bytes >= limit) return false;
    this.#isWhole = true;
    this.close();
    return true;
  }

  #take(limit: number): Promise<boolean> {
    const source = this.#source;
    return new Promise<boolean>((resolve, reject) => {
      const settle = (act: () => void) => {
        source.off('data', take).off('end', end);
        this.#fail = undefined;
        act();
      };
      const take = (chunk: Buffer) => {
        try {
          this.#keep(chunk);
        } catch (error) {
          settle(() => reject(error));
          this.close();
          return;
        }
        if (this.#bytes < limit) return;
        source.pause();
        settle(() => resolve(false));
      };
      const end = () => {
        this.#isWhole = true;
        this.close();
        settle(() => resolve(true));
      };
      this.#fail = (error) => settle(() => reject(error));
      source.on('data', take).once('end', end);
      source.resume();
    });
  }

  #keep(chunk: Buffer): void {
    this.#holding.take(chunk.length);
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Limits the compressed bytes too: endless empty frames would decompress to nothing. */
  #packedCounter(limit: number): (chunk: Buffer) => void {
    let packed = 0;
    const count = (chunk: Buffer) => {
      packed += chunk.length;
      if (packed > limit + unpackerBytes) this.#end(new Refusal('payloadTooLarge'));
    };
    if (this.#source !== this.#request) this.#request.on('data', count);
    return count;
  }

  /** Moves the charge to another reservation and releases the former one. */
  chargeTo(holding: BodyReservation): void {
    if (holding === this.#holding) return;
    holding.take(this.#holding.bytes);
    this.#holding.release();
    this.#holding = holding;
  }

  /** Returns the bytes read as UTF-8, without a byte order mark. */
  text(): string {
    const [first, ...more] = this.#chunks;
    const all =
      first === undefined ? '' : (more.length === 0 ? first : Buffer.concat(this.#chunks)).toString();
    return all.startsWith('\ufeff') ? all.slice(1) : all;
  }

  /** Returns the bytes read and drops them. */
  takeText(): string {
    const text = this.text();
    this.#chunks = [];
    return text;
  }

  /** Stops reading and decompressing; keeps the bytes read. */
  close(): void {
    clearTimeout(this.#timer);
    this.#request.off('error', this.#onBroken).off('close', this.#onClose);
    if (this.#source === this.#request) return;
    this.#request.unpipe();
    this.#source.destroy();
  }

  readonly #onBroken = (): void => this.#end(new Refusal('malformedJson'));
  readonly #onClose = (): void => {
    if (!this.#request.readableEnded) this.#onBroken();
  };

  #end(error: Error): void {
    this.#failure ??= error;
    this.close();
    this.#fail?.(this.#failure);
  }

  #unpacker(): Transform {
    const open = unpackers.get(encodingOf(this.#request));
    if (!open) throw new Refusal('unsupportedMediaType');
    this.#holding.take(unpackerBytes);
    const unpacker = open();
    unpacker.on('error', (cause) => this.#end(new Refusal('malformedJson', { cause })));
    return this.#request.pipe(unpacker);
  }
}
