import { Readable } from 'node:stream';

/** JSON text. A large reply is a stream, so that its memory counts until it is sent. */
export type BatchReply = string | Readable;

/** Maximum length of a reply that fits into the buffers of a connection. */
const shortLength = 64 * 1024;
/** Time that a client has to read a large reply. */
const readTimeoutMs = 60_000;

/** Joins parts with commas. Calls `release` once, when the parts are no longer in memory. */
export function writeReply(
  { begin, parts, end }: { begin: string; parts: string[]; end: string },
  release: () => void,
  timeoutMs = readTimeoutMs,
): BatchReply {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length <= shortLength) {
    release();
    return `${begin}${parts.join(',')}${end}`;
  }
  const stream = Readable.from(chunksOf(begin, parts, end), { objectMode: false });
  const timer = setTimeout(
    () => stream.destroy(new Error('the reply was not read in time')),
    timeoutMs,
  );
  stream.on('error', () => undefined);
  return stream.once('close', () => {
    clearTimeout(timer);
    release();
  });
}

/**
 * Splits the reply into chunks. Unread text then stays in the stream, where it counts, and not in a
 * socket's buffer.
 */
function* chunksOf(begin: string, parts: string[], end: string): Generator<Buffer> {
  for (const [index, part] of parts.entries()) {
    const bytes = Buffer.from(`${index === 0 ? begin : ','}${part}`);
    for (let from = 0; from < bytes.length; from += shortLength)
      yield bytes.subarray(from, from + shortLength);
  }
  yield Buffer.from(end);
}
