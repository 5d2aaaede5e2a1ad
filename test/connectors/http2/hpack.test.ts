import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HeaderDecoder } from '../../../connectors/http2/hpack/decoder.ts';
import { type Field, HeaderEncoder } from '../../../connectors/http2/hpack/encoder.ts';
import {
  huffmanDecode,
  huffmanEncode,
  huffmanLength,
  huffmanRoom,
} from '../../../connectors/http2/hpack/huffman.ts';

type Pair = [name: string, value: string];

const bytes = (hex: string) => Buffer.from(hex.replace(/\s/g, ''), 'hex');

/** Decodes the fields of a block. Returns the error if this fails. */
function read(decoder: HeaderDecoder, block: Uint8Array): Pair[] | string {
  const fields: Pair[] = [];
  return (
    decoder.decode(block, 0, block.length, (name, value) => fields.push([name, value])) ?? fields
  );
}

const www: Pair = [':authority', 'www.example.com'];
const get: Pair[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
];
const https: Pair[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
];
const custom: Pair = ['custom-key', 'custom-value'];
const requests: Pair[][] = [
  [...get, [':path', '/'], www],
  [...get, [':path', '/'], www, ['cache-control', 'no-cache']],
  [...https, [':path', '/index.html'], www, custom],
];
const at2013 = (second: number): Pair => ['date', `Mon, 21 Oct 2013 20:13:${second} GMT`];
const location: Pair = ['location', 'https://www.example.com'];
const cookie: Pair = ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'];
const priv: Pair = ['cache-control', 'private'];
const responses: Pair[][] = [
  [[':status', '302'], priv, at2013(21), location],
  [[':status', '307'], priv, at2013(21), location],
  [[':status', '200'], priv, at2013(22), location, ['content-encoding', 'gzip'], cookie],
];

describe('the examples of RFC 7541', () => {
  test.each([
    [
      'C.2.1',
      '400a637573746f6d2d6b65790d637573746f6d2d686561646572',
      ['custom-key', 'custom-header'],
    ],
    ['C.2.2', '040c2f73616d706c652f70617468', [':path', '/sample/path']],
    ['C.2.3', '100870617373776f726406736563726574', ['password', 'secret']],
    ['C.2.4', '82', [':method', 'GET']],
  ])('%s', (_, hex, field) => {
    expect(read(new HeaderDecoder(), bytes(hex))).toEqual([field]);
  });

  test.each([
    [
      'C.3, requests',
      [
        '828684410f7777772e6578616d706c652e636f6d',
        '828684be58086e6f2d6361636865',
        '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
      ],
    ],
    [
      'C.4, requests with Huffman coding',
      [
        '828684418cf1e3c2e5f23a6ba0ab90f4ff',
        '828684be5886a8eb10649cbf',
        '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
      ],
    ],
  ])('%s', (_, blocks) => {
    const decoder = new HeaderDecoder();
    expect(blocks.map((hex) => read(decoder, bytes(hex)))).toEqual(requests);
  });

  test('C.4 equals the output of the encoder', () => {
    const encoder = new HeaderEncoder();
    const hex = requests.map((fields) =>
      encoder
        .encode(fields.map(([name, value]) => ({ name, value, scope: 'connection' })))
        .toString('hex'),
    );
    expect(hex).toEqual([
      '828684418cf1e3c2e5f23a6ba0ab90f4ff',
      '828684be5886a8eb10649cbf',
      '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
    ]);
  });

  test.each([
    [
      'C.5, responses that evict',
      [
        `4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e17
         68747470733a2f2f7777772e6578616d706c652e636f6d`,
        '4803333037c1c0bf',
        `88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153
         444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31`,
      ],
    ],
    [
      'C.6, the same with Huffman coding',
      [
        `488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8
         e9ae82ae43d3`,
        '4883640effc1c0bf',
        `88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b
         3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007`,
      ],
    ],
  ])('%s', (_, blocks) => {
    const decoder = new HeaderDecoder({ tableSize: 256, listSize: 65_536 });
    expect(blocks.map((hex) => read(decoder, bytes(hex)))).toEqual(responses);
    expect(decoder.status).toBe(200);
    expect(decoder.isMalformed).toBe(false);
  });
});

