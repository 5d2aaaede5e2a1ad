import { describe, expect, test } from 'vitest';
import {
  flag,
  frame,
  frameOf,
  goawayFrame,
  numberFrame,
  setting,
  settingsFrame,
} from '../../../connectors/http2/frames/wire-format.ts';
import { aBatch, repliesOf, tally } from '../../support/http2/peer.ts';
import {
  againstRawPeer,
  block,
  dataFrame,
  headersFrame,
  okFrame,
} from '../../support/http2/raw-peer.ts';

const hello = settingsFrame([]);
const times = (count: number, bytes: Uint8Array): Buffer =>
  Buffer.concat(Array<Uint8Array>(count).fill(bytes));
const ok = block([':status', '200']);
const table4000 = Buffer.concat([
  Buffer.from('88400161', 'hex'),
  Buffer.from('7fa11e', 'hex'),
  Buffer.alloc(4000, 'v'),
]);
const headersFlags = (flags: number, id: number, payload: Buffer) =>
  frameOf(frame.headers, flags, id, payload);
const continuation = (flags: number, id: number, payload: Buffer) =>
  frameOf(frame.continuation, flags, id, payload);
const none = Buffer.alloc(0);

/** This violation follows a status, which is a reply. */
const floodAfterStatus = 'a flood of empty DATA';

/**
 * Frames that a peer sends after the first request, and the code of the resulting GOAWAY. Stream 1
 * is open, stream 3 is idle.
 */
