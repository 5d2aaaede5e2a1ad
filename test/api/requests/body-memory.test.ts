import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { BodyLimits } from '../../../api/middleware/request-body.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';
import { metricOf, RawRequest } from '../../support/raw-request.ts';
import { startFunctionHost, type TestFunctionHost } from '../../support/servers/function-host.ts';

/**
 * Tests the limits on request bodies in memory: of all senders, of one sender, and of senders
 * without a key.
 */
const kb = 1024;
const mb = 1024 * kb;
const limits = {
  totalBytes: 12 * mb,
  senderBytes: 5 * mb,
  unauthenticatedBytes: 200 * kb,
  unauthenticatedIpBytes: 100 * kb,
} satisfies Partial<BodyLimits>;

let api: TestApi;
let host: TestFunctionHost;
let app: App;
let other: App;
let third: App;
let close: () => Promise<void>;
const sent: RawRequest[] = [];

beforeAll(async () => {
  const database = await createTestDatabase();
  // Each test uses its own IP address.
  const env = { TRUSTED_PROXIES: '1' };
  api = await startTestApi({ databaseUrl: database.url, bodyLimits: limits, env });
  host = await startFunctionHost();
  [app, other, third] = [
    await api.createApp({ functionsUrl: host.url }),
    await api.createApp(),
    await api.createApp(),
  ];
  close = async () => {
    await api.close();
    await host.close();
    await database.drop();
  };
});
afterEach(async () => {
  for (const request of sent.splice(0)) request.end();
  await expect.poll(inHand).toBe(0);
});
afterAll(() => close());

const inHand = () => metricOf(api.url, 'carillon_body_bytes');

interface From {
  address?: string;
  by?: App;
  headers?: string[];
}

function open(path: string, { address = '10.0.0.1', by, headers = [] }: From = {}): RawRequest {
  const keys = by ? [`X-LC-Id: ${by.appId}`, `X-LC-Key: ${by.appKey}`] : [];
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    `X-Forwarded-For: ${address}`,
    'Transfer-Encoding: chunked',
  ];
  const request = new RawRequest(api.url, [...head, ...keys, ...headers]);
  sent.push(request);
  return request;
}

/** Sends an unfinished body of which the api has read `bytes` bytes. */
async function hold(path: string, bytes: number, from: From = {}): Promise<RawRequest> {
  const before = await inHand();
  const request = open(path, from).chunk(randomBytes(bytes / 2).toString('hex'));
  await expect.poll(inHand).toBe(before + bytes);
  return request;
}

const page = '/1.1/resetPassword/aaaaaaaaaaaaaaaa';

test('an IP address with too many bytes and no key is refused alone', async () => {
  for (let i = 0; i < 10; i += 1) await hold(page, 10 * kb);
  const refused = open(page).chunk('x'.repeat(kb));
  expect(await refused.answer()).toMatchObject({
    status: 429,
    headers: expect.stringMatching(/retry-after: \d/i),
    body: { code: 429, error: expect.any(String) },
  });
  await hold(page, 10 * kb, { address: '10.0.0.2' });
  // Senders with a key have a separate limit.
  await hold('/1.1/batch', mb, { by: app });
});

test('an IPv6 address counts as its /64 network', async () => {
  for (let i = 0; i < 10; i += 1) await hold(page, 10 * kb, { address: `2001:db8::${i + 1}` });
  const refused = open(page, { address: '2001:db8::ffff' }).chunk('x'.repeat(kb));
  expect((await refused.answer()).status).toBe(429);
});

test('senders without a key share a limit, separate from senders with keys', async () => {
  for (let i = 0; i < 20; i += 1) await hold(page, 10 * kb, { address: `10.0.1.${i}` });
  const refused = open(page, { address: '10.0.2.1' }).chunk('x'.repeat(kb));
  expect(await refused.answer()).toMatchObject({
    status: 503,
    headers: expect.stringMatching(/retry-after: \d/i),
    body: { code: 503 },
  });
  expect((await api.request('GET', '/healthz')).status).toBe(200);
  expect((await api.request('POST', '/1.1/batch', { app, body: { requests: [] } })).status).toBe(
    200,
  );
});

test('an app is refused above its share from any IP address, then all apps are', async () => {
  await hold('/1.1/batch', 4 * mb, { by: app });
  const ofApp = open('/1.1/batch', { by: app, address: '10.0.0.9' }).chunk('x'.repeat(2 * mb));
  expect(await ofApp.answer()).toMatchObject({ status: 429, body: { code: 429 } });
  const ofAddress = open('/1.1/batch', { by: other }).chunk('x'.repeat(2 * mb));
  expect(await ofAddress.answer()).toMatchObject({ status: 429, body: { code: 429 } });
  await hold('/1.1/batch', 4 * mb, { by: other, address: '10.0.0.2' });
  const ofAll = open('/1.1/batch', { by: third, address: '10.0.0.3' }).chunk(
    'x'.repeat(5 * mb - kb),
  );
  expect(await ofAll.answer()).toMatchObject({
    status: 503,
    headers: expect.stringMatching(/retry-after/i),
  });
});

