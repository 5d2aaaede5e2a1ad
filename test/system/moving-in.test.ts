import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { Realtime } from 'leancloud-realtime';
import AV from 'leancloud-storage';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadRoutes } from '../../api/route-loader.ts';
import { type RunningDispatcher, startDispatcher } from '../../dispatcher/start.ts';
import { freePort } from '../../ops/local/ports.ts';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../ops/sandbox/apns/server.ts';
import { newKey } from '../../shared/domain/ids.ts';
import { eventually } from '../channel/support/channel-fixture.ts';
import { CommandType, openDevice } from '../channel/support/realtime-device.ts';
import {
  silentLog,
  startTestApi,
  type TestApi,
  testConfig,
  testEnvironment,
} from '../support/api.ts';
import { carillon } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { loopbackIdentity } from '../support/gateways/identity.ts';
import { portOf } from '../support/http2/peer.ts';
import { isProxyInstalled, startSites } from '../support/http2/reverse-proxy.ts';
import { anInstallation, aUser, newId, publicHash } from '../support/import/imports.ts';
import { item } from '../support/import/move-in.ts';

/**
 * Follows docs/moving-in.md: an export is imported behind nginx with the file of ops/deploy/proxy.
 * The clients of the old app keep their id and keys. Only the address of their server changes.
 */
const appId = `${newKey()}-gzGzoHsz`;
const keys = { appKey: newKey(), masterKey: newKey(), hookKey: newKey() };
const sessionToken = newId();
const tom = aUser({
  username: 'tom',
  password: publicHash('a password of 2019', 'salt'),
  salt: 'salt',
  sessionToken,
  authData: { weixin: { openid: 'o-tom', access_token: 'from there' } },
});
const installationId = newId();
const phone = anInstallation({
  deviceType: 'android',
  deviceToken: undefined,
  installationId,
  channels: ['news'],
});

const iphone = anInstallation({ apnsTopic: 'com.example.app' });

let database: TestDatabase;
let api: TestApi;
let dispatcher: RunningDispatcher;
let elsewhere: Server;
let apns: ApnsGateway;
const credentials = createApnsCredentials();
let folder: string;
/** Address of the server for the clients of the app. */
let address: string;
const ends: (() => Promise<void>)[] = [];

/**
 * Starts a server for the calls that Carillon does not serve. Its replies contain the host of the
 * request.
 */
async function startElsewhere(): Promise<Server> {
  const { server } = await loopbackIdentity();
  const options = { cert: server.certificate, key: server.privateKey };
  const otherServer = createServer(options, (request, response) => {
    response.setHeader('x-elsewhere', request.headers.host ?? '');
    response.end('{}');
  });
  await new Promise<void>((resolve) => otherServer.listen(0, '127.0.0.1', resolve));
  return otherServer;
}

/** Starts nginx with the file of ops/deploy/proxy and the addresses of this test. */
async function startNginx(port: number): Promise<void> {
  const sites = await readFile(
    new URL('../../ops/deploy/proxy/nginx.conf', import.meta.url),
    'utf8',
  );
  const { authority } = await loopbackIdentity();
  await writeFile(join(folder, 'ca.pem'), authority.certificate);
  const names = {
    'listen 443 ssl http2;': `listen 127.0.0.1:${port} ssl http2;`,
    'listen [::]:443 ssl http2;': '',
    'server 127.0.0.1:8080': `server ${new URL(api.url).host}`,
    'server elsewhere.example.com:443': `server 127.0.0.1:${portOf(elsewhere)}`,
    'https://elsewhere elsewhere.example.com': 'https://elsewhere localhost',
    '/etc/ssl/certs/ca-certificates.crt': join(folder, 'ca.pem'),
    // The test calls from outside the allowed network.
    '127.0.0.1 0;': '192.0.2.1 0;',
    '/var/log/nginx/access.log': join(folder, 'access.log'),
  };
  await startSites(sites, { port, names, onEnd: (end) => ends.push(end) });
}

const run = (args: string[], stdin: object) =>
  carillon([...args, '--json'], {
    cwd: folder,
    env: { ...testEnvironment(database.url), PUBLIC_URL: api.url },
    stdin: JSON.stringify(stdin),
  });
const moveIn = (...args: string[]) =>
  run(['move-in', 'export', '--app-id', appId, '--keys-file', '-', ...args], keys);

