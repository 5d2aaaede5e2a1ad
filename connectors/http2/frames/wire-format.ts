/**
 * Constants of RFC 9113 (frames, flags, settings, error codes), and functions that encode frames.
 */

export const frameHeaderBytes = 9;
/** Largest frame that the peer may send. Our SETTINGS keep the default (RFC 9113 6.5.2). */
export const defaultFrameBytes = 16_384;
export const defaultWindowBytes = 65_535;
export const maxWindowBytes = 0x7fff_ffff;
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const frame = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flag = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const;

export const setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const errorCode = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  connect: 10,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
  http11Required: 13,
} as const;

export const readUint24 = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);

/** Reads 31 bits and ignores the reserved first bit. */
export const readUint31 = (bytes: Uint8Array, at: number): number =>
  (((bytes[at] ?? 0) & 0x7f) << 24) | readUint24(bytes, at + 1);

export const readUint32 = (bytes: Uint8Array, at: number): number =>
  (((bytes[at] ?? 0) << 24) | readUint24(bytes, at + 1)) >>> 0;

export function writeUint24(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 16;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value;
}

export function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Writes the nine bytes of a frame header. Returns the offset of the payload. */
export function writeFrameHead(
  bytes: Uint8Array,
  at: number,
  head: { length: number; type: number; flags: number; streamId: number },
): number {
  writeUint24(bytes, at, head.length);
  bytes[at + 3] = head.type;
  bytes[at + 4] = head.flags;
  writeUint32(bytes, at + 5, head.streamId);
  return at + frameHeaderBytes;
}

/** Returns a whole frame in a new buffer. For frames that are rarely sent. */
export function frameOf(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array,
): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  writeFrameHead(bytes, 0, { length: payload.length, type, flags, streamId });
  bytes.set(payload, frameHeaderBytes);
  return bytes;
}

export function settingsFrame(values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(values.length * 6);
  values.forEach(([id, value], i) => {
    payload.writeUInt16BE(id, i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  });
  return frameOf(frame.settings, 0, 0, payload);
}

/** Returns a frame with a 32-bit payload: RST_STREAM or WINDOW_UPDATE. */
export function numberFrame(type: number, streamId: number, value: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(value);
  return frameOf(type, 0, streamId, payload);
}

export function goawayFrame(code: number): Buffer {
  const payload = Buffer.alloc(8);
  // The id of the last processed stream is 0, because servers open no streams.
  payload.writeUInt32BE(code, 4);
  return frameOf(frame.goaway, 0, 0, payload);
}

/** Violation of the protocol or of a limit that ends the connection (RFC 9113 5.4.1). */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, text: string) {
    super(text);
    this.name = 'ConnectionError';
    this.code = code;
  }
}

export function throwConnectionError(code: number, text: string): never {
  throw new ConnectionError(code, text);
}
