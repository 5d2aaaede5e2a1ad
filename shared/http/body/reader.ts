import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { koaBody, HttpMethodEnum as Method } from 'koa-body';
import { Refusal } from '../../domain/errors/errors.ts';
import type { BodyReservation } from './budget.ts';

/** Enough for a body of 20 MB at 8 Mbit/s. Slower senders would hold memory that others need. */
export const defaultBodyMs = 20_000;

/** koa-body reads bodies only for these methods. Its default does not include DELETE. */
const bodyMethods = [Method.POST, Method.PUT, Method.PATCH, Method.DELETE];

type Unpacker = Transform & { headers: Record<string, string> };

const unpackers = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** Memory of a decompressor and its buffers. It counts as bytes of the body. */
const unpackerBytes = 64 * 1024;

const encodingOf = ({ headers }: IncomingMessage): string =>
  headers['content-encoding']?.trim().toLowerCase() ?? '';

/** True if a request has a `Content-Encoding` other than identity. */
export const isCompressed = (request: IncomingMessage): boolean =>
  !['', 'identity'].includes(encodingOf(request));

/** Returns the `Content-Length` of a request; undefined if the request is chunked. */
export function declaredBytes({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}

export interface ReadOptions {
  /** A body that has at least this size after decompression is refused. */
  bytesBelow: number;
  /** Reserves the bytes as they arrive or are decompressed. */
  reservation: BodyReservation;
  timeoutMs: number;
}

/**
 * Reads the whole body of a request with koa-body. Returns it as UTF-8 text without byte order
 * mark, or an empty text if there is no body. Throws error 413 if it is too large, 415 for an
 * unknown encoding, 408 after the timeout, 107 if it breaks off or cannot be decompressed, and the
 * errors of the budget. When the function returns or throws, reading has ended.
 */
export async function readText(
  req: IncomingMessage,
  { bytesBelow, reservation, timeoutMs }: ReadOptions,
): Promise<string> {
  if ((declaredBytes(req) ?? 0) >= bytesBelow) throw new Refusal('payloadTooLarge');
  const unpacker = isCompressed(req) ? unpackerOf(req, reservation) : undefined;
  // koa-body expects lower case.
  if (!unpacker && req.headers['content-encoding']) req.headers['content-encoding'] = 'identity';
  const source = unpacker ?? req;
  const context = contextOf(req, source);
  try {
    await guarded(req, timeoutMs, async (fail) => {
      const bodyRead = readerOf(bytesBelow)(context, async () => undefined);
      charge(source, (bytes) => reservation.take(bytes), fail);
      if (unpacker) {
        charge(req, packedLimit(bytesBelow + unpackerBytes), fail);
        req.pipe(unpacker);
      }
      source.resume();
      await bodyRead;
    });
    return String(context.request.body);
  } finally {
    if (unpacker) {
      req.unpipe();
      unpacker.destroy();
    }
  }
}

/**
 * Reads the beginning of an uncompressed body, until it has at least `bytesBelow` bytes. The bytes
 * of a longer body are put back for `readText`. Returns the text that was read. Throws the errors
 * of `readText`.
 */
export async function readBeginning(
  req: IncomingMessage,
  { bytesBelow, reservation, timeoutMs }: ReadOptions,
): Promise<{ text: string; isWhole: boolean }> {
  const chunks: Buffer[] = [];
  const isWhole = await guarded(req, timeoutMs, (fail) => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    let bytes = 0;
    req.once('end', () => resolve(true));
    charge(req, (length) => reservation.take(length), fail);
    req.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < bytesBelow) return;
      req.pause().removeAllListeners('data');
      // The bytes must be put back in this tick: after the last bytes of a body, the request ends
      // in the next tick.
      req.unshift(Buffer.concat(chunks));
      resolve(false);
    });
    return promise;
  });
  const text = Buffer.concat(chunks).toString();
  return { text: text.startsWith('\ufeff') ? text.slice(1) : text, isWhole };
}

/**
 * Returns the members of a context that koa-body uses. All content types are read as text; later
 * code decides whether the text is JSON.
 */
const contextOf = ({ method }: IncomingMessage, source: Readable): Context =>
  Object.assign(Object.create(null), {
    method,
    req: source,
    request: { body: '' },
    is: () => 'text',
  });

type Reader = ReturnType<typeof koaBody>;
type Context = Parameters<Reader>[0];

/**
 * Readers of koa-body by size limit. Each reader checks its options when it is created. The routes
 * have about a dozen limits.
 */
const readers = new Map<number, Reader>();

function readerOf(bytesBelow: number): Reader {
  const reader =
    readers.get(bytesBelow) ??
    koaBody({
      json: false,
      urlencoded: false,
      textLimit: bytesBelow - 1,
      parsedMethods: bodyMethods,
      onError: (error) => {
        throw refusalOf(error);
      },
    });
  readers.set(bytesBelow, reader);
  return reader;
}

const refusalOf = (cause: Error): Refusal =>
  'status' in cause && cause.status === 413
    ? new Refusal('payloadTooLarge')
    : new Refusal('malformedJson', { cause });

/**
 * Decompresses a body for koa-body. The decompressor of koa-body is not used, because an error in
 * data after the limit would end the process, and its bytes could not be counted.
 */
function unpackerOf(request: IncomingMessage, reservation: BodyReservation): Unpacker {
  const open = unpackers.get(encodingOf(request));
  if (!open) throw new Refusal('unsupportedMediaType');
  reservation.take(unpackerBytes);
  return Object.assign(
    open().on('error', () => undefined),
    { headers: {} },
  );
}

/** Also limits the compressed bytes, because endless empty members decompress to nothing. */
function packedLimit(limit: number): (bytes: number) => void {
  let packed = 0;
  return (bytes) => {
    packed += bytes;
    if (packed > limit) throw new Refusal('payloadTooLarge');
  };
}

/**
 * Calls `take` with the length of each chunk of a stream. If it throws, reading ends with this
 * error.
 */
function charge(
  stream: Readable,
  take: (bytes: number) => void,
  fail: (error: unknown) => void,
): void {
  stream.on('data', (chunk: Buffer) => {
    try {
      take(chunk.length);
    } catch (error) {
      fail(error);
    }
  });
}

/**
 * Runs `work` until it ends, `fail` is called, the time is up, or the sender disconnects. Needed
 * because koa-body would wait forever for a body that does not arrive. Afterwards, the request has
 * no data listener.
 */
async function guarded<T>(
  request: IncomingMessage,
  timeoutMs: number,
  work: (fail: (error: unknown) => void) => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const onClose = () => {
    if (!request.readableEnded) reject(new Refusal('malformedJson'));
  };
  const timer = setTimeout(() => reject(new Refusal('requestTimeout')), timeoutMs);
  request.once('close', onClose);
  if (request.destroyed) onClose();
  try {
    work(reject).then(resolve, reject);
    return await promise;
  } finally {
    clearTimeout(timer);
    request.off('close', onClose).removeAllListeners('data');
  }
}
