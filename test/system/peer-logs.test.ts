import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RunningApi, startApi } from '../../api/start.ts';
import { freePort } from '../../ops/local/ports.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { testConfig } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { portOf } from '../support/http2/peer.ts';

/**
 * Tests that a log line about another server contains its host and the error, while the caller gets
 * neither.
 */
let database: TestDatabase;
let api: RunningApi;
let strange: Server;
let closedPort: number;
const lines: Record<string, unknown>[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: 'info', name: 'test', destination });
  api = await startApi(testConfig(database.url), log);
  closedPort = await freePort();
  strange = createServer((_, response) => response.writeHead(500).end('<h1>SESAME</h1>'));
  await new Promise<void>((resolve) => strange.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  strange.close();
  await api.stack.close();
  await database.drop();
});

/** Token with a key that has to be fetched from the platform. */
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const identityToken = `${part({ alg: 'RS256', kid: 'k' })}.${part({ sub: 'x' })}.AAAA`;

const calls: [string, string, object, (host: string) => object][] = [
  ['a function', '/1.1/functions/f', {}, (host) => ({ functionsUrl: `http://${host}` })],
  [
    'the list of hooks',
    '/1.1/users',
    { username: 'somebody', password: 'secret' },
    (host) => ({ functionsUrl: `http://${host}` }),
  ],
  [
    'a platform',
    '/1.1/users',
    { authData: { weixin: { openid: 'o', access_token: 'SESAME' } } },
    (host) => ({ authPlatforms: { weixin: { endpoint: `http://${host}` } } }),
  ],
  [
    'the keys of a platform',
    '/1.1/users',
    { authData: { lc_apple: { uid: 'x', identity_token: identityToken } } },
    (host) => ({
      authPlatforms: { lc_apple: { audience: 'a.b', jwksUrl: `http://${host}/keys` } },
    }),
  ],
];

test.each(calls)('about %s', async (_, path, body, optionsFor) => {
  for (const [port, cause] of [
    [closedPort, /connect_failed \(ECONNREFUSED\)/],
    [portOf(strange), /status 50[02]/],
  ] as const) {
    const host = `127.0.0.1:${port}`;
    const app = await api.services.apps.create({ name: 'Logged', options: optionsFor(host) });
    lines.length = 0;
    const reply = await fetch(`http://127.0.0.1:${api.port}${path}`, {
      method: 'POST',
      headers: { 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await reply.text();
    expect([502, 503], text).toContain(reply.status);
    expect(text).not.toContain(String(port));
    const logged = JSON.stringify(lines);
    expect(logged).toContain(`${host}: `);
    expect(logged).toMatch(cause);
    expect(logged).not.toContain('SESAME');
  }
});
