/**
 * Requests as bytes. The part that the requests of a batch share is encoded once, including the
 * frame headers. Each request is a copy of this part with its own stream id, path and header value.
 */
import { flag, frame, frameHeaderBytes, writeFrameHead } from '../frames/wire-format.ts';
import type { Field, HeaderEncoder } from '../hpack/encoder.ts';
import type { TransportRequest } from '../transport.ts';
import type { ActiveBatch } from './active-batch.ts';

/** First byte of a never-indexed literal `:path`, entry 4 of the static table (RFC 7541 6.2.3). */
const pathPattern = 0x14;
/**
 * Number of encodings to cache, by length of path and header value. Device tokens have two or three
 * lengths.
 */
const keptEncodings = 8;

export class EncodedRequest {
  /** HEADERS frame, and DATA frame up to the insertion. */
  readonly bytes: Buffer;
  /** Offset of the request's path. */
  readonly pathOffset: number;
  /**
   * Offset of the part of the header value that differs between requests; -1 if there is no such
   * header.
   */
  readonly headerOffset: number;
  /** Offset of the DATA frame header; -1 if the body is empty. */
  readonly dataOffset: number;
  /** Length of the header block. */
  readonly blockBytes: number;
  /**
   * Body behind the insertion. Null if there is no insertion, because `bytes` then contains the
   * whole body.
   */
  readonly tail: Buffer | null;
  /** Length of the body without the insertion. */
  readonly bodyBytes: number;

  constructor(shared: SharedPart, pathLength: number, headerLength: number) {
    const { pseudo, regular, headerName, headerPrefix, pathPrefix, body, spliceAt } = shared;
    const path =
      pathPrefix === null
        ? []
        : [Buffer.from([pathPattern]), lengthPrefix(pathPrefix.length + pathLength), pathPrefix];
    const own =
      headerLength < 0
        ? []
        : [headerName, lengthPrefix(headerPrefix.length + headerLength), headerPrefix];
    const head = Buffer.concat([Buffer.alloc(frameHeaderBytes), pseudo, ...path]);
    const middle = Buffer.concat([Buffer.alloc(pathLength), regular, ...own]);
    const blockEnd = head.length + middle.length + Math.max(0, headerLength);
    this.pathOffset = head.length;
    this.headerOffset = headerLength < 0 ? -1 : head.length + middle.length;
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
    writeFrameHead(this.bytes, blockEnd, {
      length: body.length,
      type: frame.data,
      flags: flag.endStream,
      streamId: 0,
    });
    front.copy(this.bytes, blockEnd + frameHeaderBytes);
  }

  /** Returns the header block of a request that does not fit into the usual two frames. */
  blockOf(request: TransportRequest): Buffer {
    const block = Buffer.from(this.bytes.subarray(0, frameHeaderBytes + this.blockBytes));
    block.write(request.path, this.pathOffset, 'latin1');
    if (this.headerOffset >= 0) block.write(request.headerValue ?? '', this.headerOffset, 'latin1');
    return block.subarray(frameHeaderBytes);
  }
}

/** Shared part of the requests of a batch, encoded with the HPACK table of one connection. */
export interface SharedPart {
  /** Pseudo fields. They contain the path if all requests have the same path. */
  pseudo: Buffer;
  regular: Buffer;
  /** Name of the header whose value differs between requests. */
  headerName: Buffer;
  /** Shared beginning of this header's value. */
  headerPrefix: Buffer;
  /** Beginning of each request's path. Null if `pseudo` contains the path. */
  pathPrefix: Buffer | null;
  body: Buffer;
  spliceAt: number | undefined;
}

/** The shared part of a batch before encoding. */
type SharedSource = Pick<ActiveBatch, 'template' | 'fields' | 'pathPrefix'>;

/**
 * Encodes similar batches on one connection. Encodes the shared part again if the HPACK table has
 * changed.
 */
export class RequestEncoder {
  readonly #source: SharedSource;
  readonly #encoder: HeaderEncoder;
  #generation = -1;
  #isPathShared = false;
  #shared: SharedPart | null = null;
  readonly #encoded = new Map<number, EncodedRequest>();

  constructor({ template, fields, pathPrefix }: SharedSource, encoder: HeaderEncoder) {
    this.#source = { template, fields, pathPrefix };
    this.#encoder = encoder;
  }