const violations: [what: string, code: number, frames: (id: number) => Buffer][] = [
  ['a frame larger than announced', 6, () => frameOf(frame.data, 0, 1, Buffer.alloc(16_385))],
  ['SETTINGS of an odd length', 6, () => frameOf(frame.settings, 0, 0, Buffer.alloc(5))],
  ['SETTINGS of a stream', 1, () => frameOf(frame.settings, 0, 1, none)],
  [
    'an acknowledgement with a payload',
    6,
    () => frameOf(frame.settings, flag.ack, 0, Buffer.alloc(6)),
  ],
  ['an initial window of 2^31', 3, () => settingsFrame([[setting.initialWindowSize, 0x8000_0000]])],
  ['a frame size below the minimum', 1, () => settingsFrame([[setting.maxFrameSize, 100]])],
  ['a frame size above the maximum', 1, () => settingsFrame([[setting.maxFrameSize, 0x100_0000]])],
  ['ENABLE_PUSH 1', 1, () => settingsFrame([[setting.enablePush, 1]])],
  [
    'a PUSH_PROMISE',
    1,
    () => frameOf(frame.pushPromise, flag.endHeaders, 1, Buffer.from('0000000282', 'hex')),
  ],
  ['a PING of seven bytes', 6, () => frameOf(frame.ping, 0, 0, Buffer.alloc(7))],
  ['a PING of a stream', 1, () => frameOf(frame.ping, 0, 1, Buffer.alloc(8))],
  ['HEADERS without a stream', 1, () => headersFrame(0, ok)],
  ['HEADERS of a stream of its own', 1, () => headersFrame(2, ok)],
  ['HEADERS of a stream that is not open yet', 1, () => headersFrame(101, ok)],
  [
    'HEADERS with more padding than bytes',
    1,
    (id) => headersFlags(flag.endHeaders | flag.padded, id, Buffer.from([9, 0x88])),
  ],
  [
    'HEADERS cut in their priority',
    6,
    (id) => headersFlags(flag.endHeaders | flag.priority, id, Buffer.from([0, 0])),
  ],
  ['DATA without a stream', 1, () => dataFrame(0, 'x')],
  ['DATA of a stream that is not open yet', 1, () => dataFrame(99, 'x')],
  [
    'DATA with more padding than bytes',
    1,
    (id) => frameOf(frame.data, flag.padded, id, Buffer.from([9, 0])),
  ],
  ['DATA that lacks its padding length', 6, (id) => frameOf(frame.data, flag.padded, id, none)],
  ['CONTINUATION of nothing', 1, (id) => continuation(flag.endHeaders, id, ok)],
  [
    'CONTINUATION of another stream',
    1,
    (id) => Buffer.concat([headersFlags(0, id, ok), continuation(4, id + 2, none)]),
  ],
  [
    'an interrupted header block',
    1,
    (id) => Buffer.concat([headersFlags(0, id, ok), frameOf(frame.ping, 0, 0, Buffer.alloc(8))]),
  ],
  ['PRIORITY without a stream', 1, () => frameOf(frame.priority, 0, 0, Buffer.alloc(5))],
  ['RST_STREAM of three bytes', 6, (id) => frameOf(frame.reset, 0, id, Buffer.alloc(3))],
  ['RST_STREAM without a stream', 1, () => numberFrame(frame.reset, 0, 8)],
  ['RST_STREAM of a stream that is not open yet', 1, () => numberFrame(frame.reset, 99, 8)],
  ['a WINDOW_UPDATE of 0', 1, () => numberFrame(frame.windowUpdate, 0, 0)],
  ['a window above 2^31-1', 3, () => numberFrame(frame.windowUpdate, 0, 0x7fff_ffff)],
  ['a WINDOW_UPDATE of an idle stream', 1, () => numberFrame(frame.windowUpdate, 99, 1)],
  ['a GOAWAY of four bytes', 6, () => frameOf(frame.goaway, 0, 0, Buffer.alloc(4))],
  ['an invalid header block', 9, (id) => headersFrame(id, Buffer.from('bf', 'hex'))],
  [
    'a header list above the limit',
    11,
    (id) => headersFrame(id, Buffer.concat([table4000, Buffer.alloc(9, 0xbe)])),
  ],
  [
    'a header block in too many frames',
    11,
    (id) => Buffer.concat([headersFlags(0, id, ok), times(40, continuation(0, id, none))]),
  ],
  [
    'a header block above the limit',
    11,
    (id) =>
      Buffer.concat([
        headersFlags(0, id, ok),
        times(5, continuation(0, id, Buffer.alloc(16_384, 0x88))),
      ]),
  ],
  ['a flood of SETTINGS', 11, () => times(10_100, hello)],
  [
    'a flood of acknowledgements',
    11,
    () => times(10_100, frameOf(frame.settings, flag.ack, 0, none)),
  ],
  ['a flood of PINGs', 11, () => times(10_100, frameOf(frame.ping, 0, 0, Buffer.alloc(8)))],
  ['a flood of WINDOW_UPDATE', 11, (id) => times(10_100, numberFrame(frame.windowUpdate, id, 1))],
  ['a flood of resets', 11, (id) => times(10_100, numberFrame(frame.reset, id, 8))],
  [
    'a flood of priorities',
    11,
    () => times(10_100, frameOf(frame.priority, 0, 1, Buffer.alloc(5))),
  ],
  ['a flood of unknown frames', 11, () => times(10_100, frameOf(0xfa, 0, 0, none))],
  [
    'a flood of informational responses',
    11,
    (id) => times(10_100, headersFrame(id, block([':status', '103']), false)),
  ],
  [
    floodAfterStatus,
    11,
    (id) => Buffer.concat([headersFrame(id, ok, false), times(10_100, dataFrame(id, '', false))]),
  ],
];

describe('a connection error closes only the connection:', () => {
  test.each(violations)('%s', async (what, code, frames) => {
    const goaway = Promise.withResolvers<number>();
    const { transport, peer } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      connection.write(frames(await connection.request()));
      goaway.resolve(await connection.goaway());
    });
    const [reply] = await repliesOf(transport, aBatch(1));
    expect(await goaway.promise).toBe(code);
    expect(reply?.kind).toBe(what === floodAfterStatus ? 'response' : 'unknown');
    // The next connection is correct and is used.
    expect(tally(await repliesOf(transport, aBatch(3)))).toEqual({ 'response 200': 3 });
    expect(peer.connections).toHaveLength(2);
  });

  test('a first frame other than SETTINGS', async () => {
    const goaway = Promise.withResolvers<number>();
    const { transport } = await againstRawPeer(async (connection) => {
      connection.write(frameOf(frame.ping, 0, 0, Buffer.alloc(8)));
      goaway.resolve(await connection.goaway());
    });
    expect(tally(await repliesOf(transport, aBatch(3)))).toEqual({ 'response 200': 3 });
    expect(await goaway.promise).toBe(1);
  });

  test('bodies without an end on all streams', async () => {
    const goaway = Promise.withResolvers<number>();
    const { transport } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      const half = Buffer.alloc(16_384, 'x');
      for (let i = 0; i < 100; i++) {
        const id = await connection.request();
        connection.write(
          headersFrame(id, ok, false),
          ...[1, 2, 3].map(() => dataFrame(id, half, false)),
        );
      }
      goaway.resolve(await connection.goaway());
    });
    const replies = await repliesOf(transport, aBatch(100));
    const { 'response 200': answered = 0, 'unknown connection_lost': lost = 0 } = tally(replies);
    expect([answered > 80, answered + lost]).toEqual([true, 100]);
    expect(await goaway.promise).toBe(11);
  });
});

