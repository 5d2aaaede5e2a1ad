/**
 * TLS server that checks nothing and answers all requests with success. It parses HTTP/2 frames and
 * HTTP/1.1 heads itself, which needs much less CPU time than `node:http2` and `node:http`. In a
 * benchmark, the gateway shares the cores with the program that is measured.
 */
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { HeaderDecoder } from '../../../connectors/http2/hpack/decoder.ts';
import type { Identity } from './listen.ts';

/** Reply to a successful request. */
export interface Success {
  /** End of the paths that get this reply. */
  path: string;
  /**
   * Sent as JSON; no body if absent. A function returns JSON for the body of a request (HTTP/1.1
   * only).
   */
  body?: object | ((request: string) => string);
  /** True for a call before a message, such as a token call. It is not counted. */
  isPreparation?: true;
}

export interface UncheckedOptions {
  /** Maximum number of open streams per HTTP/2 connection. */
  maxStreams: number;
  /**
   * Replies to HTTP/1.1 requests by path; other paths get 404. All HTTP/2 requests get the first
   * reply that is not a preparation.
   */
  successes: readonly Success[];
  /**
   * HTTP/2 only: called with the path of each request when its headers have arrived. Clients may
   * write the headers of many requests before their bodies.
   */
  onPath?(path: string): void;
  /** HTTP/2 only: called with the size of each DATA frame. */
  onBody?(bytes: number): void;
  /** Called when a request with a message is complete, before its reply. */
  onRequest(): void;
}

/** Creates the server. Both protocols use the same port. */
export function createUncheckedServer({ cert, key }: Identity, options: UncheckedOptions): Server {
  const message = options.successes.find(({ isPreparation }) => !isPreparation);
  const answer = framesOf(typeof message?.body === 'object' ? message.body : undefined);
  return createServer({ cert, key, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    const connection =
      socket.alpnProtocol === 'h2'
        ? new Http2Connection(socket, options, answer)
        : new Http1Connection(socket, options);
    socket.on('data', (chunk: Buffer) => connection.receive(chunk));
  });
}

const frameHeaderBytes = 9;
const prefaceBytes = 24;
const priorityBytes = 5;
const settingsAck = Buffer.from('000000040100000000', 'hex');
/** Number of used bytes after which the window is increased again. */
const refillBytes = 1_000_000_000;
/** Size of a response buffer. Each part of a buffer is used only once. */
const outputBytes = 262_144;
const frame = { data: 0, headers: 1, settings: 4, ping: 6, continuation: 9 };
const flag = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 };

/** Frames of a response with stream id 0, and the offsets of the stream ids. */
interface Frames {
  bytes: Buffer;
  idOffsets: readonly number[];
}

/** Returns the frames of a 200 response: only HEADERS, or HEADERS with content type and DATA. */
function framesOf(body: object | undefined): Frames {
  const status = 0x88;
  if (body === undefined)
    return {
      bytes: frameOf(frame.headers, flag.endHeaders | flag.endStream, [status]),
      idOffsets: [5],
    };
  const contentType = Buffer.from('application/json; charset=UTF-8');
  // `content-type` as a literal without indexing (RFC 7541 6.2.2, static table entry 31).
  const block = [status, 0x0f, 0x10, contentType.length, ...contentType];
  const headers = frameOf(frame.headers, flag.endHeaders, block);
  const data = frameOf(frame.data, flag.endStream, Buffer.from(JSON.stringify(body)));
  return { bytes: Buffer.concat([headers, data]), idOffsets: [5, headers.length + 5] };
}

function frameOf(type: number, flags: number, payload: ArrayLike<number>): Buffer {
  const { length } = payload;
  return Buffer.from([
    0,
    length >>> 8,
    length & 0xff,
    type,
    flags,
    0,
    0,
    0,
    0,
    ...Array.from(payload),
  ]);
}

/**
 * Returns SETTINGS with MAX_CONCURRENT_STREAMS and INITIAL_WINDOW_SIZE 2^31-1, and a WINDOW_UPDATE
 * to the largest connection window.
 */
function greeting(maxStreams: number): Buffer {
  const bytes = Buffer.from(
    '00000c0400000000000003000000000004' + '7fffffff0000040800000000007fff0000',
    'hex',
  );
  bytes.writeUInt32BE(maxStreams, frameHeaderBytes + 2);
  return bytes;
}

class Http2Connection {
  readonly #socket: TLSSocket;
  readonly #options: UncheckedOptions;
  readonly #answer: Frames;
  readonly #headers = new HeaderDecoder();
  readonly #onField: (name: string, value: string) => void;
  #partialFrame: Buffer = Buffer.alloc(0);
  #toSkip = prefaceBytes;
  #used = 0;
  #out = Buffer.allocUnsafe(outputBytes);
  /** Part of `#out` that is not written to the socket yet. */
  #from = 0;
  #to = 0;

