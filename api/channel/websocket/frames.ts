import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { channelPath } from '../../../shared/domain/installations/installation.ts';

/** Opcodes of frames (RFC 6455, section 5.2). */
export const opcodes = {
  continuation: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10,
} as const;

/** Bits and values of a frame's first two bytes. */
const bits = { fin: 0x80, reserved: 0x70, opcode: 0x0f, mask: 0x80, length: 0x7f } as const;
/** Length values which mean that the real length follows in two or eight bytes. */
const lengthIn = { twoBytes: 126, eightBytes: 127 } as const;
/** Maximum payload of a control frame. */
const maxControlBytes = 125;

const maxTwoBytes = 0xffff;

/** Returns the bytes of a frame from the server, which is unfragmented and not masked. */
export function encodeFrame(opcode: number, payload: string | Buffer): Buffer {
  const length = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
  const start = length <= maxControlBytes ? 2 : length <= maxTwoBytes ? 4 : 10;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = bits.fin | opcode;
  frame[1] = start === 2 ? length : start === 4 ? lengthIn.twoBytes : lengthIn.eightBytes;
  if (start === 4) frame.writeUInt16BE(length, 2);
  if (start === 10) frame.writeBigUInt64BE(BigInt(length), 2);
  if (typeof payload === 'string') frame.write(payload, start);
  else payload.copy(frame, start);
  return frame;
}

/** Encoded frames by message. A message to many devices is one object and is encoded once. */
const encoded = new WeakMap<object, Buffer>();

/** Returns the bytes of a text or binary frame. */
export function encodeMessage(message: { data: string | Buffer; isBinary: boolean }): Buffer {
  const cached = encoded.get(message);
  if (cached) return cached;
  const frame = encodeFrame(message.isBinary ? opcodes.binary : opcodes.text, message.data);
  encoded.set(message, frame);
  return frame;
}

/** Bytes of a ping. */
export const pingFrame: Buffer = encodeFrame(opcodes.ping, '');

/** Returns the bytes of a close frame. `reason` is ASCII text of up to 123 bytes. */
export function encodeClose(code: number, reason: string): Buffer {
  const payload = Buffer.allocUnsafe(2 + reason.length);
  payload.writeUInt16BE(code, 0);
  payload.write(reason, 2, 'latin1');
  return encodeFrame(opcodes.close, payload);
}

/** Receiver of a device's frames. */
export interface FrameEvents {
  onMessage(data: Buffer, isBinary: boolean): void;
  onPing(data: Buffer): void;
  onPong(): void;
  /** Called when the device closes. `code` is 1005 if the close frame contains no code. */
  onClose(code: number): void;
}

/**
 * Error for input that violates the WebSocket protocol, with the code to close with (RFC 6455,
 * section 7.4.1).
 */
export class FrameError extends Error {
  override name = 'FrameError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const codes = {
  protocol: 1002,
  noStatus: 1005,
  invalidData: 1007,
  tooManyFragments: 1008,
  tooBig: 1009,
};
/**
 * Maximum number of fragments of one message. Devices send small messages, so they have no reason
 * to fragment them.
 */
export const maxFragments = 64;

/** Header of a frame from a client. Such frames are masked. */
interface Header {
  isFinal: boolean;
  opcode: number;
  /** Position of the payload. The four bytes before it are the masking key. */
  start: number;
  length: number;
}

const isControl = (opcode: number) => opcode >= opcodes.close;
const isKnown = (opcode: number) =>
  opcode <= opcodes.binary || (opcode >= opcodes.close && opcode <= opcodes.pong);
/** Returns whether a device may send this close code (RFC 6455, section 7.4). */
const isSendable = (code: number) =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) ||
  (code >= 3000 && code <= 4999);

