import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import Koa from 'koa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { readBody, readToForward } from '../../../api/middleware/body.ts';
import { errors } from '../../../api/middleware/errors.ts';
import { attachRequestBody, BodyMemory } from '../../../api/middleware/request-body.ts';
import { largestBody, route, smallBody } from '../../../api/route.ts';
import { RawRequest } from '../../support/raw-request.ts';

/**
 * Sends bodies that could harm the process, and unusual bodies of real clients, over real sockets.
 * After each body, no memory is reserved, no body is still being read, and the server answers.
 */
const kb = 1024;
const mb = 1024 * kb;
const bodyMs = 300;

let server: Server;
let url: string;
/** Bytes reserved for bodies: now, and the maximum since the start of the test. */
const charged = { now: 0, peak: 0 };
/** Number of bodies that are being read. */
let parsed = 0;

const declared = (limit: typeof smallBody) =>
  route({
    method: 'POST',
    path: '/',
    operation: 'readHostileBody',
    summary: 'Answers with the body.',
    auth: 'none',
    limit,
    reply: z.object({}),
    refusals: [],
    handle: () => ({ body: {} }),
  });
/** Paths. Each reads the body in one of the ways that routes use. */
const routes = {
  '/small': declared(smallBody),
  '/large': declared({ bodyBytesBelow: mb }),
  '/largest': declared(largestBody),
};
const sender = { appId: 'an app' };

