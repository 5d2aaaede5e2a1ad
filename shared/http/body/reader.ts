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

/** Memory of an unpacker and its buffers, which counts like bytes of the body. */
const unpackerBytes = 64 * 1024;

const encodingOf = ({ headers }: IncomingMessage): string =>
  headers['content-encoding']?.trim().toLowerCase() ?? '';

/** Whether a request names a `Content-Encoding` that changes its body. */
export const isCompressed = (request: IncomingMessage): boolean =>
  !['', 'identity'].includes(encodingOf(request));

/** The length that a request announces, before unpacking; undefined where it sends chunks. */
export function declaredBytes({ headers }: IncomingMessage): number | undefined {
  const told = headers['content-length'];
  return told === undefined ? undefined : Number(told);
}

export interface ReaderOptions {
  holding: BodyReservation;
  /** For the whole body to arrive. */
  timeoutMs?: number;
}

/**
 * Reads the body of one request into memory, unpacked, as far as it is asked to. Bytes are counted as they are unpacked:
 * nothing is unpacked beyond the limit by more than one piece (16 KB).
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

  /** Throws 415 for an encoding that is unknown, 429 and 503 for an unpacker that the budget has no room for. */
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
   * Reads on; true when the body has ended, false when it has `limit` bytes or more. Throws 408 when it takes too long, 107
   * when it breaks off or cannot be unpacked, and what the budget throws.
   */
  async fill(limit: number): Promise<boolean> {
    if (this.#failure) throw this.#failure;
    if (this.#isWhole || this.#bytes >= limit) return this.#isWhole;
    this.#timer ??= setTimeout(() => this.#end(new Refusal('requestTimeout')), this.#timeoutMs);
    const countPacked = this.#packedCounter(limit);
    try {
      return await this.#take(limit);
    } finally {
      this.#request.off('data', countPacked);
    }
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

  /** What is packed is never longer than what it holds by more than its frame: empty pieces without end are cut. */
  #packedCounter(limit: number): (chunk: Buffer) => void {
    let packed = 0;
    const count = (chunk: Buffer) => {
      packed += chunk.length;
      if (packed > limit + unpackerBytes) this.#end(new Refusal('payloadTooLarge'));
    };
    if (this.#source !== this.#request) this.#request.on('data', count);
    return count;
  }

  /** Charges what was read so far, and what is still to come, to another account; releases the former one. */
  chargeTo(holding: BodyReservation): void {
    if (holding === this.#holding) return;
    holding.take(this.#holding.bytes);
    this.#holding.release();
    this.#holding = holding;
  }

  /** What was read, as UTF-8 without a byte order mark. */
  text(): string {
    const [first, ...more] = this.#chunks;
    const all =
      first === undefined ? '' : (more.length === 0 ? first : Buffer.concat(this.#chunks)).toString();
    return all.startsWith('\ufeff') ? all.slice(1) : all;
  }

  /** What was read, once: the reader keeps none of it. */
  takeText(): string {
    const text = this.text();
    this.#chunks = [];
    return text;
  }

  /** Stops reading and unpacking. What was read stays. */
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