/** Reads the frames of one device. Uses memory only while a frame or a message is incomplete. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #events: FrameEvents;
  /** Received bytes of an incomplete frame. */
  #rest: Buffer | undefined;
  #fragments: Buffer[] | undefined;
  #fragmentBytes = 0;
  #isBinary = false;

  /** `maxBytes` limits a message including all its fragments. */
  constructor(maxBytes: number, events: FrameEvents) {
    this.#maxBytes = maxBytes;
    this.#events = events;
  }

  /**
   * Reads bytes from the network and overwrites them. Throws `FrameError`. After an error, no more
   * bytes can be read.
   */
  read(chunk: Buffer): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    for (let header = this.#readHeader(bytes, at); header; header = this.#readHeader(bytes, at)) {
      const end = header.start + header.length;
      if (end > bytes.length) break;
      const payload = bytes.subarray(header.start, end);
      unmask(payload, bytes, header.start - 4);
      at = end;
      this.#onFrame(header, payload);
    }
    this.#rest = at === bytes.length ? undefined : Buffer.from(bytes.subarray(at));
  }

  /** Returns the header of the frame at `at`. Returns undefined while the header is incomplete. */
  #readHeader(bytes: Buffer, at: number): Header | undefined {
    if (bytes.length - at < 2) return undefined;
    const first = bytes[at] ?? 0;
    const second = bytes[at + 1] ?? 0;
    const opcode = first & bits.opcode;
    const isFinal = (first & bits.fin) !== 0;
    if ((first & bits.reserved) !== 0 || !isKnown(opcode) || (second & bits.mask) === 0)
      throw new FrameError(codes.protocol, 'invalid frame header');
    const short = second & bits.length;
    if (isControl(opcode) && (!isFinal || short > maxControlBytes))
      throw new FrameError(codes.protocol, 'invalid control frame');
    const lengthBytes = short === lengthIn.twoBytes ? 2 : short === lengthIn.eightBytes ? 8 : 0;
    if (bytes.length - at < 2 + lengthBytes) return undefined;
    const length =
      lengthBytes === 0
        ? short
        : lengthBytes === 2
          ? bytes.readUInt16BE(at + 2)
          : Number(bytes.readBigUInt64BE(at + 2));
    // The limit is checked before the payload arrives, so that memory never exceeds the limit.
    if (!isControl(opcode) && length + this.#fragmentBytes > this.#maxBytes)
      throw new FrameError(codes.tooBig, 'message too big');
    return { isFinal, opcode, start: at + 2 + lengthBytes + 4, length };
  }

  #onFrame({ isFinal, opcode }: Header, payload: Buffer): void {
    switch (opcode) {
      case opcodes.ping:
        this.#events.onPing(payload);
        break;
      case opcodes.pong:
        this.#events.onPong();
        break;
      case opcodes.close:
        this.#events.onClose(closeCodeOf(payload));
        break;
      case opcodes.continuation:
        this.#onContinuation(isFinal, payload);
        break;
      default:
        this.#onStart(isFinal, opcode === opcodes.binary, payload);
    }
  }

  #onStart(isFinal: boolean, isBinary: boolean, payload: Buffer): void {
    if (this.#fragments) throw new FrameError(codes.protocol, 'a message inside another');
    if (isFinal) {
      this.#onMessage(payload, isBinary);
      return;
    }
    this.#isBinary = isBinary;
    this.#fragments = [];
    this.#addFragment(this.#fragments, payload);
  }

  #onContinuation(isFinal: boolean, payload: Buffer): void {
    const fragments = this.#fragments;
    if (!fragments) throw new FrameError(codes.protocol, 'a continuation of no message');
    this.#addFragment(fragments, payload);
    if (!isFinal) return;
    this.#fragments = undefined;
    this.#fragmentBytes = 0;
    this.#onMessage(Buffer.concat(fragments), this.#isBinary);
  }

  #addFragment(fragments: Buffer[], payload: Buffer): void {
    if (fragments.length >= maxFragments)
      throw new FrameError(codes.tooManyFragments, 'too many fragments');
    // Copy the payload, because it is part of a larger network buffer.
    fragments.push(Buffer.from(payload));
    this.#fragmentBytes += payload.length;
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    if (!isBinary && !isUtf8(data)) throw new FrameError(codes.invalidData, 'invalid UTF-8');
    this.#events.onMessage(data, isBinary);
  }
}

/** Applies the masking key, which is the four bytes at `keyAt` (RFC 6455, section 5.3). */
function unmask(payload: Buffer, bytes: Buffer, keyAt: number): void {
  const key = [
    bytes[keyAt] ?? 0,
    bytes[keyAt + 1] ?? 0,
    bytes[keyAt + 2] ?? 0,
    bytes[keyAt + 3] ?? 0,
  ];
  for (let i = 0; i < payload.length; i += 1) payload[i] = (payload[i] ?? 0) ^ (key[i & 3] ?? 0);
}

function closeCodeOf(payload: Buffer): number {
  if (payload.length === 0) return codes.noStatus;
  const code = payload.length === 1 ? 0 : payload.readUInt16BE(0);
  if (!isSendable(code)) throw new FrameError(codes.protocol, 'invalid close code');
  if (!isUtf8(payload.subarray(2))) throw new FrameError(codes.invalidData, 'invalid UTF-8');
  return code;
}

/**
 * Constant in the accept header (RFC 6455, section 1.3). It proves that the server understands
 * WebSocket.
 */
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** Versions of RFC 6455 and of a draft with the same frames. */
const versions: ReadonlySet<string> = new Set(['13', '8']);
const keyForm = /^[+/0-9A-Za-z]{22}==$/;

/**
 * Returns whether a request offers an upgrade to WebSocket. The request may offer other protocols
 * too (RFC 9110, section 7.8).
 */
const offersWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  (headers.upgrade ?? '').split(',').some((name) => name.trim().toLowerCase() === 'websocket');

/**
 * Returns whether a request is an upgrade to the device channel. Other upgrade offers are ignored
 * and the request is answered normally, because Java HTTP clients and `curl --http2` offer `h2c`
 * with every request.
 */
export const isChannelUpgrade = (request: IncomingMessage): boolean =>
  request.url?.split('?')[0] === channelPath && offersWebSocket(request);

/**
 * Returns the sub-protocols that a client offers. If the header is missing, returns only the
 * protocol without a name.
 */
export function offeredProtocols(request: IncomingMessage): string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
}

/**
 * Returns the response that accepts an upgrade with a sub-protocol. An empty `protocol` means none.
 * Accepts no extensions. Throws a `Refusal` if the request is not an opening handshake (RFC 6455,
 * section 4.2.1).
 */
export function acceptance(request: IncomingMessage, protocol: string): string {
  const key = request.headers['sec-websocket-key'];
  const isHandshake =
    offersWebSocket(request) && versions.has(request.headers['sec-websocket-version'] ?? '');
  if (!isHandshake || key === undefined || !keyForm.test(key))
    throw new Refusal('invalidParameter', {
      text: 'The request is no WebSocket handshake of version 13.',
    });
  const proof = createHash('sha1')
    .update(key + guid)
    .digest('base64');
  return [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${proof}`,
    ...(protocol === '' ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    '\r\n',
  ].join('\r\n');
}