beforeAll(async () => {
  const bodies = new BodyMemory({ bodyMs }, (bytes) => {
    charged.now += bytes;
    charged.peak = Math.max(charged.peak, charged.now);
  });
  const app = new Koa();
  app.silent = true;
  app.use(errors).use(attachRequestBody(bodies));
  app.use(async (ctx) => {
    parsed += 1;
    try {
      if (ctx.path === '/forwarded') {
        ctx.body = { text: (await readToForward(ctx, routes['/large'], sender)).text };
        return;
      }
      const { value } = await readBody(ctx, routes[ctx.path as keyof typeof routes], sender);
      ctx.body = { value, members: Object.keys(value) };
    } finally {
      parsed -= 1;
    }
  });
  server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

interface Sent {
  path?: keyof typeof routes | '/forwarded';
  headers?: string[];
  /** Body pieces. They are sent chunked unless `headers` contain a `Content-Length`. */
  body?: (string | Buffer)[];
  /** True if the body ends after these pieces. */
  isEnded?: boolean;
}

function open({ path = '/large', headers = [], body = [], isEnded = true }: Sent): RawRequest {
  const isAnnounced = headers.some((header) => header.startsWith('Content-Length'));
  const framing = isAnnounced || body.length === 0 ? [] : ['Transfer-Encoding: chunked'];
  const request = new RawRequest(url, [`POST ${path} HTTP/1.1`, 'Host: x', ...framing, ...headers]);
  for (const piece of body)
    if (isAnnounced) request.socket.write(piece);
    else request.chunk(piece);
  if (!isAnnounced && body.length > 0 && isEnded) request.socket.write('0\r\n\r\n');
  return request;
}

/** Uses the fastest compression, because the best quality takes seconds. */
const brotli = (text: Buffer) =>
  brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
const object = '{"a":1}';
const packed = (encoding: string) => [`Content-Encoding: ${encoding}`];
const json = (length: number) => `{"a":"${'x'.repeat(length - 8)}"}`;
/** Bytes that start like a second gzip member and continue with invalid data. */
const brokenMember = Buffer.concat([
  Buffer.from([0x1f, 0x8b, 0xff, 0xff]),
  Buffer.alloc(200, 0xff),
]);
const deepText = '['.repeat(200_000) + ']'.repeat(200_000);

type Answer = { status: number; body?: object };
const read = (value: object): Answer => ({ status: 200, body: { value } });
const refused = (code: number, status = code): Answer => ({ status, body: { code } });
const malformed = refused(107, 400);

test.each<[name: string, sent: Sent, answer: Answer]>([
  [
    'a gzip bomb of 500 MB',
    { headers: packed('gzip'), body: [gzipSync(Buffer.alloc(500 * mb, '['))] },
    refused(413),
  ],
  [
    'a brotli bomb',
    { headers: packed('br'), body: [brotli(Buffer.alloc(200 * mb, '['))] },
    refused(413),
  ],
  [
    'a deflate bomb',
    { headers: packed('deflate'), body: [deflateSync(Buffer.alloc(200 * mb, '['))] },
    refused(413),
  ],
  [
    'a bomb that goes on with broken data behind the limit',
    {
      path: '/small',
      headers: packed('gzip'),
      body: [Buffer.concat([gzipSync(Buffer.alloc(40 * kb, '[')), brokenMember])],
      isEnded: false,
    },
    refused(413),
  ],
  ['JSON that is 200,000 deep', { path: '/largest', body: [deepText] }, malformed],
  [
    'JSON with 400,001 values',
    { path: '/largest', body: [`{"a":[${'1,'.repeat(399_999)}1]}`] },
    malformed,
  ],
  ['chunks that stop', { body: ['{'], isEnded: false }, refused(408)],
  ['a length without a body', { headers: ['Content-Length: 100'] }, refused(408)],
  [
    'gzip data that stops',
    { headers: packed('gzip'), body: [gzipSync(object).subarray(0, 12)], isEnded: false },
    refused(408),
  ],
  ['a length of 20 GB', { headers: ['Content-Length: 20000000000'] }, refused(413)],
  ['a length beyond the numbers', { headers: [`Content-Length: ${'9'.repeat(17)}`] }, refused(413)],
  [
    'empty gzip members without an end',
    {
      headers: packed('gzip'),
      body: Array(60).fill(Buffer.concat(Array(kb).fill(gzipSync('')))),
      isEnded: false,
    },
    refused(413),
  ],
  ['data that is not gzip', { headers: packed('gzip'), body: [object] }, malformed],
  [
    'gzip data that is cut',
    { headers: packed('gzip'), body: [gzipSync(object).subarray(0, 12)] },
    malformed,
  ],
  [
    'a gzip body with a wrong checksum',
    {
      headers: packed('gzip'),
      body: [Buffer.concat([gzipSync(object).subarray(0, -8), Buffer.alloc(8)])],
    },
    malformed,
  ],
  [
    'two gzip members',
    { headers: packed('gzip'), body: [Buffer.concat([gzipSync('{"a"'), gzipSync(':1}')])] },
    read({ a: 1 }),
  ],
  [
    'an encoding in capitals',
    { headers: packed('GZIP'), body: [gzipSync(object)] },
    read({ a: 1 }),
  ],
  ['the encoding x-gzip', { headers: packed('x-gzip'), body: [gzipSync(object)] }, read({ a: 1 })],
  [
    'an encoding that changes nothing',
    { headers: packed('Identity'), body: [object] },
    read({ a: 1 }),
  ],
  ['an unknown encoding', { headers: packed('pony'), body: [object] }, refused(415)],
  ['two encodings', { headers: packed('gzip, br'), body: [gzipSync(object)] }, refused(415)],
  ['no content type', { body: [object] }, read({ a: 1 })],
  [
    'the content type of a file',
    { headers: ['Content-Type: application/octet-stream'], body: [object] },
    read({ a: 1 }),
  ],
  [
    'a file of 50 MB',
    {
      headers: ['Content-Type: multipart/form-data; boundary=x'],
      body: Array(50).fill('x'.repeat(mb)),
    },
    refused(413),
  ],
  [
    'JSON with the content type of a form',
    { headers: ['Content-Type: application/x-www-form-urlencoded'], body: [object] },
    read({ a: 1 }),
  ],
  [
    'a form',
    { headers: ['Content-Type: application/x-www-form-urlencoded'], body: ['a=%7B&b=2'] },
    read({ a: '{', b: '2' }),
  ],
  [
    'a scalar, forwarded',
    { path: '/forwarded', body: ['1'] },
    { status: 200, body: { text: '1' } },
  ],
  ['a scalar', { body: ['1'] }, malformed],
  ['a byte order mark', { body: [`\ufeff${object}`] }, read({ a: 1 })],
  [
    'an unknown charset',
    { headers: ['Content-Type: application/json; charset=pony'], body: [object] },
    read({ a: 1 }),
  ],
  ['UTF-16', { body: [Buffer.from(`\ufeff${object}`, 'utf16le')] }, malformed],
  [
    'a character cut in two',
    { body: [Buffer.from('{"a":"é"}').subarray(0, 7), Buffer.from('{"a":"é"}').subarray(7)] },
    read({ a: 'é' }),
  ],
  [
    'two content types',
    {
      headers: ['Content-Type: application/json', 'Content-Type: multipart/form-data'],
      body: [object],
    },
    read({ a: 1 }),
  ],
  ['an empty body', { headers: ['Content-Length: 0'] }, read({})],
  ['no body', {}, read({})],
  ['a body one byte below the limit', { body: [json(mb - 1)] }, { status: 200 }],
  ['a body at the limit', { body: [json(mb)] }, refused(413)],
])('%s', async (_, sent, { status, body = {} }) => {
  charged.peak = 0;
  const request = open(sent);
  expect(await request.answer()).toMatchObject({ status, body });
  request.end();
  await isIdle();
  expect(charged.peak).toBeLessThan(sent.path === '/largest' ? 60 * mb : 1.3 * mb);
});

test('a member __proto__ is an ordinary member', async () => {
  const request = open({ body: ['{"__proto__":{"a":1},"b":2}'] });
  expect((await request.answer()).body).toMatchObject({ members: ['__proto__', 'b'] });
  request.end();
  await isIdle();
});

test.each([
  ['a plain body', { headers: ['Content-Length: 1000'], body: ['{"a":"'] }],
  ['chunks', { body: ['{"a":"'], isEnded: false }],
  [
    'a gzip body',
    { headers: packed('gzip'), body: [gzipSync(json(kb)).subarray(0, 20)], isEnded: false },
  ],
  [
    'a brotli body',
    { headers: packed('br'), body: [brotli(Buffer.from(json(kb))).subarray(0, 9)], isEnded: false },
  ],
] satisfies [string, Sent][])(
  'a client that disconnects within %s ends its request',
  async (_, sent) => {
    const request = open(sent);
    await expect.poll(() => parsed).toBe(1);
    request.end();
    await isIdle();
  },
);

/** Waits until no body is being read and no memory is reserved. Checks that the server answers. */
async function isIdle(): Promise<void> {
  await expect.poll(() => parsed).toBe(0);
  await expect.poll(() => charged.now).toBe(0);
  const reply = await fetch(`${url}/large`, { method: 'POST', body: '{"still":"there"}' });
  expect(await reply.json()).toMatchObject({ value: { still: 'there' } });
}
