import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeClose,
  encodeFrame,
  FrameError,
  FrameReader,
  maxFragments,
  opcodes,
} from '../../../api/channel/websocket/frames.ts';

const maxBytes = 1000;

interface SentFrame {
  opcode: number;
  payload: Buffer;
  isFinal?: boolean;
  isMasked?: boolean;
  reserved?: number;
}

/** Builds a frame of a client. */
function clientFrame({
  opcode,
  payload,
  isFinal = true,
  isMasked = true,
  reserved = 0,
}: SentFrame): Buffer {
  const head = encodeFrame(opcode, payload).subarray(0, -payload.length || undefined);
  const key = Buffer.from([7, 200, 0, 99]);
  const masked = Buffer.from(payload.map((byte, i) => byte ^ (key[i % 4] ?? 0)));
  const frame = Buffer.concat(isMasked ? [head, key, masked] : [head, payload]);
  frame[0] = (isFinal ? 0x80 : 0) | reserved | opcode;
  frame[1] = (frame[1] ?? 0) | (isMasked ? 0x80 : 0);
  return frame;
}

const text = (payload: string, more: Partial<SentFrame> = {}) =>
  clientFrame({ opcode: opcodes.text, payload: Buffer.from(payload), ...more });
const rest = (payload: string, isFinal: boolean) =>
  text(payload, { opcode: opcodes.continuation, isFinal });

/** Reads chunks. Returns what arrived, and the code of an error at the end. */
function read(...chunks: Buffer[]): (string | number)[] {
  const seen: (string | number)[] = [];
  const reader = new FrameReader(maxBytes, {
    onMessage: (data, isBinary) => seen.push(`${isBinary ? 'binary' : 'text'} ${data}`),
    onPing: (data) => seen.push(`ping ${data}`),
    onPong: () => seen.push('pong'),
    onClose: (code) => seen.push(`close ${code}`),
  });
  try {
    for (const chunk of chunks) reader.read(Buffer.from(chunk));
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    seen.push(error.code);
  }
  return seen;
}

describe('frames of a device', () => {
  test('arrive whole, wherever the stream is split', () => {
    const sent = [
      text('{}'),
      clientFrame({ opcode: opcodes.binary, payload: Buffer.from('b') }),
      text('x'.repeat(126)),
      text('Größe ', { isFinal: false }),
      clientFrame({ opcode: opcodes.ping, payload: Buffer.from('between') }),
      rest('und ', false),
      rest('Ende', true),
      clientFrame({ opcode: opcodes.pong, payload: Buffer.alloc(0) }),
      text('y'.repeat(maxBytes)),
      clientFrame({ opcode: opcodes.close, payload: Buffer.from([3, 232]) }),
    ];
    const expected = [
      'text {}',
      'binary b',
      `text ${'x'.repeat(126)}`,
      'ping between',
      'text Größe und Ende',
      'pong',
      `text ${'y'.repeat(maxBytes)}`,
      'close 1000',
    ];
    const stream = Buffer.concat(sent);
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 20 }), (cuts) => {
        const ends = [...cuts.sort((a, b) => a - b), stream.length];
        expect(read(...ends.map((end, i) => stream.subarray(ends[i - 1] ?? 0, end)))).toEqual(
          expected,
        );
      }),
      { numRuns: 50 },
    );
    expect(read(...Array.from(stream, (byte) => Buffer.from([byte])))).toEqual(expected);
  });

  test.each<[string, Buffer[], number]>([
    ['a frame that is not masked', [text('x', { isMasked: false })], 1002],
    ['a reserved bit', [text('x', { reserved: 0x40 })], 1002],
    ['an unknown opcode', [text('x', { opcode: 3 })], 1002],
    ['a fragment of a control frame', [text('x', { opcode: opcodes.ping, isFinal: false })], 1002],
    ['a long control frame', [text('x'.repeat(126), { opcode: opcodes.ping })], 1002],
    ['a continuation of nothing', [rest('x', true)], 1002],
    ['a message inside another', [text('x', { isFinal: false }), text('y')], 1002],
    ['half a close code', [text('x', { opcode: opcodes.close })], 1002],
    ['a close code that nobody may send', [text('\u0003\u00ed', { opcode: opcodes.close })], 1002],
    ['text that is not UTF-8', [text('', { payload: Buffer.from([0xc3, 0x28]) })], 1007],
    ['a message above the limit', [text('x'.repeat(maxBytes + 1))], 1009],
    ['its header alone', [text('x'.repeat(maxBytes + 1)).subarray(0, 4)], 1009],
    ['a length of 2^63', [Buffer.from([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0])], 1009],
    [
      'fragments above the limit',
      [text('x'.repeat(600), { isFinal: false }), rest('x'.repeat(401), true)],
      1009,
    ],
    [
      'more fragments than a message may have',
      [
        text('', { isFinal: false }),
        ...Array.from({ length: maxFragments }, () => rest('', false)),
      ],
      1008,
    ],
  ])('%s closes the connection', (_name, chunks, code) => {
    expect(read(...chunks).at(-1)).toBe(code);
  });

  test('with any bytes are read or refused', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }), (chunks) => {
        read(...chunks.map((chunk) => Buffer.from(chunk)));
      }),
      { numRuns: 300 },
    );
  });
});

test('of the server have the shortest possible length', () => {
  const lengths = [0, 125, 126, 65_535, 65_536];
  const heads = lengths.map(
    (length) => encodeFrame(opcodes.text, 'x'.repeat(length)).length - length,
  );
  expect(heads).toEqual([2, 2, 4, 4, 10]);
  expect(encodeFrame(opcodes.binary, 'é')).toEqual(Buffer.from([0x82, 2, 0xc3, 0xa9]));
  expect(encodeClose(1001, 'GO')).toEqual(Buffer.from([0x88, 4, 3, 233, 71, 79]));
});
