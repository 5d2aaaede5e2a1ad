import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type SandboxGateway, startGateway } from '../../../ops/sandbox/http/server.ts';
import { systemClock } from '../../../shared/clock.ts';
import {
  createHttpClient,
  defaultHttpTiming,
  formPost,
  type HttpClient,
  jsonPost,
} from '../../../shared/http/client.ts';
import { alerts, startRefusingPeer } from '../../support/http2/refusing-peer.ts';

let gateway: SandboxGateway;
const clients: HttpClient[] = [];

beforeAll(async () => {
  gateway = await startGateway({}, () => ({
    targetsOf: () => ({ tokens: ['t'] }),
    handle: ({ method, path, headers, body }) =>
      path.endsWith('/large')
        ? { status: 200, body: 'x'.repeat(2_000_000) }
        : {
            status: path.endsWith('/moved') ? 302 : 200,
            headers: { location: '/elsewhere', 'retry-after': '7' },
            body: { method, path, type: headers['content-type'], body: body.toString() },
          },
  }));
});
beforeEach(() => {
  gateway.behave();
  gateway.forget();
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await gateway.close();
});

function open(
  more: {
    baseUrl?: string;
    ca?: string | undefined;
    requestMs?: number;
    connections?: number;
  } = {},
) {
  const { baseUrl = gateway.url, ca = gateway.ca, requestMs = 5000, connections = 2 } = more;
  const timing = { ...defaultHttpTiming, requestMs, drainMs: 200 };
  const client = createHttpClient({ baseUrl, ca, connections, timing, clock: systemClock });
  clients.push(client);
  return client;
}

describe('an HTTP client', () => {
  test('posts JSON and forms below its base URL, and reuses its connection', async () => {
    const client = open({ baseUrl: `${gateway.url}/relay/`, connections: 1 });
    const json = await client.request(jsonPost('/v1/send?x=1', { a: 'ä' }));
    const form = await client.request(
      formPost('/v1/form', { a: 'b c', n: 5, left: undefined, plus: '+/=' }),
    );
    expect(json).toMatchObject({ kind: 'response', status: 200, retryAfterMs: 7000 });
    expect(json.kind === 'response' && JSON.parse(json.body)).toEqual({
      method: 'POST',
      path: '/relay/v1/send',
      type: 'application/json; charset=UTF-8',
      body: '{"a":"ä"}',
    });
    expect(form.kind === 'response' && JSON.parse(form.body).body).toBe('a=b+c&n=5&plus=%2B%2F%3D');
    expect(gateway.connections).toBe(1);
  });

  test('returns a redirect unchanged', async () => {
    const reply = await open().request({ method: 'GET', path: '/moved' });
    expect(reply).toMatchObject({
      kind: 'response',
      status: 302,
      headers: { location: '/elsewhere' },
    });
  });

  test.each([
    ['hang', 'timeout'],
    ['disconnect', 'connection_lost'],
    ['reset', 'connection_lost'],
  ] as const)('reports an unknown outcome if the gateway does %s', async (kind, reason) => {
    gateway.misbehave({ kind });
    const reply = await open({ requestMs: kind === 'hang' ? 1500 : 15_000 }).request(
      jsonPost('/', {}),
    );
    expect(reply).toMatchObject({ kind: 'unknown', reason });
    expect(gateway.total).toBe(1);
  });

  test('reads at most a megabyte of a response', async () => {
    const reply = await open().request({ method: 'GET', path: '/large' });
    expect(reply).toMatchObject({ kind: 'unknown', reason: 'reply_too_large' });
  });

  test('reports not_sent if the connection is refused', async () => {
    const reply = await open({ baseUrl: 'https://127.0.0.1:9' }).request(jsonPost('/', {}));
    expect(reply).toMatchObject({
      kind: 'not_sent',
      reason: 'connect_failed',
      cause: 'ECONNREFUSED',
    });
  });

  test('reports not_sent for an untrusted server', async () => {
    const reply = await createHttpClient({ baseUrl: gateway.url, clock: systemClock }).request(
      jsonPost('/', {}),
    );
    expect(reply).toMatchObject({
      kind: 'not_sent',
      reason: 'certificate_refused',
      cause: expect.stringMatching(/^(UNABLE_TO|SELF_SIGNED)/),
    });
    expect(gateway.total).toBe(0);
  });

  test.each(Object.entries(alerts))(
    'does not call the server untrusted for the alert %s',
    async (_, alert) => {
      const peer = await startRefusingPeer(alert);
      const reply = await open({ baseUrl: peer.url }).request(jsonPost('/', {}));
      expect(reply).toMatchObject({
        kind: 'not_sent',
        reason: 'connect_failed',
        cause: expect.stringContaining('ALERT'),
      });
      await peer.close();
    },
  );

  test('reports not_sent for a server that does not finish its handshake', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const reply = await open({ baseUrl: `https://127.0.0.1:${port}`, requestMs: 300 }).request(
      jsonPost('/', {}),
    );
    expect(reply).toMatchObject({ kind: 'not_sent', reason: 'queue_timeout' });
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test('cancels unsent requests, and finishes sent requests', async () => {
    gateway.misbehave({ kind: 'slow', delayMs: 200, count: 1 });
    const client = open({ connections: 1 });
    const stop = new AbortController();
    const first = client.request({ ...jsonPost('/', {}), signal: stop.signal });
    await gateway.waitFor(1);
    const second = client.request({ ...jsonPost('/', {}), signal: stop.signal });
    stop.abort();
    expect(await second).toMatchObject({ kind: 'not_sent', reason: 'aborted' });
    expect(await first).toMatchObject({ kind: 'response', status: 200 });
    expect(await client.request({ ...jsonPost('/', {}), signal: stop.signal })).toMatchObject({
      reason: 'aborted',
    });
    expect(gateway.total).toBe(1);
  });

  test('sends no malformed requests', async () => {
    for (const path of ['no-slash', '/line\r\nbreak', '/blank here', '/ü'])
      expect(await open().request({ method: 'GET', path })).toMatchObject({
        kind: 'not_sent',
        reason: 'bad_request',
      });
    const headers = { authorization: 'secret\r\nx: y' };
    const reply = await open().request({ method: 'GET', path: '/', headers });
    expect(reply).toMatchObject({ kind: 'not_sent', reason: 'bad_request' });
    expect(JSON.stringify(reply)).not.toContain('secret');
    expect(gateway.total).toBe(0);
  });

  test('finishes requests in flight after it is closed, and sends no more', async () => {
    gateway.misbehave({ kind: 'hang' });
    const client = open();
    const pending = client.request(jsonPost('/', {}));
    await gateway.waitFor(1);
    await client.close();
    await client.close();
    expect(await pending).toMatchObject({ kind: 'unknown', reason: 'connection_lost' });
    expect(await client.request(jsonPost('/', {}))).toMatchObject({
      kind: 'not_sent',
      reason: 'closed',
    });
  });
});
