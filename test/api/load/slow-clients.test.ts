import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

/**
 * Tests slow, silent and invalid clients: their resources are freed, and no other client is
 * delayed.
 */
let database: TestDatabase;
let api: TestApi;
const opened: Socket[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({
    databaseUrl: database.url,
    serverLimits: { headersMs: 1000, checkEveryMs: 100, lingerMs: 100, maxPipelined: 16 },
    channelLimits: { loginWithinMs: 300, tickEveryMs: 100 },
  });
});
afterAll(async () => {
  for (const socket of opened) socket.destroy();
  await api.close();
  await database.drop();
});

interface Client {
  socket: Socket;
  received: () => string;
  hasEnded: () => boolean;
  /** Resolves when the server has closed the connection. */
  closed: Promise<void>;
}

/** Opens a raw connection. It reads and never closes by itself. */
async function open(head = '', at = api): Promise<Client> {
  const socket = connect({
    port: Number(new URL(at.url).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  });
  opened.push(socket);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.on('error', () => undefined);
  let hasEnded = false;
  const closed = new Promise<void>((resolve) => {
    const end = () => {
      hasEnded = true;
      resolve();
    };
    socket.once('end', end).once('close', end);
  });
  await once(socket, 'connect');
  if (head !== '') socket.write(head);
  return { socket, received: () => received, hasEnded: () => hasEnded, closed };
}

const isWell = async () => expect((await api.request('GET', '/healthz')).status).toBe(200);

describe('connections', () => {
  test('that send their headers byte by byte are closed with 408', async () => {
    const client = await open('GET /healthz HTTP/1.1\r\nHost: x\r\n');
    const drip = setInterval(
      () => client.socket.writable && client.socket.write('X-More: x\r\n'),
      50,
    );
    await client.closed;
    clearInterval(drip);
    expect(client.received()).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":408/);
  });

  test('that never finish the upgrade of a device are closed too', async () => {
    const client = await open(
      'GET /1.1/channel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n',
    );
    await client.closed;
    expect(client.received()).toMatch(/^HTTP\/1\.1 408 /);
  });

  test('that upgrade and do not log in are closed, without a client close frame', async () => {
    const client = await open(
      `GET /1.1/channel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'a'.repeat(22)}==\r\n\r\n`,
    );
    await client.closed;
    expect(client.received()).toMatch(/^HTTP\/1\.1 101 /);
  });

  test('5,000 silent ones take bounded memory, delay no other client, and are closed', {
    timeout: 60_000,
  }, async () => {
    const before = process.memoryUsage().rss;
    const idle: Client[] = [];
    for (let i = 0; i < 50; i += 1)
      idle.push(...(await Promise.all(Array.from({ length: 100 }, () => open()))));
    await isWell();
    // Both ends of each connection are in this process.
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 * 1024);
    await Promise.all(idle.map(({ closed }) => closed));
    await isWell();
  });

  test('above the limit of a process are closed; closed ones no longer count', async () => {
    const small = await startTestApi({
      databaseUrl: database.url,
      serverLimits: { maxConnections: 20 },
    });
    const clients = await Promise.all(Array.from({ length: 30 }, () => open('', small)));
    await expect.poll(() => clients.filter(({ hasEnded }) => hasEnded()).length).toBe(10);
    for (const { socket } of clients) socket.destroy();
    await expect.poll(async () => (await small.request('GET', '/healthz')).status).toBe(200);
    await small.close();
  });
});

describe('invalid input', () => {
  test.each([
    ['nonsense', '\x00\x01\x02 garbage\r\n\r\n'],
    [
      'a request followed by garbage',
      'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03\x01 garbage\r\n\r\n'.repeat(3),
    ],
    ['another version', 'GET / HTTP/9.9\r\n\r\n'],
    [
      'two lengths',
      'POST /1.1/push HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    ],
    [
      'Content-Length and chunks',
      'POST /1.1/push HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
  ])('returns 400, and the connection ends: %s', async (_what, text) => {
    const client = await open(text);
    await client.closed;
    expect(client.received()).toMatch(/HTTP\/1\.1 400 [\s\S]*"code":400/);
    await isWell();
  });

  test.each([
    ['headers beyond 16 KB', '/healthz', 20_000],
    ['many headers beyond 16 KB', '/healthz', '1\r\nX: '.repeat(3000)],
    ['a URL beyond 208 KB', `/healthz?x=${'x'.repeat(230_000)}`, 1],
  ])('%s are 431', async (_, path, header) => {
    const value = typeof header === 'number' ? 'x'.repeat(header) : header;
    const client = await open(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Long: ${value}\r\n\r\n`);
    await client.closed;
    expect(client.received()).toMatch(/^HTTP\/1\.1 431 [\s\S]*"code":431/);
    await isWell();
  });

  test('unfinished heads take at most 32 MB together: the largest are closed first', async () => {
    const patient = await startTestApi({
      databaseUrl: database.url,
      serverLimits: { maxUnfinishedBytes: 1_000_000, checkEveryMs: 50 },
    });
    const begin = (bytes: number) => open(`GET /healthz?${'x'.repeat(bytes)}`, patient);
    const small = await Promise.all(Array.from({ length: 10 }, () => begin(1000)));
    const large = await Promise.all(Array.from({ length: 20 }, () => begin(100_000)));
    await expect.poll(() => large.filter(({ hasEnded }) => hasEnded()).length).toBe(11);
    expect(small.filter(({ hasEnded }) => hasEnded())).toEqual([]);
    for (const { socket } of small) socket.write(' HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect
      .poll(() => small.filter(({ received }) => received().includes('200 OK')).length)
      .toBe(10);
    await patient.close();
  });

  test('bodies are not counted as heads, neither of pipelined nor refused calls', async () => {
    const patient = await startTestApi({
      databaseUrl: database.url,
      serverLimits: { maxUnfinishedBytes: 200_000, checkEveryMs: 50 },
    });
    const app = await patient.createApp();
    const post = (headers: string) =>
      `POST /1.1/batch HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: 1000000\r\n\r\n`;
    const keys = `X-LC-Id: ${app.appId}\r\nX-LC-Key: ${app.appKey}\r\n`;
    const pipelined = await open(`GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n${post(keys)}`, patient);
    const refused = await open(post(''), patient);
    await expect.poll(() => pipelined.received()).toContain('200 OK');
    await expect.poll(() => refused.received()).toContain('401 Unauthorized');
    const body = `{"requests":[],"a":"${'x'.repeat(1_000_000 - 22)}"}`;
    for (const { socket } of [pipelined, refused]) socket.write(body.slice(0, 900_000));
    // Waits for several checks of all connections.
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const { socket } of [pipelined, refused]) socket.write(body.slice(900_000));
    await expect.poll(() => pipelined.received().split('200 OK').length - 1).toBe(2);
    refused.socket.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => refused.received()).toContain('200 OK');
    await patient.close();
  });

  test('pipelined requests up to the limit are answered in order', async () => {
    const request = 'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n';
    const few = await open(request.repeat(15));
    await expect.poll(() => few.received().split('HTTP/1.1 200').length - 1).toBe(15);
    const before = process.memoryUsage().rss;
    const many = await open(request.repeat(50_000));
    await many.closed;
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
    await isWell();
  });
});