describe('a stream error ends only the stream:', () => {
  const violations: [what: string, code: number, frames: (id: number) => Buffer][] = [
    ['a response without a status', 1, (id) => headersFrame(id, block(['x-a', '1']))],
    [
      'a reply with two statuses',
      1,
      (id) => headersFrame(id, block([':status', '200'], [':status', '200'])),
    ],
    ['a capital in a name', 1, (id) => headersFrame(id, block([':status', '200'], ['X-A', '1']))],
    [
      'an informational reply as the last block',
      1,
      (id) => headersFrame(id, block([':status', '103'])),
    ],
    ['101', 1, (id) => headersFrame(id, block([':status', '101']), false)],
    ['DATA before HEADERS', 1, (id) => dataFrame(id, 'x')],
  ];
  test.each(violations)('%s', async (_, code, frames) => {
    const codes: (number | undefined)[] = [];
    const { transport, peer } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      const [first, second] = [await connection.request(), await connection.request()];
      connection.write(frames(first), okFrame(second));
      const reset = await connection.next(({ type }) => type === frame.reset);
      codes.push(reset?.payload.readUInt32BE(0));
      connection.write(okFrame(await connection.request()));
    });
    const replies = await repliesOf(transport, aBatch(2));
    expect(tally(replies)).toEqual({ 'unknown stream_reset': 1, 'response 200': 1 });
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'response 200': 1 });
    expect(codes).toEqual([code]);
    expect(peer.connections).toHaveLength(1);
  });

  test('a body that fills its window with padding is a reply with a truncated body', async () => {
    const { transport } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      const id = await connection.request();
      const padding = Buffer.concat([Buffer.from([255]), Buffer.alloc(255)]);
      connection.write(
        headersFrame(id, ok, false),
        times(600, frameOf(frame.data, flag.padded, id, padding)),
      );
    });
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'response 200': 1 });
  });
});

/** Unusual but valid frames. Each case ends with status 200 and the body `yes`. */
const unusualFrames: [what: string, frames: (id: number) => Buffer][] = [
  [
    'informational responses first',
    (id) =>
      Buffer.concat([
        headersFrame(id, block([':status', '103']), false),
        headersFrame(id, ok, false),
        dataFrame(id, 'yes'),
      ]),
  ],
  [
    'trailers',
    (id) =>
      Buffer.concat([
        headersFrame(id, ok, false),
        dataFrame(id, 'yes', false),
        headersFrame(id, block(['x-t', '1'])),
      ]),
  ],
  [
    'padding and priority',
    (id) =>
      Buffer.concat([
        headersFlags(
          flag.endHeaders | flag.padded | flag.priority,
          id,
          Buffer.concat([Buffer.from([3]), Buffer.alloc(5), ok, Buffer.alloc(3)]),
        ),
        frameOf(
          frame.data,
          flag.padded | flag.endStream,
          id,
          Buffer.from([2, 0x79, 0x65, 0x73, 0, 0]),
        ),
      ]),
  ],
  [
    'CONTINUATION, byte by byte',
    (id) => {
      const fields = block([':status', '200'], ['x-a', 'b']);
      const pieces = [...fields].map((byte, i) => {
        const last = i === fields.length - 1 ? flag.endHeaders : 0;
        return i === 0
          ? headersFlags(last, id, Buffer.from([byte]))
          : continuation(last, id, Buffer.from([byte]));
      });
      return Buffer.concat([...pieces, dataFrame(id, 'yes')]);
    },
  ],
  [
    'unknown frames and settings',
    (id) =>
      Buffer.concat([
        frameOf(0xfa, 0xff, id, Buffer.from('noise')),
        settingsFrame([[0x99, 7]]),
        frameOf(frame.priority, 0, id, Buffer.alloc(5)),
        headersFrame(id, ok, false),
        dataFrame(id, '', false),
        dataFrame(id, 'yes'),
      ]),
  ],
  [
    'a body in pieces, with an empty end',
    (id) =>
      Buffer.concat([
        headersFrame(id, ok, false),
        ...['y', 'e', 's'].map((letter) => dataFrame(id, letter, false)),
        dataFrame(id, ''),
      ]),
  ],
  [
    'a header table that shrinks and is filled again',
    (id) =>
      Buffer.concat([
        headersFrame(id, Buffer.concat([Buffer.from('203fe11f', 'hex'), table4000]), false),
        dataFrame(id, 'yes'),
      ]),
  ],
  [
    'a reset after the response',
    (id) =>
      Buffer.concat([
        headersFrame(id, ok, false),
        dataFrame(id, 'yes', false),
        numberFrame(frame.reset, id, 0),
      ]),
  ],
  [
    'late frames of the stream',
    (id) =>
      Buffer.concat([
        headersFrame(id, ok, false),
        dataFrame(id, 'yes'),
        numberFrame(frame.windowUpdate, id, 1),
        numberFrame(frame.reset, id, 0),
      ]),
  ],
];