describe('the Huffman code', () => {
  test('round-trips every text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (text) => {
        const coded = new Uint8Array(huffmanLength(text));
        expect(huffmanEncode(text, coded, 0)).toBe(coded.length);
        const decoded = new Uint8Array(huffmanRoom(coded.length));
        const end = huffmanDecode(coded, 0, coded.length, decoded, 0);
        expect(decoded.subarray(0, end)).toEqual(text);
      }),
    );
  });

  test.each([
    ['EOS inside', 'fffffffc'],
    ['EOS inside and a text behind it', 'fffffffd1f'],
    ['a padding of eight bits', '1fff'],
    ['a padding of zeros', '18'],
  ])('refuses %s', (_, hex) => {
    expect(huffmanDecode(bytes(hex), 0, bytes(hex).length, new Uint8Array(64), 0)).toBe(-1);
  });
});

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
const value = fc.string({
  unit: fc.integer({ min: 32, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 200,
});
const scope = fc.constantFrom<Field['scope']>('connection', 'batch', 'request');
const field = fc.record({ name, value, scope });
const step = fc.oneof(
  { arbitrary: fc.array(field, { maxLength: 12 }), weight: 6 },
  { arbitrary: fc.integer({ min: 0, max: 8192 }), weight: 1 },
);

describe('encoded fields', () => {
  test('can be decoded, with changes of the table size at any time', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const encoder = new HeaderEncoder();
        const decoder = new HeaderDecoder({ tableSize: 4096, listSize: 1_000_000 });
        for (const one of steps) {
          if (typeof one === 'number') encoder.setPeerTableSize(one);
          else {
            const expected = one.map((field) => [field.name, field.value]);
            expect(read(decoder, encoder.encode(one))).toEqual(expected);
          }
        }
        const size = encoder.entries.reduce((sum, entry) => sum + entry.size, 0);
        expect(size).toBeLessThanOrEqual(4096);
      }),
    );
  });

  test('of the connection take one byte the second time, and leave the table unchanged', () => {
    const encoder = new HeaderEncoder();
    const fields: Field[] = [
      { name: ':method', value: 'POST', scope: 'connection' },
      { name: 'authorization', value: `bearer ${'x'.repeat(230)}`, scope: 'connection' },
      { name: 'apns-topic', value: 'com.example.app', scope: 'connection' },
    ];
    encoder.encode(fields);
    const { generation } = encoder;
    expect(encoder.encode(fields)).toHaveLength(3);
    expect(encoder.generation).toBe(generation);
  });

  test('of a batch have an indexed name, and fields of a request are never indexed', () => {
    const encoder = new HeaderEncoder();
    const block = (expiration: string, id: string) =>
      encoder.encode([
        { name: 'apns-expiration', value: expiration, scope: 'batch' },
        { name: 'apns-id', value: id, scope: 'request' },
      ]);
    block('1', 'a');
    const second = block('2', 'b');
    expect(encoder.entries.map((entry) => entry.name)).toEqual(['apns-expiration']);
    // A literal without indexing with an indexed name, then a never-indexed literal (RFC 7541
    // 6.2.2, 6.2.3).
    expect(second[0]).toBe(0x0f);
    expect(second.includes(0x10)).toBe(true);
  });

  test('do not thrash a small table', () => {
    const encoder = new HeaderEncoder();
    encoder.setPeerTableSize(200);
    const lists = [1, 2, 3].map((n) =>
      ['a', 'b', 'c'].map(
        (letter): Field => ({ name: `x-${letter}${n}`, value: 'some value', scope: 'connection' }),
      ),
    );
    for (const list of lists) encoder.encode(list);
    const { generation } = encoder;
    for (let i = 0; i < 100; i++) for (const list of lists) encoder.encode(list);
    expect(encoder.generation).toBeLessThanOrEqual(generation + 1);
  });
});

describe('invalid blocks of a peer', () => {
  test.each([
    ['index 0', '80'],
    ['an index beyond the tables', 'bf'],
    ['a name index beyond the tables', '7f00'],
    ['a truncated text', '400a6375'],
    ['a truncated integer', 'ff'],
    ['an integer without an end', 'ffffffffffffff7f'],
    ['an integer above the limit', '7fffffffff0f'],
    ['a table above our setting', '3fe21f'],
    ['a size update after a field', '8820'],
    ['broken Huffman code', '0081ff00'],
  ])('%s is a connection error', (_, hex) => {
    expect(read(new HeaderDecoder(), bytes(hex))).toBe('broken');
  });

  test('a list that exceeds its limit by repeating one entry', () => {
    const decoder = new HeaderDecoder({ tableSize: 4096, listSize: 16_384 });
    const entry = Buffer.concat([bytes('400161'), bytes('7fa11e'), Buffer.alloc(4000, 'v')]);
    expect(read(decoder, entry)).toHaveLength(1);
    expect(read(decoder, Buffer.alloc(100, 0xbe))).toBe('too_large');
  });

  test.each<[string, Pair[]]>([
    [
      'a capital in a name',
      [
        [':status', '200'],
        ['X-A', '1'],
      ],
    ],
    [
      'a status after a field',
      [
        ['x-a', '1'],
        [':status', '200'],
      ],
    ],
    [
      'two statuses',
      [
        [':status', '200'],
        [':status', '200'],
      ],
    ],
    ['an invalid status', [[':status', '20x']]],
    [
      'a pseudo field of requests',
      [
        [':status', '200'],
        [':path', '/'],
      ],
    ],
    [
      'a connection-specific field',
      [
        [':status', '200'],
        ['transfer-encoding', 'chunked'],
      ],
    ],
  ])('%s makes a malformed reply but does not break the connection', (_, fields) => {
    const decoder = new HeaderDecoder();
    const block = new HeaderEncoder().encode(
      fields.map(([name, value]) => ({ name, value, scope: 'request' })),
    );
    expect(read(decoder, block)).toEqual(fields);
    expect(decoder.isMalformed).toBe(true);
  });

  test('random bytes are decoded or rejected, within the limits', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 8 }), (blocks) => {
        const decoder = new HeaderDecoder({ tableSize: 4096, listSize: 8192 });
        for (const block of blocks) {
          const fields = read(decoder, block);
          if (typeof fields === 'string') return;
          const size = fields.reduce((sum, [n, v]) => sum + n.length + v.length + 32, 0);
          expect(size).toBeLessThanOrEqual(8192);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a truncated block is rejected or decoded up to its end', () => {
    const whole = new HeaderEncoder().encode([
      { name: ':status', value: '403', scope: 'connection' },
      { name: 'apns-id', value: 'eabeae54-14a8-11e5-b60b-1697f925ec7b', scope: 'connection' },
      { name: 'retry-after', value: '30', scope: 'request' },
    ]);
    for (let cut = 0; cut < whole.length; cut++) {
      const fields = read(new HeaderDecoder(), whole.subarray(0, cut));
      if (typeof fields !== 'string') expect(fields.length).toBeLessThan(3);
    }
    const decoder = new HeaderDecoder();
    read(decoder, whole);
    expect([decoder.status, decoder.retryAfter]).toEqual([403, '30']);
  });
});