  constructor(socket: TLSSocket, options: UncheckedOptions, answer: Frames) {
    this.#socket = socket;
    this.#options = options;
    this.#answer = answer;
    this.#onField = (name, value) => {
      if (name === ':path') options.onPath?.(value);
    };
    socket.write(greeting(options.maxStreams));
  }

  receive(chunk: Buffer): void {
    let bytes =
      this.#partialFrame.length === 0 ? chunk : Buffer.concat([this.#partialFrame, chunk]);
    if (this.#toSkip > 0) {
      const skipped = Math.min(this.#toSkip, bytes.length);
      this.#toSkip -= skipped;
      bytes = bytes.subarray(skipped);
    }
    let at = 0;
    while (bytes.length - at >= frameHeaderBytes) {
      const size = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      const end = at + frameHeaderBytes + size;
      if (end > bytes.length) break;
      this.#frame(bytes, at, end);
      at = end;
    }
    this.#partialFrame = Buffer.from(bytes.subarray(at));
    if (this.#used > refillBytes) this.#refill();
    this.#flush();
  }

  #frame(bytes: Buffer, at: number, end: number): void {
    const type = bytes[at + 3] ?? 0;
    const flags = bytes[at + 4] ?? 0;
    const start = at + frameHeaderBytes;
    if (type === frame.data) {
      this.#options.onBody?.(end - start);
      this.#used += end - start;
    } else if (type === frame.headers) {
      const from = (flags & flag.priority) === 0 ? start : start + priorityBytes;
      if ((flags & flag.endHeaders) === 0 || flags & flag.padded) this.#socket.destroy();
      else if (this.#options.onPath) this.#headers.decode(bytes, from, end, this.#onField);
    } else if (type === frame.settings && (flags & flag.ack) === 0) this.#append(settingsAck);
    else if (type === frame.ping && (flags & flag.ack) === 0) {
      const pong = Buffer.from(bytes.subarray(at, end));
      pong[4] = flag.ack;
      this.#append(pong);
    }
    if (type > frame.headers || (flags & flag.endStream) === 0) return;
    this.#options.onRequest();
    this.#respond(bytes, at + 5);
  }

  /** Writes a response. Its stream id is at `idAt` in the request's frame. */
  #respond(request: Buffer, idAt: number): void {
    const { bytes, idOffsets } = this.#answer;
    const from = this.#append(bytes);
    const out = this.#out;
    for (const offset of idOffsets) {
      const to = from + offset;
      out[to] = request[idAt] ?? 0;
      out[to + 1] = request[idAt + 1] ?? 0;
      out[to + 2] = request[idAt + 2] ?? 0;
      out[to + 3] = request[idAt + 3] ?? 0;
    }
  }

  /** Appends bytes to `#out` and returns their offset. */
  #append(bytes: Buffer): number {
    if (this.#to + bytes.length > this.#out.length) {
      this.#flush();
      this.#out = Buffer.allocUnsafe(outputBytes);
      this.#from = 0;
      this.#to = 0;
    }
    const at = this.#to;
    this.#out.set(bytes, at);
    this.#to = at + bytes.length;
    return at;
  }

  #flush(): void {
    if (this.#to === this.#from) return;
    this.#socket.write(this.#out.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }

  #refill(): void {
    const refill = Buffer.from('00000408000000000000000000', 'hex');
    refill.writeUInt32BE(this.#used, frameHeaderBytes);
    this.#used = 0;
    this.#append(refill);
  }
}

const endOfHead = Buffer.from('\r\n\r\n');

/**
 * Parses HTTP/1.1 requests. Reads a body only if the reply depends on it; otherwise skips it by its
 * length.
 */
class Http1Connection {
  readonly #socket: TLSSocket;
  readonly #options: UncheckedOptions;
  /** The head of a request that is not complete yet. */
  #head: Buffer = Buffer.alloc(0);
  #isInRequest = false;
  #success: Success | undefined;
  /** Number of bytes of the body that have not arrived yet. */
  #bodyBytesLeft = 0;
  /** Body of a request whose reply depends on it. */
  #body: Buffer[] = [];

  constructor(socket: TLSSocket, options: UncheckedOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  receive(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#bodyBytesLeft === 0) rest = this.#readHead(rest);
      const piece = rest.subarray(0, this.#bodyBytesLeft);
      if (typeof this.#success?.body === 'function') this.#body.push(piece);
      this.#bodyBytesLeft -= piece.length;
      rest = rest.subarray(piece.length);
      if (this.#isInRequest && this.#bodyBytesLeft === 0) this.#answer();
    }
  }

  /** Returns the bytes after the head; none if the head is incomplete. */
  #readHead(chunk: Buffer): Buffer {
    const bytes = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
    const end = bytes.indexOf(endOfHead);
    this.#head = end < 0 ? bytes : Buffer.alloc(0);
    if (end < 0) return Buffer.alloc(0);
    const text = bytes.toString('latin1', 0, end);
    const path = text.slice(text.indexOf(' ') + 1, text.indexOf(' HTTP/'));
    this.#success = this.#options.successes.find((success) => path.endsWith(success.path));
    this.#bodyBytesLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    this.#isInRequest = true;
    return bytes.subarray(end + endOfHead.length);
  }

  #answer(): void {
    const { body, isPreparation } = this.#success ?? { isPreparation: true };
    const text =
      typeof body === 'function' ? body(Buffer.concat(this.#body).toString('latin1')) : json(body);
    const head = [
      `HTTP/1.1 ${this.#success ? '200 OK' : '404 Not Found'}`,
      'Server: nginx',
      'Date: Mon, 01 Jan 2024 00:00:00 GMT',
      'Content-Type: application/json;charset=UTF-8',
      'Connection: keep-alive',
      `Content-Length: ${Buffer.byteLength(text)}`,
    ];
    if (!isPreparation) this.#options.onRequest();
    this.#socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
    this.#isInRequest = false;
    this.#body = [];
  }
}

const json = (body: object | undefined): string => (body === undefined ? '' : JSON.stringify(body));