test('the values of a parsed body count in addition to its text', async () => {
  const values = (length: number) => ({ requests: [], more: Array(length).fill(1) });
  expect((await api.request('POST', '/1.1/batch', { app, body: values(40_000) })).status).toBe(200);
  expect((await api.request('POST', '/1.1/batch', { app, body: values(60_000) })).status).toBe(429);
});

describe('memory is freed', () => {
  test('if a sender disconnects', async () => {
    const request = await hold('/1.1/batch', 4 * mb, { by: app });
    request.end();
    await expect.poll(inHand).toBe(0);
    await hold('/1.1/batch', 4 * mb, { by: app });
  });

  test('when the reply is sent, even for a refusal', async () => {
    const note = 'x'.repeat(3 * mb);
    for (const body of [{ requests: [], note }, { requests: 1, note }, `{"a":"${note}"`])
      for (let i = 0; i < 3; i += 1) {
        const { status } = await api.request('POST', '/1.1/batch', { app, body });
        expect(status).toBe(typeof body === 'object' && Array.isArray(body.requests) ? 200 : 400);
      }
    expect(await inHand()).toBe(0);
  });

  test('after a function has responded, and not before', async () => {
    const answers: (() => void)[] = [];
    host.answers.set('/1.1/functions/slow', (request, response) => {
      request.resume().once('end', () => {
        answers.push(() =>
          response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"result":1}'),
        );
      });
    });
    const body = { note: 'x'.repeat(2 * mb) };
    const calls = [1, 2].map(() => api.request('POST', '/1.1/functions/slow', { app, body }));
    await expect.poll(() => answers.length).toBe(2);
    expect(await inHand()).toBeGreaterThan(4 * mb);
    expect((await api.request('POST', '/1.1/functions/slow', { app, body })).status).toBe(429);
    for (const answer of answers) answer();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200]);
    expect(await inHand()).toBe(0);
  });
});

describe('bodies of 20 KB that decompress to 20 MB', () => {
  const bomb = gzipSync(Buffer.alloc(20 * mb, '['));
  /** Sends a body without an end. It stays in memory until the api drops it. */
  const send = (path: string, from: From) =>
    open(path, { ...from, headers: ['Content-Encoding: gzip', ...(from.headers ?? [])] }).chunk(
      bomb,
    );

  test('are not decompressed without a key', async () => {
    const requests = Array.from({ length: 40 }, (_, i) => [
      send(page, { headers: ['Content-Type: application/x-www-form-urlencoded'] }),
      send('/1.1/users', { headers: ['Content-Type: text/plain'], address: `10.1.0.${i}` }),
    ]).flat();
    const statuses = await Promise.all(
      requests.map(async (request) => (await request.answer()).status),
    );
    expect(new Set(statuses)).toEqual(new Set([415]));
    expect(await inHand()).toBe(0);
    expect((await api.request('GET', '/healthz')).status).toBe(200);
  });

  test('with a key are cut off at the limit of the route or of the sender', async () => {
    const small = Array.from({ length: 60 }, () => send('/1.1/login', { by: app }));
    const large = Array.from({ length: 20 }, () =>
      send('/1.1/batch', { by: other, address: '10.0.0.2' }),
    );
    let highest = 0;
    const watch = setInterval(async () => {
      highest = Math.max(highest, await inHand());
    }, 5);
    const statusOf = async (request: RawRequest) => (await request.answer()).status;
    for (const status of await Promise.all(small.map(statusOf)))
      expect([413, 429]).toContain(status);
    for (const status of await Promise.all(large.map(statusOf)))
      expect([413, 429]).toContain(status);
    clearInterval(watch);
    expect(highest).toBeLessThanOrEqual(limits.totalBytes);
    expect(await inHand()).toBe(0);
    expect((await api.request('GET', '/healthz')).status).toBe(200);
  });
});

test('after a refusal the connection serves the next call after the body', async () => {
  const text = 'x'.repeat(17 * kb);
  const request = new RawRequest(api.url, [
    'POST /1.1/login HTTP/1.1',
    'Host: x',
    `X-LC-Id: ${app.appId}`,
    `X-LC-Key: ${app.appKey}`,
    `Content-Length: ${text.length}`,
  ]);
  sent.push(request);
  expect((await request.answer()).status).toBe(413);
  request.socket.write(`${text}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`);
  const [reply] = await once(request.socket, 'data');
  expect(String(reply)).toMatch(/^HTTP\/1\.1 200 /);
});