describe('a peer may send', () => {
  test.each(unusualFrames)('%s', async (_, frames) => {
    const { transport, peer } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      for (let id = await connection.request(); id > 0; id = await connection.request())
        connection.write(frames(id));
    });
    for (let i = 0; i < 2; i++) {
      const [reply] = await repliesOf(transport, aBatch(1));
      expect(reply).toMatchObject({ kind: 'response', status: 200, body: 'yes' });
    }
    expect(peer.connections).toHaveLength(1);
  });

  test('all of these in single bytes', async () => {
    const { transport } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      const id = await connection.request();
      for (const byte of Buffer.concat(unusualFrames.slice(0, 3).map(([, frames]) => frames(id)))) {
        connection.write(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
    });
    expect(await repliesOf(transport, aBatch(1))).toMatchObject([{ status: 200, body: 'yes' }]);
  });

  test('PING, which is acknowledged', async () => {
    const opaque = Buffer.from('12345678');
    const seen: (Buffer | undefined)[] = [];
    const { transport } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      const id = await connection.request();
      connection.write(frameOf(frame.ping, 0, 0, opaque));
      seen.push(
        (await connection.next(({ type, flags }) => type === frame.ping && flags === flag.ack))
          ?.payload,
      );
      connection.write(okFrame(id));
    });
    await repliesOf(transport, aBatch(1));
    expect(seen).toEqual([opaque]);
  });

  test('GOAWAY twice: first with the highest id, then with the last processed one', async () => {
    const goaway = (lastId: number) => {
      const bytes = goawayFrame(0);
      bytes.writeUInt32BE(lastId, 9);
      return bytes;
    };
    const { transport, peer } = await againstRawPeer(async (connection) => {
      connection.write(hello);
      const ids = [];
      for (let i = 0; i < 4; i++) ids.push(await connection.request());
      connection.write(goaway(0x7fff_ffff), goaway(ids[1] ?? 0));
      for (const id of ids.slice(0, 2)) connection.write(okFrame(id));
    });
    expect(tally(await repliesOf(transport, aBatch(4)))).toEqual({ 'response 200': 4 });
    expect(peer.connections).toHaveLength(2);
    expect(peer.connections[1]?.frames.filter(({ type }) => type === frame.headers)).toEqual([]);
  });

  test('a reply after the timeout: it is ignored, and the connection stays', async () => {
    const { transport, peer } = await againstRawPeer(
      async (connection) => {
        connection.write(hello);
        const late = await connection.request();
        await connection.next(({ type }) => type === frame.reset);
        const next = await connection.request();
        connection.write(headersFrame(late, ok, false), dataFrame(late, 'late'), okFrame(next));
      },
      { requestMs: 100 },
    );
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'unknown timeout': 1 });
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'response 200': 1 });
    expect(peer.connections).toHaveLength(1);
  });
});
