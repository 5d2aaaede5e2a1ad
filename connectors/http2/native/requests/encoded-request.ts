/**
 * A request as the bytes it leaves as. What requests of a push share is laid out once, frame headers
 * included; a request is a copy of it in which its stream number, its path and its own header are filled in.
 */
import type { Field, HeaderEncoder } from '../../hpack/encoder.ts';
import type { TransportRequest } from '../../transport.ts';
import { flag, frame, frameHeaderBytes, writeFrameHead } from '../frames/wire-format.ts';
import type { ActiveBatch } from './active-batch.ts';

/** Literal that is never indexed, named by entry 4 of the static table, `:path` (RFC 7541 6.2.3). */
const pathPattern = 0x14;
/** Images of different lengths are kept side by side; device tokens come in two or three. */
const keptEncodings = 8;

const empty = Buffer.alloc(0);

export class EncodedRequest {
  /** HEADERS, and DATA up to the splice. */
  readonly bytes: Buffer;
  /** Where the request's own path begins. */
  readonly pathOffset: number;
  /** Where its own header's value begins; -1: it has none. */
  readonly headerOffset: number;
  /** Where the header of the DATA frame begins; -1: the body is empty. */
  readonly dataOffset: number;
  /** Of the header block. */
  readonly blockBytes: number;
  /** The body behind the splice; null: the body is the same for all and lies in `bytes`. */
  readonly tail: Buffer | null;
  /** Of the body without its splice. */
  readonly bodyBytes: number;

  constructor(shared: SharedPart, pathLength: number, ownLength: number) {
    const { pseudo, regular, ownPrefix, pathPrefix, body, spliceAt } = shared;
    const path =
      pathPrefix === null
        ? [empty]
        : [Buffer.from([pathPattern]), lengthPrefix(pathPrefix.length + pathLength), pathPrefix];
    const own = ownLength < 0 ? [empty] : [ownPrefix, lengthPrefix(ownLength)];
    const head = Buffer.concat([Buffer.alloc(frameHeaderBytes), pseudo, ...path]);
    const middle = Buffer.concat([Buffer.alloc(pathLength), regular, ...own]);
    const blockEnd = head.length + middle.length + Math.max(0, ownLength);
    this.pathOffset = head.length;
    this.headerOffset = ownLength < 0 ? -1 : head.length + middle.length;
    this.bodyBytes = body.length;
    this.blockBytes = blockEnd - frameHeaderBytes;
    const isEmpty = body.length === 0 && spliceAt === undefined;
    this.dataOffset = isEmpty ? -1 : blockEnd;
    this.tail = spliceAt === undefined ? null : body.subarray(spliceAt);
    const front = spliceAt === undefined ? body : body.subarray(0, spliceAt);
    const data = isEmpty ? 0 : frameHeaderBytes + front.length;
    this.bytes = Buffer.concat([head, middle], blockEnd + data);
    writeFrameHead(this.bytes, 0, {
      length: blockEnd - frameHeaderBytes,
      type: frame.headers,
      flags: flag.endHeaders | (isEmpty ? flag.endStream : 0),
      streamId: 0,
    });
    if (isEmpty) return;
    const length = body.length;
    writeFrameHead(this.bytes, blockEnd, { length, type: frame.data, flags: flag.endStream, streamId: 0 });
    front.copy(this.bytes, blockEnd + frameHeaderBytes);
  }

  /** The header block of one request by itself, for those that do not fit the usual two frames. */
  blockOf(request: TransportRequest): Buffer {
    const block = Buffer.from(this.bytes.subarray(0, frameHeaderBytes + this.blockBytes));
    block.write(request.path, this.pathOffset, 'latin1');
    if (this.headerOffset >= 0) block.write(request.headerValue ?? '', this.headerOffset, 'latin1');
    return block.subarray(frameHeaderBytes);
  }
}

/** What all requests of a template share, as this connection's tables have it. */
export interface SharedPart {
  /** Pseudo fields, the path with them where all have the same. */
  pseudo: Buffer;
  regular: Buffer;
  ownPrefix: Buffer;
  /** What comes before each request's own path; null: the path lies in `pseudo`. */
  pathPrefix: Buffer | null;
  body: Buffer;
  spliceAt: number | undefined;
}

/** The images of one batch on one connection; made anew whenever the connection's table has moved. */
export class RequestEncoder {
  readonly #batch: ActiveBatch;
  readonly #encoder: HeaderEncoder;
  #generation = -1;
  #isPathShared = false;
  #shared: SharedPart | null = null;
  readonly #encoded = new Map<number, EncodedRequest>();
  #last: EncodedRequest | null = null;
  #lastKey = -1;

  constructor(batch: ActiveBatch, encoder: HeaderEncoder) {
    this.#batch = batch;
    this.#encoder = encoder;
  }

  /** The image that fits this request. It is to be sent at once: it may tell the peer's table something. */
  encode(request: TransportRequest): EncodedRequest {
    const isPathShared = request.path === '';
    if (this.#generation !== this.#encoder.generation || this.#isPathShared !== isPathShared)
      return this.#encodeShared(request, isPathShared);
    const key = request.path.length * 0x10000 + (request.headerValue?.length ?? -1) + 1;
    if (key === this.#lastKey && this.#last !== null) return this.#last;
    return this.#find(key, request);
  }

  #find(key: number, request: TransportRequest): EncodedRequest {
    let encoded = this.#encoded.get(key);
    if (!encoded) {
      encoded = this.#build(request);
      if (this.#encoded.size >= keptEncodings) this.#encoded.clear();
      this.#encoded.set(key, encoded);
    }
    this.#lastKey = key;
    this.#last = encoded;
    return encoded;
  }

  #encodeShared(request: TransportRequest, isPathShared: boolean): EncodedRequest {
    const { template, fields, pathPrefix } = this.#batch;
    const encoder = this.#encoder;
    const before = encoder.generation;
    const path: Field[] = isPathShared ? [{ name: ':path', value: pathPrefix, scope: 'connection' }] : [];
    this.#shared = {
      pseudo: encoder.encode([...fields.filter(isPseudo), ...path]),
      regular: encoder.encode(fields.filter((field) => !isPseudo(field))),
      ownPrefix: encoder.neverIndexedPrefix(template.requestHeaderName ?? ''),
      pathPrefix: isPathShared ? null : Buffer.from(pathPrefix, 'latin1'),
      body: template.body,
      spliceAt: template.spliceAt,
    };
    this.#encoded.clear();
    this.#lastKey = -1;
    this.#isPathShared = isPathShared;
    // Bytes that told the table something must not be told twice: the next request lays them anew.
    this.#generation = encoder.generation === before ? before : -1;
    return this.#build(request);
  }

  #build({ path, headerValue }: TransportRequest): EncodedRequest {
    if (this.#shared === null) throw new Error('an image of nothing');
    const hasOwn = this.#batch.template.requestHeaderName !== undefined && headerValue !== undefined;
    return new EncodedRequest(this.#shared, path.length, hasOwn ? headerValue.length : -1);
  }
}

const isPseudo = ({ name }: Field): boolean => name.startsWith(':');

/** Length of a text that is not in Huffman code, in front of it (RFC 7541 5.1, 5.2). */
function lengthPrefix(length: number): Buffer {
  if (length < 0x7f) return Buffer.from([length]);
  const bytes = [0x7f];
  let rest = length - 0x7f;
  for (; rest >= 0x80; rest >>>= 7) bytes.push(0x80 | (rest & 0x7f));
  return Buffer.from([...bytes, rest]);
}