const push = (name: string, value: string) => {
  const where = new AV.Query<AV.Installation>('_Installation').equalTo(name, value);
  return AV.Push.send({ where, data: { alert: 'Hello' } }, { useMasterKey: true });
};

const exportFile = (className: string, records: object[]) =>
  writeFile(
    join(folder, 'export', `${className}.0.jsonl`),
    [
      `#filetype:JSON-streaming {"type":"Class","class":"${className}"}`,
      ...records.map((record) => JSON.stringify(record)),
    ].join('\n'),
  );

describe.skipIf(!isProxyInstalled('nginx'))('an app that moved in', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'carillon-moving-in-'));
    database = await createTestDatabase();
    const port = await freePort();
    address = `https://127.0.0.1:${port}`;
    const env = { PUBLIC_URL: address, TRUSTED_PROXIES: '1' };
    api = await startTestApi({ databaseUrl: database.url, env });
    dispatcher = await startDispatcher(testConfig(database.url, env), silentLog);
    elsewhere = await startElsewhere();
    apns = await startApnsGateway({ keys: [credentials], ...(await loopbackIdentity()) });
    const { authority } = await loopbackIdentity();
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, authority.certificate]);
    ends.push(async () => setDefaultCACertificates(trusted));
    await startNginx(port);
    await mkdir(join(folder, 'export'));
    await exportFile('_User', [tom]);
    await exportFile('_Installation', [phone, iphone]);
    await exportFile('Post', [{ objectId: newId() }]);
    const rehearsal = await moveIn('--dry-run');
    expect(rehearsal.json()).toMatchObject({ app: { isNew: true }, import: { refusals: [] } });
    expect(await moveIn()).toMatchObject({ code: 0, stderr: '' });
    AV.init({ appId, ...keys, serverURL: address });
  });
  beforeEach(() => AV.User.logOut());
  afterAll(async () => {
    // The SDK keeps its user in the process, which later runs other test files.
    await AV.User.logOut();
    for (const end of ends) await end();
    elsewhere?.close();
    await apns?.close();
    await dispatcher?.stack.close();
    await api?.close();
    await database?.drop();
    await rm(folder, { recursive: true });
  });

  test('keeps its users logged in, and logs them in by password and account', async () => {
    expect((await AV.User.become(sessionToken)).id).toBe(tom.objectId);
    await AV.User.logOut();
    expect((await AV.User.logIn('tom', 'a password of 2019')).id).toBe(tom.objectId);
    await AV.User.logOut();
    const account = { openid: 'o-tom', access_token: 'a newer one', expires_in: 7200 };
    expect((await AV.User.loginWithAuthData(account, 'weixin')).id).toBe(tom.objectId);
  });

  test('registers new users and devices', async () => {
    const user = await AV.User.signUp('ann', 'a password', { nick: 'Ann' });
    expect((await AV.User.logIn('ann', 'a password')).id).toBe(user.id);
    const device = new AV.Object('_Installation');
    await device.save({ deviceType: 'android', installationId: newId(), channels: ['news'] });
    expect(device.id).toMatch(/^\w+$/);
    await device.save({ channels: ['news', 'sport'] });
  });

  test('delivers a push to a device that registered before the move', async () => {
    const realtime = new Realtime({ appId, appKey: keys.appKey, server: address });
    ends.push(async () => realtime._close());
    const device = await openDevice(realtime, { appId, installationId });
    expect(await device.login()).toMatchObject({ cmd: CommandType.loggedin });
    await push('installationId', installationId);
    await eventually(() => device.messages.length > 0);
    expect(device.messages).toMatchObject([{ content: { alert: 'Hello' }, isOffline: false }]);
  });

  test('delivers a push to an iPhone that registered before the move', async () => {
    const { publicKey: _, ...own } = credentials;
    const isServed = async () => item((await moveIn()).json(), 'profile apns');
    expect(await isServed()).toMatchObject({ state: 'todo' });
    const profile = { auth: 'token', ...own, endpoint: apns.url, ca: apns.ca };
    expect(await run(['profile', 'put', appId, 'apns', '-'], profile)).toMatchObject({ code: 0 });
    expect(await isServed()).toMatchObject({ state: 'done' });
    // The profile takes effect within a second, because the dispatcher may have just read the app.
    await eventually(async () => {
      await push('deviceToken', iphone.deviceToken);
      return apns.seen(iphone.deviceToken) > 0;
    });
  });

  describe('behind nginx', () => {
    test('forwards every route of the api to Carillon', async () => {
      const routes = (await loadRoutes()).filter(({ auth }) => auth !== 'admin');
      const paths = routes.flatMap(({ method, paths }) => paths.map((path) => ({ method, path })));
      const calls = paths.filter(({ path }) => !/^\/(metrics|healthz|readyz)$/.test(path));
      expect(calls.length).toBeGreaterThan(50);
      for (const { method, path } of calls) {
        const filled = path.replace(':className', '_User').replaceAll(/:\w+/g, 'x');
        expect([path, (await ask(method, filled)).elsewhere]).toEqual([path, undefined]);
      }
    });

    test.each([
      '/1.1/classes/Post',
      '/1.1/classes/_User2',
      '/1.1/classes/_File',
      '/1.1/usersOfMine',
      '/1.1/fileTokens',
      '/1.1/rtm/messages',
      '/1.1/leaderboard/leaderboards',
      '/1.1/users/../classes/Post',
    ])('forwards %s to the other server', async (path) => {
      expect((await ask('GET', path)).elsewhere).toMatch(/^localhost$/);
    });

    test.each([
      '/console/api/apps',
      '/Console/api/apps',
      '/%63onsole/api/apps',
      '//console/api/apps',
      '/1.1/users/../../console/api/apps',
      '/1.1/users/..%2f..%2fconsole/api/apps',
      '/console/api/apps/..%2f..%2f..%2f1.1/users',
      '/console/..%2f1.1/push',
      '/console/%2e%2e/1.1/push',
      '/console/../1.1/push',
      '/console?x',
      '/metrics?x=/1.1/push',
      '/metrics/..%2f1.1%2fpush',
      '/metrics',
      '/readyz',
    ])('denies %s from outside', async (path) => {
      const Authorization = `Bearer ${testConfig(database.url).adminToken}`;
      expect(await ask('GET', path, { Authorization })).toMatchObject({
        status: 403,
        elsewhere: undefined,
      });
    });

    test('logs no secret of a path and no query', async () => {
      const loaded = await loadRoutes();
      const secret = /:(secret|token|code)$/;
      const paths = loaded
        .flatMap(({ auth, paths }) => (auth === 'admin' ? [] : paths))
        .filter((path) => secret.test(path));
      expect(paths).toContain('/callbacks/:connector/:appId/:secret');
      for (const path of paths)
        await ask('GET', `${path.replace(secret, 'SESAME').replaceAll(/:\w+/g, 'x')}?p=SESAME`);
      await ask('GET', '/1.1/date?session_token=SESAME');
      const log = () => readFile(join(folder, 'access.log'), 'utf8');
      await expect.poll(log).toMatch(/"GET \/1\.1\/date"/);
      expect(await log()).toContain('"GET /callbacks/x/x/***"');
      expect(await log()).not.toMatch(/SESAME/);
    });

    test('forwards a query with the longest condition', async () => {
      const where = encodeURIComponent(JSON.stringify({ city: '"'.repeat(32_000) }));
      expect(where.length).toBeGreaterThan(180_000);
      const { status, text } = await ask('GET', `/1.1/installations?where=${where}`, {
        'X-LC-Key': `${keys.masterKey},master`,
      });
      expect([status, JSON.parse(text)]).toEqual([200, { results: [] }]);
    });

    test('forwards a large body to Carillon, which refuses it', async () => {
      const { status, text } = await ask('POST', '/1.1/functions/f', {}, 'x'.repeat(21_000_000));
      expect({ status, code: JSON.parse(text).code }).toEqual({ status: 413, code: 413 });
    });
  });
});

/** Sends a request with the keys of the app. The path is not normalized. */
function ask(method: string, path: string, headers: Record<string, string> = {}, body = '') {
  const all = {
    'X-LC-Id': appId,
    'X-LC-Key': keys.appKey,
    'Content-Type': 'application/json',
    ...headers,
  };
  return new Promise<{ status: number | undefined; elsewhere: unknown; text: string }>(
    (resolve, reject) => {
      const { hostname, port } = new URL(address);
      const sent = request({ hostname, port, method, path, headers: all }, async (response) => {
        const elsewhere = response.headers['x-elsewhere'];
        resolve({ status: response.statusCode, elsewhere, text: await text(response) });
      });
      sent.once('error', reject);
      sent.end(body);
    },
  );
}
