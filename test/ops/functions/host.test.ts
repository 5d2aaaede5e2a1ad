import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FunctionHost } from '../../../ops/functions/host.ts';
import { freePort } from '../../../ops/local/ports.ts';
import { Supervised } from '../../../ops/local/supervised.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';
import { newName, refusalOf, refused, signUp } from '../../support/users.ts';

/**
 * Tests the embedded function host with an api: the effects of bad functions, and the abilities of
 * good functions.
 */
const token = 'a token of both of them';
const example = fileURLToPath(new URL('../../../ops/functions-example', import.meta.url));

const files: Record<string, string> = {
  'echo.js': 'export default (params) => params;',
  'next.js': 'export default ({ id }) => id + 1n;',
  'loops.js': 'export default () => { for (;;); };',
  'hangs.js': 'export default (p) => p.quick ? 1 : new Promise(() => undefined);',
  'eats.js':
    'export default () => { const all = []; for (;;) all.push(new Array(1e6).fill(1.5)); };',
  'buffers.js':
    'export default async () => { const all = Buffer.alloc(8e7, 1); await new Promise(() => undefined); return all; };',
  'leaves.js': 'export default () => process.exit(0);',
  'throws.js': "export default () => { throw new Error('a secret of ours'); };",
  'later.js':
    "export default () => { setTimeout(() => { throw new Error('later'); }); return new Promise(() => undefined); };",
  'refuses.js':
    "export default () => { throw Object.assign(new Error('not you'), { code: 4711, status: 403 }); };",
  'broken.js': 'export default (',
  'nothing.js': 'export const a = 1;',
  'circle.js': 'export default () => { const a = {}; a.a = a; return a; };',
  'env.js':
    'export default () => Object.keys(process.env).filter((n) => /CARILLON|DATABASE/.test(n));',
  'dated.js':
    'export default ({ at }) => ({ isDate: at instanceof Date, next: new Date(at.getTime() + 1000) });',
  'prints.js': `const print = (text) => new Promise((resolve) => process.stdout.write(text, resolve));
    export default async ({ megabytes }) => {
      await print('first\\r\\nsecond ü\\n\\n');
      for (let i = 0; i < megabytes; i += 1) await print('x'.repeat(1_000_000));
      await print('\\nlast\\n');
    };`,
  'version.js': 'export default () => 1;',
  '_help.js': 'export default () => 1;',
  'who.js':
    'export default async (_, c) => ({ ...c, api: 0, user: (await c.user())?.objectId ?? null });',
};

let dir: string;
/** Log lines of the host. */
const logged: string[] = [];
let api: TestApi;
let app: App;
let host: FunctionHost;
let hostUrl: string;
let close: () => Promise<void>;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'carillon-functions-'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  const database = await createTestDatabase();
  const [port, apiPort] = await Promise.all([freePort(), freePort()]);
  hostUrl = `http://127.0.0.1:${port}`;
  const apiUrl = `http://127.0.0.1:${apiPort}`;
  host = new FunctionHost({
    dir,
    port: port ?? 0,
    token,
    apiUrl,
    log: (line) => void logged.push(line),
    limits: { memoryMb: 48 },
    timeoutMs: 6000,
  });
  await host.start();
  const env = {
    PORT: String(apiPort),
    CARILLON_FUNCTIONS_URL: hostUrl,
    CARILLON_FUNCTIONS_TOKEN: token,
  };
  api = await startTestApi({ databaseUrl: database.url, env });
  app = await api.createApp();
  close = async () => {
    await api.close();
    await host.close();
    await database.drop();
    await rm(dir, { recursive: true });
  };
});
afterAll(() => close());

const call = (name: string, body: unknown = {}, more: Parameters<TestApi['request']>[2] = {}) =>
  api.request('POST', `/1.1/functions/${name}`, { app, body, ...more });

describe('a bad function', () => {
  test('is answered with a refusal, and affects no other call', async () => {
    expect((await call('echo')).status).toBe(200);
    const good = async () => {
      for (let i = 0; i < 20; i += 1)
        expect((await call('echo', { i })).body).toEqual({ result: { i } });
    };
    const [, ...bad] = await Promise.all([
      good(),
      call('loops'),
      call('hangs'),
      call('leaves'),
      call('later'),
      call('circle'),
      call('broken'),
      call('nothing'),
    ]);
    expect(bad.map((reply) => refusalOf(reply))).toEqual([
      refused(124, 503),
      refused(124, 503),
      ...Array(5).fill(refused(1, 500)),
    ]);
    // The next call gets a new process.
    expect((await call('hangs', { quick: true })).body).toEqual({ result: 1 });
    expect(refusalOf(await call('leaves'))).toEqual(refused(1, 500));
  });

  test.each(['eats', 'buffers'])(
    'that uses too much memory ends without affecting others: %s',
    async (name) => {
      const reply = await call(name);
      expect(refusalOf(reply)).toEqual(refused(1, 500));
      expect(reply.body.error).toContain('memory');
      expect((await call('echo')).status).toBe(200);
    },
  );

  test('has its output logged by lines of at most 64 KB', async () => {
    const usedBefore = process.memoryUsage().rss;
    expect((await call('prints', { megabytes: 300 })).status).toBe(200);
    await expect
      .poll(() => logged.some((line) => line.endsWith('prints.js: last')), { timeout: 30_000 })
      .toBe(true);
    expect(process.memoryUsage().rss - usedBefore).toBeLessThan(100_000_000);
    const printed = logged.filter((line) => line.startsWith('prints.js: '));
    expect(printed.map((line) => line.length)).toEqual([16, 19, 11, expect.any(Number), 15]);
    expect(printed[3]).toMatch(/^prints\.js: x{65536} … \(300000000 bytes\)$/);
  });

  test('has unexpected errors logged, and intended errors returned', async () => {
    const defect = await call('throws');
    expect(refusalOf(defect)).toEqual(refused(1, 500));
    expect(JSON.stringify(defect.body)).not.toContain('secret');
    await expect.poll(() => logged.join('\n')).toContain('throws.js: Error: a secret of ours');
    expect(await call('refuses')).toMatchObject({
      status: 403,
      body: { code: 4711, error: 'not you' },
    });
  });
});