  /** True if this encoder can encode the requests of a batch. */
  fits({ fields, pathPrefix, template }: SharedSource): boolean {
    const own = this.#source;
    return (
      pathPrefix === own.pathPrefix &&
      template.requestHeaderName === own.template.requestHeaderName &&
      template.requestHeaderPrefix === own.template.requestHeaderPrefix &&
      template.spliceAt === own.template.spliceAt &&
      template.body.equals(own.template.body) &&
      fields.length === own.fields.length &&
      fields.every((field, i) => isSameField(field, own.fields[i]))
    );
  }

  /**
   * Returns the encoding for a request. It must be sent next, because it may update the peer's
   * HPACK table.
   */
  encode(request: TransportRequest): EncodedRequest {
    const isPathShared = request.path === '';
    if (this.#generation !== this.#encoder.generation || this.#isPathShared !== isPathShared)
      return this.#encodeShared(request, isPathShared);
    const key = request.path.length * 0x10000 + (request.headerValue?.length ?? -1) + 1;
    let encoded = this.#encoded.get(key);
    if (!encoded) {
      encoded = this.#build(request);
      if (this.#encoded.size >= keptEncodings) this.#encoded.clear();
      this.#encoded.set(key, encoded);
    }
    return encoded;
  }

  #encodeShared(request: TransportRequest, isPathShared: boolean): EncodedRequest {
    const { template, fields, pathPrefix } = this.#source;
    const encoder = this.#encoder;
    const before = encoder.generation;
    const path: Field[] = isPathShared
      ? [{ name: ':path', value: pathPrefix, scope: 'connection' }]
      : [];
    this.#shared = {
      pseudo: encoder.encode([...fields.filter(isPseudo), ...path]),
      regular: encoder.encode(fields.filter((field) => !isPseudo(field))),
      headerName: encoder.neverIndexedPrefix(template.requestHeaderName ?? ''),
      headerPrefix: Buffer.from(template.requestHeaderPrefix ?? '', 'latin1'),
      pathPrefix: isPathShared ? null : Buffer.from(pathPrefix, 'latin1'),
      body: template.body,
      spliceAt: template.spliceAt,
    };
    this.#encoded.clear();
    this.#isPathShared = isPathShared;
    // Bytes that update the table must be sent exactly once. The next request then encodes the
    // shared part again.
    this.#generation = encoder.generation === before ? before : -1;
    return this.#build(request);
  }

  #build({ path, headerValue }: TransportRequest): EncodedRequest {
    if (this.#shared === null) throw new Error('the shared part is not encoded');
    const hasHeader =
      this.#source.template.requestHeaderName !== undefined && headerValue !== undefined;
    return new EncodedRequest(this.#shared, path.length, hasHeader ? headerValue.length : -1);
  }
}

const isSameField = ({ name, scope, value }: Field, other: Field | undefined): boolean =>
  name === other?.name && value === other.value && scope === other.scope;

const isPseudo = ({ name }: Field): boolean => name.startsWith(':');

/** Encodes the length of a string without Huffman code (RFC 7541 5.1, 5.2). */
function lengthPrefix(length: number): Buffer {
  if (length < 0x7f) return Buffer.from([length]);
  const bytes = [0x7f];
  let rest = length - 0x7f;
  for (; rest >= 0x80; rest >>>= 7) bytes.push(0x80 | (rest & 0x7f));
  return Buffer.from([...bytes, rest]);
}

/**
 * Number of encoders to keep for further batches of the same push. A connection rarely sends more
 * pushes at the same time.
 */
const keptEncoders = 4;

/**
 * Encoders of one connection. The batches of a push share an encoder, so that their shared part is
 * encoded once.
 */
export class EncoderCache {
  readonly #hpack: HeaderEncoder;
  readonly #byBatch = new WeakMap<ActiveBatch, RequestEncoder>();
  /** Oldest encoder first. */
  readonly #recent: RequestEncoder[] = [];

  constructor(hpack: HeaderEncoder) {
    this.#hpack = hpack;
  }

  /** Returns the encoder for a batch. */
  of(batch: ActiveBatch): RequestEncoder {
    const cached = this.#byBatch.get(batch);
    if (cached) return cached;
    const encoder = this.#recent.find((one) => one.fits(batch)) ?? this.#add(batch);
    this.#byBatch.set(batch, encoder);
    return encoder;
  }

  #add(batch: ActiveBatch): RequestEncoder {
    const encoder = new RequestEncoder(batch, this.#hpack);
    this.#recent.push(encoder);
    if (this.#recent.length > keptEncoders) this.#recent.shift();
    return encoder;
  }
}
