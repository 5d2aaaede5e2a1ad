import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { koaBody, HttpMethodEnum as Method } from 'koa-body';
import { Refusal } from '../../domain/errors/errors.ts';
import type { BodyReservation } from './budget.ts';

/** A body of 20 MB at 8 Mbit/s. Slower senders hold memory that others could use. */
export const defaultBodyMs = 20_000;

/** koa-body reads no body of another method; without this option it skips that of DELETE. */
const bodyMethods = [Method.POST, Method.PUT, Method.PATCH, Method.DELETE];

type Unpacker = Transform & { headers: Record<string, string> };

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

export interface ReadOptions {
  /** A body of this size or more, decompressed, is refused. */
  bytesBelow: number;
  /** Is charged with the bytes as they arrive, or as they are decompressed. */
  reservation: BodyReservation;
  timeoutMs: number;
}

/**
 * Reads the whole body of a request by koa-body, as UTF-8 text without a byte order mark; empty
 * without a body. Throws 413, 415 for an unknown encoding, 408 after the time limit, 107 for a body
 * that breaks off or cannot be decompressed, and the refusals of the budget. Reading has ended when
 * it returns or throws.
 */
export async function readText(
  req: IncomingMessage,
  { bytesBelow, reservation, timeoutMs }: ReadOptions,
): Promise<string> {
  if ((declaredBytes(req) ?? 0) >= bytesBelow) throw new Refusal('payloadTooLarge');
  const unpacker = isCompressed(req) ? unpackerOf(req, reservation) : undefined;
  // In small letters, which koa-body expects.
  if (!unpacker && req.headers['content-encoding']) req.headers['content-encoding'] = 'identity';
  const source = unpacker ?? req;
  const context = contextOf(req, source);
  try {
    await guarded(req, timeoutMs, async (fail) => {
      const reading = readerOf(bytesBelow)(context, async () => undefined);
      charge(source, (bytes) => reservation.take(bytes), fail);
      if (unpacker) {
        charge(req, packedLimit(bytesBelow + unpackerBytes), fail);
        req.pipe(unpacker);
      }
      source.resume();
      await reading;
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
 * Reads the beginning of a body that is not compressed, until it has `bytesBelow` or more. A longer
 * body is put back as a whole, for `readText`. Returns what was read. Throws as `readText`.
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
      // At once: after the last bytes of a body the request ends in the next tick.
      req.unshift(Buffer.concat(chunks));
      resolve(false);
    });
    return promise;
  });
  const text = Buffer.concat(chunks).toString();
  return { text: text.startsWith('\ufeff') ? text.slice(1) : text, isWhole };
}

/**
 * Returns the members of a context that koa-body uses. It reads every content type as text: the
 * text decides whether it is JSON.
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
 * Readers of koa-body by limit: each one checks its options when it is made. Routes have a dozen
 * limits.
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
 * Decompresses a body for koa-body. Its own decompressor would be out of reach: an error in data
 * behind the limit would end the process, and the bytes could not be charged.
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

/** Limits the compressed bytes too: endless empty members decompress to nothing. */
function packedLimit(limit: number): (bytes: number) => void {
  let packed = 0;
  return (bytes) => {
    packed += bytes;
    if (packed > limit) throw new Refusal('payloadTooLarge');
  };
}

/** Gives `take` the length of each chunk of a stream; what it throws ends the reading. */
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
 * Runs `work` until it ends, calls `fail`, takes too long, or the sender leaves: koa-body waits for
 * ever for a body that does not come. Afterwards the request has no reader of its data.
 */
async function guarded<T>(
  request: IncomingMessage,
  timeoutMs: number,
  work: (fail: (error: unknown) => void) => Promise<T>,
): Promise<T> {
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  const onClose = () => {
    if (!request.readableEnded) fail(new Refusal('malformedJson'));
  };
  const timer = setTimeout(() => fail(new Refusal('requestTimeout')), timeoutMs);
  request.once('close', onClose);
  if (request.destroyed) onClose();
  try {
    return await Promise.race([work(fail), failed]);
  } finally {
    clearTimeout(timer);
    request.off('close', onClose).removeAllListeners('data');
  }
}
