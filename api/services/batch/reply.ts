import { Readable } from 'node:stream';

/** JSON text; a stream where it is large, so that its memory counts until it is sent. */
export type BatchReply = string | Readable;

/** A reply up to this length fits into the buffers of a connection. */
const shortLength = 64 * 1024;
/** A client that has not read a large reply by then gets no more of it. */
const sentWithinMs = 60_000;

/** Parts with commas between them. `release` is called once, when nobody needs their memory any more. */
export function replyOf(
  { begin, parts, end }: { begin: string; parts: string[]; end: string },
  release: () => void,
  withinMs = sentWithinMs,
): BatchReply {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length <= shortLength) {
    release();
    return `${begin}${parts.join(',')}${end}`;
  }
  const stream = Readable.from(chunksOf(begin, parts, end), { objectMode: false });
  const timer = setTimeout(() => stream.destroy(new Error('the reply was not read in time')), withinMs);
  stream.on('error', () => undefined);
  return stream.once('close', () => {
    clearTimeout(timer);
    release();
  });
}

/** In pieces: what a slow client has not taken is still in the stream, and counts, not in the buffer of a socket. */
function* chunksOf(begin: string, parts: string[], end: string): Generator<Buffer> {
  for (const [index, part] of parts.entries()) {
    const bytes = Buffer.from(`${index === 0 ? begin : ','}${part}`);
    for (let from = 0; from < bytes.length; from += shortLength)
      yield bytes.subarray(from, from + shortLength);
  }
  yield Buffer.from(end);
}
