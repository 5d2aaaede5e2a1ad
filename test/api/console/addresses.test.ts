import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startDispatcher } from '../../../dispatcher/start.ts';
import { loopbackNetworks } from '../../../shared/config/private-hosts.ts';
import { setPrivateHosts } from '../../../shared/http/outbound-addresses.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { newName, newUid, refusalOf, refused } from '../../support/users.ts';
import { callerOf } from './callers.ts';

const service = useTestService();
let listener: Server;
let connections = 0;
let url = '';

beforeAll(async () => {
  listener = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined).destroy();
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address();
  if (typeof address === 'object') url = `http://127.0.0.1:${address?.port}`;
});
afterAll(() => listener.close());
beforeEach(() => {
  connections = 0;
});
afterEach(() => setPrivateHosts(loopbackNetworks));

const admin = (method: string, path: string, body?: unknown) =>
  service.api.request(method, `/console/api${path}`, {
    admin: true,
    ...(body === undefined ? {} : { body }),
  });
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const serviceAccount = {
  type: 'service_account',
  project_id: 'example-app',
  client_email: 'push@example-app.iam.gserviceaccount.com',
  private_key_id: 'abc123',
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
};
const oppo = { appKey: 'k', masterSecret: 's' };

describe('a private address that CARILLON_PRIVATE_HOSTS does not list', () => {
  test.each([
    ['http://127.0.0.1:9', 400],
    ['http://[::ffff:10.0.0.1]', 400],
    ['http://169.254.169.254', 400],
    ['http://2130706433', 400],
    ['http://localhost:9', 400],
    ['http://8.8.8.8', 200],
    ['https://gateway.example', 200],
  ])('is refused when it is set: %s is %i', async (address, status) => {
    const app = await service.api.createApp();
    setPrivateHosts('');
    const path = `/apps/${app.appId}`;
    const members = ['endpoint', 'authEndpoint'].map(
      (name) => [name, { ...oppo, [name]: address }] as const,
    );
    for (const [member, body] of members) {
      const put = await admin('PUT', `${path}/profiles/vendor_d/_default`, body);
      expect([put.status, put.body.error ?? '']).toEqual([
        status,
        status === 200
          ? ''
          : expect.stringMatching(new RegExp(`^${member}: .*CARILLON_PRIVATE_HOSTS`)),
      ]);
    }
    const options = {
      functionsUrl: address,
      functionsStagingUrl: address,
      authPlatforms: { lc_apple: { audience: 'a', jwksUrl: address } },
    };
    for (const [name, value] of Object.entries(options)) {
      const patch = await admin('PATCH', path, { options: { [name]: value } });
      expect([patch.status, patch.body.error ?? '']).toEqual([
        status,
        status === 200 ? '' : expect.stringMatching(new RegExp(`^${name}.*CARILLON_PRIVATE_HOSTS`)),
      ]);
      const create = await admin('POST', '/apps', { name: newName(), options: { [name]: value } });
      expect(create.status).toBe(status === 200 ? 201 : 400);
    }
  });

  test('is refused for a candidate of a rotation', async () => {
    const app = await service.api.createApp();
    const path = `/apps/${app.appId}/profiles/vendor_d/_default`;
    expect((await admin('PUT', path, oppo)).status).toBe(200);
    setPrivateHosts('');
    const staged = await admin('PUT', `${path}/candidate`, {
      ...oppo,
      endpoint: 'http://10.0.0.1',
    });
    expect([staged.status, staged.body.error]).toEqual([400, expect.stringMatching(/^endpoint: /)]);
  });

  test('stored earlier gets no connection from functions, hooks or platforms', async () => {
    const app = await service.api.createApp({
      functionsUrl: url,
      authPlatforms: {
        weixin: { endpoint: url },
        lc_apple: { audience: 'a', jwksUrl: `${url}/keys` },
      },
    });
    const plain = await service.api.createApp({ authPlatforms: app.options.authPlatforms });
    const post = (path: string, of: typeof app, body: object) =>
      service.api.request('POST', `/1.1/${path}`, { app: of, body });
    const calls = () =>
      Promise.all([
        post('functions/hello', app, {}),
        post('users', app, { username: newName(), password: 'secret' }),
        post('users', plain, { authData: { weixin: { openid: newUid(), access_token: 't' } } }),
        post('users', plain, {
          authData: { lc_apple: { uid: newUid(), identity_token: 'a.b.c' } },
        }),
      ]);
    setPrivateHosts('');
    const refusedCalls = await calls();
    expect(refusedCalls.map(({ status }) => status)).toEqual([503, 503, 503, 503]);
    expect(refusedCalls[0]?.body.error).toMatch(/CARILLON_PRIVATE_HOSTS/);
    expect(connections).toBe(0);
    setPrivateHosts(loopbackNetworks);
    await calls();
    expect(connections).toBeGreaterThanOrEqual(3);
  });

  test('stored earlier gets no request of a push, and the record has the reason', async () => {
    const app = await service.api.createApp({ forbidClientPush: false });
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 20);
    const config = testConfig(service.databaseUrl, { CARILLON_PRIVATE_HOSTS: '10.0.0.0/8' });
    const dispatcher = await startDispatcher(config, silentLog);
    try {
      const push = { data: { alert: 'a' }, where: {} };
      const { body } = await service.api.request('POST', '/1.1/push', {
        app,
        master: true,
        body: push,
      });
      const record = await service.untilDone(app, body.objectId);
      expect(record.errors).toMatch(/address_refused.*CARILLON_PRIVATE_HOSTS.*\(20\)$/);
      expect(service.apns.requests).toEqual([]);
    } finally {
      await dispatcher.stack.close();
    }
  });
});

