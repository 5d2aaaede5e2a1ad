import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../../ops/local/ports.ts';
import { startTestApi, type TestApi, testConfig } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { loopbackIdentity } from '../support/gateways/identity.ts';
import { isProxyInstalled, startCaddy } from '../support/http2/reverse-proxy.ts';

let database: TestDatabase;
let api: TestApi;
let port: number;
let ca: string;
const ends: (() => Promise<void>)[] = [];

/** Sends a request unchanged to Caddy: the path is not normalized. */
function ask(method: string, path: string, headers: Record<string, string> = {}, body = '') {
  return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const sent = request(
      { hostname: '127.0.0.1', port, method, path, headers, ca },
      async (response) => resolve({ status: response.statusCode, text: await text(response) }),
    );
    sent.once('error', reject);
    sent.end(body);
  });
}

describe.skipIf(!isProxyInstalled('caddy'))('behind Caddy', () => {
  beforeAll(async () => {
    database = await createTestDatabase();
    port = await freePort();
    ca = (await loopbackIdentity()).authority.certificate;
    const env = { PUBLIC_URL: `https://127.0.0.1:${port}`, TRUSTED_PROXIES: '1' };
    api = await startTestApi({ databaseUrl: database.url, env });
    const file = await readFile(
      new URL('../../ops/deploy/proxy/Caddyfile', import.meta.url),
      'utf8',
    );
    const names = {
      '127.0.0.1:8080': new URL(api.url).host,
      // The test calls from outside the allowed network.
      'remote_ip 127.0.0.1': 'remote_ip 192.0.2.1',
      ' ::1': '',
    };
    await startCaddy(file, { port, names, onEnd: (end) => ends.push(end) });
  });
  afterAll(async () => {
    for (const end of ends) await end();
    await api?.close();
    await database?.drop();
  });

  test('a query with the longest condition reaches the api', async () => {
    const app = await api.createApp({ allowInstallationQuery: true });
    const headers = { 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey };
    const where = encodeURIComponent(JSON.stringify({ city: '"'.repeat(32_000) }));
    expect(where.length).toBeGreaterThan(180_000);
    expect(await ask('GET', `/1.1/installations?where=${where}`, headers)).toMatchObject({
      status: 200,
    });
  });

  test('calls reach the api, which refuses a large body itself', async () => {
    const app = await api.createApp();
    const headers = {
      'X-LC-Id': app.appId,
      'X-LC-Key': app.appKey,
      'Content-Type': 'application/json',
    };
    const saved = JSON.stringify({ deviceType: 'android', installationId: 'behind-caddy' });
    expect(await ask('POST', '/1.1/installations', headers, saved)).toMatchObject({ status: 201 });
    const large = await ask('POST', '/1.1/functions/f', headers, 'x'.repeat(21_000_000));
    expect({ status: large.status, code: JSON.parse(large.text).code }).toEqual({
      status: 413,
      code: 413,
    });
  });

  test('a WebSocket of a device is opened', async () => {
    const socket = new WebSocket(`wss://127.0.0.1:${port}/1.1/channel`, 'lc.protobuf2.3', { ca });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    expect(socket.protocol).toBe('lc.protobuf2.3');
    socket.terminate();
  });

  test.each([
    '/metrics',
    '/METRICS',
    '/%6detrics',
    '//metrics',
    '/1.1/users/../../metrics',
    '/console/api/apps',
    '/console',
    '/readyz',
    '/healthz',
  ])('denies %s from outside', async (path) => {
    const Authorization = `Bearer ${testConfig(database.url).adminToken}`;
    expect(await ask('GET', path, { Authorization })).toMatchObject({ status: 403 });
  });

  test.each([
    '/1.1/..%2fmetrics',
    '/1.1/%2e%2e/metrics',
    '/1.1/..%5cmetrics',
    '/1.1/..\\metrics',
    '/1.1/..%252fmetrics',
    '/1.1/..%252f..%252fconsole/api/apps',
    '/metrics/',
    '/metrics%2f',
    '/metrics;a',
    '/./metrics',
    '/%2e/console/api/apps',
  ])('shows nothing to callers from outside by %s', async (path) => {
    const Authorization = `Bearer ${testConfig(database.url).adminToken}`;
    const { status, text: body } = await ask('GET', path, { Authorization });
    expect([400, 403, 404]).toContain(status);
    expect(body).not.toMatch(/carillon_|"results"/);
  });
});