describe('the callers', () => {
  test('include only the api: the host refuses calls without its token', async () => {
    const callEcho = (headers: Record<string, string>) =>
      fetch(`${hostUrl}/1.1/functions/echo`, { method: 'POST', headers, body: '{}' });
    expect((await callEcho({})).status).toBe(401);
    expect((await callEcho({ 'X-Carillon-Functions-Token': 'guessed' })).status).toBe(401);
    expect((await callEcho({ 'X-Carillon-Functions-Token': token })).status).toBe(200);
  });

  test.each(['_help', 'constructor', 'hooks', 'echo.js', '__before_save_for__User', 'missing'])(
    'cannot use the name %s',
    async (name) => {
      expect((await call(name, {}, { master: true })).status).toBe(404);
    },
  );

  test('cannot send a body that is not JSON', async () => {
    expect(refusalOf(await call('echo', '{'))).toEqual(refused(107));
  });
});

describe('a good function', () => {
  test('knows its caller, and sees none of our secrets', async () => {
    const user = await signUp(api, app);
    const reply = await user.request('POST', '/1.1/functions/who', {});
    expect(reply.body.result).toMatchObject({
      appId: app.appId,
      user: user.id,
      isMaster: false,
      stage: 'production',
      remoteAddress: '127.0.0.1',
    });
    expect(JSON.stringify(reply.body)).not.toContain(app.masterKey);
  });

  test('gets Date objects under /call, and unchanged JSON under /functions', async () => {
    const body = { at: { __type: 'Date', iso: '2026-01-01T00:00:00.000Z' } };
    const typed = await api.request('POST', '/1.1/call/dated', { app, body });
    const next = { __type: 'Date', iso: '2026-01-01T00:00:01.000Z' };
    expect(typed.body).toEqual({ result: { isDate: true, next } });
    expect((await call('echo', body)).body.result).toEqual(body);
  });

  test("gets and returns integers beyond a double's precision as bigint", async () => {
    const body = { id: 7091800003790954036n, ids: [7091800003790954037n] };
    expect((await call('echo', body)).body.result).toEqual(body);
    expect((await api.request('POST', '/1.1/call/echo', { app, body })).body.result).toEqual(body);
    expect((await call('next', body)).body.result).toBe(7091800003790954037n);
  });

  test('that is changed takes effect with the next call', async () => {
    expect((await call('version')).body.result).toBe(1);
    await writeFile(join(dir, 'version.js'), 'export default () => 2;');
    await expect.poll(async () => (await call('version')).body.result).toBe(2);
  });
});

test('in the example folder works as described, and restarts when killed', async () => {
  const port = await freePort();
  const functionsUrl = `http://127.0.0.1:${port}`;
  const database = await createTestDatabase();
  const apiPort = await freePort();
  const functions = new Supervised({
    name: 'functions',
    file: 'ops/functions/main.ts',
    env: {
      PATH: process.env.PATH,
      CARILLON_FUNCTIONS_DIR: example,
      CARILLON_FUNCTIONS_PORT: String(port),
      CARILLON_FUNCTIONS_TOKEN: token,
      CARILLON_API_URL: `http://127.0.0.1:${apiPort}`,
      LOG_LEVEL: 'silent',
    },
    log: () => undefined,
  });
  await functions.start();
  const env = {
    PORT: String(apiPort),
    CARILLON_FUNCTIONS_URL: functionsUrl,
    CARILLON_FUNCTIONS_TOKEN: token,
  };
  const own = await startTestApi({ databaseUrl: database.url, env });
  const ownApp = await own.createApp();
  const ask = (name: string, master = false, body: object = {}) =>
    own.request('POST', `/1.1/functions/${name}`, { app: ownApp, master, body });
  expect((await ask('hello', false, { name: 'you' })).body).toEqual({ result: 'Hello you' });
  expect(refusalOf(await ask('tidy-up'))).toEqual(refused(401, 401));
  expect((await ask('tidy-up', true)).body).toEqual({ result: { installations: 0 } });
  expect(refusalOf(await ask('remind-me', false, { text: 'a' }))).toEqual(refused(206, 403));
  const user = await signUp(own, ownApp);
  expect(user.body.displayName).toBe(user.body.username);
  const admin = { username: `admin-${newName()}`, password: 'a password' };
  const reserved = await own.request('POST', '/1.1/users', { app: ownApp, body: admin });
  expect(reserved.body).toMatchObject({ code: 142 });
  expect(reserved.body.error).toContain('reserved');

  process.kill(functions.pid ?? 0, 'SIGKILL');
  await expect.poll(async () => (await ask('hello')).body.result).toBe('Hello world');
  await functions.stop(5000);
  await own.close();
  await database.drop();
});