describe('the address of a gateway', () => {
  test.each(['endpoint', 'authEndpoint'])('can be set by owners only: %s', async (member) => {
    const app = await service.api.createApp();
    const operator = await callerOf(service.api, 'operator');
    const path = `/apps/${app.appId}/profiles/vendor_d/_default`;
    const own = { ...oppo, [member]: 'https://relay.example' };
    const forbidden = await operator('PUT', path, { body: own });
    expect([forbidden.status, forbidden.body.error]).toEqual([
      403,
      `${member}: only an owner changes it.`,
    ]);
    expect((await admin('PUT', path, own)).status).toBe(200);
    const another = { ...own, appKey: 'new' };
    expect((await operator('PUT', path, { body: another })).status).toBe(200);
    const moved = { ...another, [member]: 'https://other.example' };
    expect(refusalOf(await operator('PUT', path, { body: moved }))).toEqual(refused(403, 403));
    expect(refusalOf(await operator('PUT', `${path}/candidate`, { body: moved }))).toEqual(
      refused(403, 403),
    );
    expect((await operator('PUT', path, { body: oppo })).status).toBe(200);
  });

  test.each([
    ['a member', (file: object) => ({ serviceAccount: file })],
    ['a member as text', (file: object) => ({ serviceAccount: JSON.stringify(file) })],
    ['the whole body', (file: object) => file],
  ])('can be set by owners only within a service account that is %s', async (_, bodyOf) => {
    const app = await service.api.createApp();
    const operator = await callerOf(service.api, 'operator');
    const path = `/apps/${app.appId}/profiles/fcm/_default`;
    const bodyWith = (token_uri: string) => bodyOf({ ...serviceAccount, token_uri });
    const forbidden = await operator('PUT', path, {
      body: bodyWith('https://relay.example/token'),
    });
    expect([forbidden.status, forbidden.body.error]).toEqual([
      403,
      'serviceAccount.token_uri: only an owner changes it.',
    ]);
    setPrivateHosts('');
    expect((await admin('PUT', path, bodyWith('http://10.0.0.1/token'))).status).toBe(400);
    const usual = { body: bodyWith('https://oauth2.googleapis.com/token') };
    expect((await operator('PUT', path, usual)).status).toBe(200);
  });

  test('is in the audit log without user and password, without other credentials', async () => {
    const app = await service.api.createApp();
    const put = await admin('PUT', `/apps/${app.appId}/profiles/vendor_d/_default`, {
      ...oppo,
      endpoint: 'https://relay.example:8443/oppo',
    });
    expect(put.status).toBe(200);
    await admin('PATCH', `/apps/${app.appId}`, {
      options: { authPlatforms: { weixin: { endpoint: 'https://wx.example/x', appId: 'SESAME' } } },
    });
    const entries = (await admin('GET', `/audit?app=${app.appId}`)).body.results;
    const text = JSON.stringify(entries);
    expect(text).toContain('https://relay.example:8443"');
    expect(text).toContain('https://wx.example"');
    expect(text).not.toMatch(/SESAME|\/oppo|\/x"/);
  });
});
