/** Opcodes of frames (RFC 6455, section 5.2). */
export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Bits and values of a frame's first two bytes. */
export const bits = { fin: 0x80, reserved: 0x70, opcode: 0x0f, mask: 0x80, length: 0x7f } as const;
/** Lengths that say that the length follows, in two or eight bytes. */
export const lengthIn = { twoBytes: 126, eightBytes: 127 } as const;
/** Longest payload of a control frame. */
export const maxControlBytes = 125;

const maxTwoBytes = 0xffff;

/** Returns the bytes of a frame from the server: whole and not masked. */
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

/** Frames by message: one that goes to many devices is one object, and encoded once. */
const encoded = new WeakMap<object, Buffer>();

/** Returns the bytes of a text or binary frame. */
export function encodeMessage(message: { data: string | Buffer; isBinary: boolean }): Buffer {
  const known = encoded.get(message);
  if (known) return known;
  const frame = encodeFrame(message.isBinary ? opcodes.binary : opcodes.text, message.data);
  encoded.set(message, frame);
  return frame;
}

/** Bytes of a ping. */
export const pingFrame: Buffer = encodeFrame(opcodes.ping, '');

/** Returns the bytes of a close frame; `reason` is ASCII of up to 123 bytes. */
export function encodeClose(code: number, reason: string): Buffer {
  const payload = Buffer.allocUnsafe(2 + reason.length);
  payload.writeUInt16BE(code, 0);
  payload.write(reason, 2, 'latin1');
  return encodeFrame(opcodes.close, payload);
}
