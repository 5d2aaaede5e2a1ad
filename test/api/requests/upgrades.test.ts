import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Route } from '../../../api/route.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName } from '../../support/users.ts';

/** Tests that an offered but unwanted upgrade is ignored (RFC 9110, section 7.8). */
const api = useTestApi();
let app: App;
let routes: Route[];

beforeAll(async () => {
  routes = await loadRoutes();
  app = await api.createApp();
});

const keys = () => ({
  'X-LC-Id': app.appId,
  'X-LC-Key': app.appKey,
  'Content-Type': 'application/json',
});
const h2c = {
  Connection: 'Upgrade, HTTP2-Settings',
  Upgrade: 'h2c',
  'HTTP2-Settings': 'AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA',
};

/** Upgrade offers of clients, and offers that no client makes. */
const offers: [name: string, headers: Record<string, string>][] = [
  ['h2c, as HttpClient of Java and curl offer it', h2c],
  ['h2c in capitals', { ...h2c, Upgrade: 'H2C' }],
  ['several protocols', { ...h2c, Upgrade: 'h2c, TLS/1.2, IRC/6.9' }],
  ['a WebSocket', { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' }],
  ['TLS', { Connection: 'keep-alive, Upgrade', Upgrade: 'TLS/1.0, HTTP/1.1' }],
  ['an empty offer', { Connection: 'Upgrade', Upgrade: '' }],
];

/** Sends a request over a new socket. An upgrade is an error. */
function send(method: string, path: string, headers: Record<string, string>, body = '{}') {
  const isRead = method === 'GET';
  const length = isRead ? {} : { 'Content-Length': Buffer.byteLength(body) };
  return new Promise<{ status: number | undefined; code: unknown }>((resolve, reject) => {
    const sent = request(api.url + path, { method, headers: { ...keys(), ...headers, ...length } });
    sent.once('upgrade', () => reject(new Error(`${method} ${path} was upgraded`)));
    sent.once('error', reject);
    sent.once('response', async (response) => {
      const reply = await text(response);
      const isJson = response.headers['content-type']?.startsWith('application/json');
      resolve({ status: response.statusCode, code: isJson ? JSON.parse(reply).code : undefined });
    });
    sent.end(isRead ? undefined : body);
  });
}

const pathOf = (path: string) => path.replace(/:appId/, app.appId).replace(/:\w+/g, 'nobody');

describe('an offered upgrade that is not wanted', () => {
  test.each(offers)('changes no reply of any route: %s', async (_, headers) => {
    for (const { method, paths } of routes)
      for (const path of paths.map(pathOf)) {
        const plain = await send(method, path, {});
        const offered = await send(method, path, headers);
        expect(offered, `${method} ${path}`).toEqual(plain);
      }
  });

  test('is ignored with a body, and the connection stays open', async () => {
    const body = JSON.stringify({ username: newName(), password: 'a password' });
    const head = [
      'POST /1.1/users HTTP/1.1',
      'Host: x',
      ...Object.entries({ ...keys(), ...h2c }).map(([name, value]) => `${name}: ${value}`),
      `Content-Length: ${body.length}`,
    ];
    const raw = new RawRequest(api.url, head);
    raw.socket.write(body);
    const first = await raw.answer();
    expect([first.status, first.headers]).toEqual([201, expect.not.stringMatching(/^Upgrade:/im)]);
    raw.socket.write(
      'GET /1.1/date HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n',
    );
    expect((await raw.answer()).status).toBe(200);
    raw.end();
  });

  test('is ignored on the path of the channel, which accepts only a WebSocket', async () => {
    const plain = await send('GET', '/1.1/channel', {});
    expect(plain.status).toBe(404);
    for (const [name, headers] of offers)
      if (headers.Upgrade !== 'websocket')
        expect(await send('GET', '/1.1/channel', headers), name).toEqual(plain);
    // An incomplete handshake is refused as a handshake.
    const incomplete = await send('GET', '/1.1/channel', {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
    });
    expect(incomplete.status).toBe(400);
    const posted = await send('POST', '/1.1/channel', {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
    });
    expect(posted).toEqual(await send('POST', '/1.1/channel', {}));
  });

  test.skipIf(!existsSync('/usr/bin/curl'))('is what curl --http2 sends', async () => {
    const headers = Object.entries(keys()).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const curl = async (...options: string[]) => {
      const shared = ['--http2', '-s', '-m', '10', ...headers];
      return JSON.parse((await promisify(execFile)('curl', [...shared, ...options])).stdout);
    };
    expect(await curl(`${api.url}/1.1/date`)).toMatchObject({ __type: 'Date' });
    const body = JSON.stringify({ username: newName(), password: 'a password' });
    expect(await curl('-d', body, `${api.url}/1.1/users`)).toMatchObject({
      sessionToken: expect.any(String),
    });
  });
});
