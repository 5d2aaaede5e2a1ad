/** Web Push from the registration of a browser to the message that it decrypts. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { checkWebPushKeys } from '../../../api/services/operator/doctor/web-push-keys.ts';
import { newKeyPair } from '../../../connectors/webpush/vapid.ts';
import { browserOf, subscriptionOf } from '../../../ops/sandbox/webpush/browser.ts';
import { Vault } from '../../../shared/crypto.ts';
import { listAppIds } from '../../../shared/db/tables/apps.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { keyIdOf } from '../../../shared/domain/installations/subscription.ts';
import { testConfig } from '../../support/api.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let vendors: AllVendors;
beforeAll(async () => {
  vendors = await startVendors(service);
  await service.dispatch();
});
afterAll(() => vendors.close());
afterEach(() => {
  const { webPush } = vendors.gateways;
  webPush.behave();
  webPush.forget();
  webPush.deadTokens.clear();
  webPush.keys.clear();
});

let serial = 0;
const newBrowser = () => {
  serial += 1;
  return browserOf(serial.toString(16).padStart(64, '0'));
};
const call = (method: string, path: string, options: object) =>
  service.api.request(method, path, options);
const register = (app: App, body: object) =>
  call('POST', '/1.1/installations', {
    app,
    body: { deviceType: 'web', vendor: 'webpush', ...body },
  });
const push = async (app: App, body: object) =>
  service.untilDone(app, await beginPush(service, app, body));
const profilePath = (app: App, name = '_default') =>
  `/console/api/apps/${app.appId}/profiles/webpush/${name}`;
const put = (app: App, body: object, name?: string) =>
  call('PUT', profilePath(app, name), { admin: true, body });
const keyOf = (app: App, query = '') => call('GET', `/1.1/webpush/key${query}`, { app });

/** Creates an app whose Web Push profile made its own keys and sends to the sandbox. */
async function appWithKeys(): Promise<App> {
  const app = await service.api.createApp();
  const { url, ca } = vendors.gateways.webPush;
  const reply = await put(app, { subject: 'mailto:push@example.com', endpoint: url, ca });
  expect(reply.status).toBe(200);
  expect(JSON.stringify(reply.body)).not.toMatch(/private|publicKey/);
  return app;
}

describe('registration', () => {
  test('a browser registers with its subscription alone, and again without a second installation', async () => {
    const app = await appWithKeys();
    const subscription = subscriptionOf(newBrowser());
    const first = await register(app, { subscription });
    expect(first.status).toBe(201);
    const again = await register(app, { subscription, channels: ['news'] });
    expect(again.status).toBe(200);
    expect(again.body.objectId).toBe(first.body.objectId);
  });

  test('only the master key reads the subscription, with the id of its key', async () => {
    const app = await appWithKeys();
    const subscription = subscriptionOf(newBrowser());
    const { body } = await register(app, { subscription });
    const { keyId } = (await keyOf(app)).body;
    const path = `/1.1/installations/${body.objectId}`;
    const byMaster = await call('GET', path, { app, master: true });
    expect(byMaster.body).toMatchObject({
      deviceType: 'web',
      vendor: 'webpush',
      subscription: { endpoint: subscription.endpoint, keys: subscription.keys, keyId },
    });
    const byApp = await call('GET', path, { app });
    expect(byApp.body.deviceType).toBe('web');
    expect(JSON.stringify(byApp.body)).not.toContain(subscription.endpoint);
    expect(JSON.stringify(byApp.body)).not.toContain(subscription.keys.auth);
    const changed = await call('PUT', `${path}?fetchWhenSave=true`, {
      app,
      body: { subscription },
    });
    expect(JSON.stringify(changed.body)).not.toContain(subscription.endpoint);
  });

  const valid = subscriptionOf(browserOf('f'.repeat(64)));
  test.each<[string, unknown, RegExp]>([
    ['a number', 5, /subscription/],
    ['text', 'x', /subscription/],
    ['no endpoint', { keys: valid.keys }, /subscription\.endpoint|subscription/],
    [
      'http',
      { ...valid, endpoint: 'http://fcm.googleapis.com/x' },
      /subscription\.endpoint must be an https/,
    ],
    ['another host', { ...valid, endpoint: 'https://evil.example/x' }, /WEBPUSH_HOSTS/],
    ['loopback', { ...valid, endpoint: 'https://127.0.0.1/x' }, /WEBPUSH_HOSTS/],
    ['a port', { ...valid, endpoint: 'https://fcm.googleapis.com:8443/x' }, /WEBPUSH_HOSTS/],
    ['a user', { ...valid, endpoint: 'https://a:b@fcm.googleapis.com/x' }, /no user/],
    ['a fragment', { ...valid, endpoint: 'https://fcm.googleapis.com/x#y' }, /no fragment/],
    [
      'a long endpoint',
      { ...valid, endpoint: `https://fcm.googleapis.com/${'x'.repeat(1000)}` },
      /1000 characters|subscription/,
    ],
    [
      'a suffix of a host',
      { ...valid, endpoint: 'https://evilnotify.windows.com.example/x' },
      /WEBPUSH_HOSTS/,
    ],
    [
      'a short p256dh',
      { ...valid, keys: { ...valid.keys, p256dh: 'BA' } },
      /subscription\.keys\.p256dh/,
    ],
    [
      'no point',
      { ...valid, keys: { ...valid.keys, p256dh: `B${'A'.repeat(86)}` } },
      /subscription\.keys\.p256dh/,
    ],
    ['a short auth', { ...valid, keys: { ...valid.keys, auth: 'AA' } }, /subscription\.keys\.auth/],
    ['a wrong key id', { ...valid, keyId: 'x' }, /subscription\.keyId/],
  ])('%s is refused with the member', async (_name, subscription, expected) => {
    const app = await service.api.createApp();
    const reply = await register(app, { subscription });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatch(expected);
    expect(reply.body.error).not.toContain(valid.keys.auth);
  });

  test('a subscription excludes another vendor and a registration id', async () => {
    const app = await service.api.createApp();
    const other = await register(app, { subscription: valid, vendor: 'mi' });
    expect(other.body.error).toMatch(/vendor must be webpush/);
    const both = await register(app, { subscription: valid, registrationId: 'x' });
    expect(both.body.error).toMatch(/registrationId must not be given/);
  });
});

describe('keys', () => {
  test('a profile makes a pair, keeps it when it is put again, and rotates it on request', async () => {
    const app = await appWithKeys();
    const first = (await keyOf(app)).body;
    expect(first).toEqual({
      publicKey: expect.stringMatching(/^B[\w-]{86}$/),
      keyId: keyIdOf(String(first.publicKey)),
    });
    const { url: endpoint, ca } = vendors.gateways.webPush;
    const profile = { subject: 'mailto:ops@example.com', endpoint, ca };
    await put(app, profile);
    expect((await keyOf(app)).body).toEqual(first);
    const old = newBrowser();
    await register(app, { subscription: subscriptionOf(old) });
    await put(app, { ...profile, rotateKeys: true });
    const second = (await keyOf(app)).body;
    expect(second.publicKey).not.toBe(first.publicKey);
    const own = newKeyPair();
    await put(app, { ...profile, ...own });
    expect((await keyOf(app)).body.publicKey).toBe(own.publicKey);
    const fresh = newBrowser();
    await register(app, { subscription: subscriptionOf(fresh) });
    const explicit = newBrowser();
    await register(app, { subscription: { ...subscriptionOf(explicit), keyId: second.keyId } });
    const record = await push(app, { data: { alert: 'a' } });
    expect(record).toMatchObject({ devices: 3, successes: 3 });
    const { keys } = vendors.gateways.webPush;
    expect([old, explicit, fresh].map(({ endpoint: one }) => keys.get(one))).toEqual([
      first.publicKey,
      second.publicKey,
      own.publicKey,
    ]);
  });

  test('without a profile there is no key', async () => {
    const app = await service.api.createApp();
    expect(await keyOf(app)).toMatchObject({ status: 404 });
    expect(await keyOf(app, '?deviceProfile=other')).toMatchObject({ status: 404 });
    expect((await keyOf(app, '?deviceProfile=a-b')).status).toBe(400);
  });

  test.each([
    [{}, /subject is missing/],
    [{ subject: 'x' }, /subject must be/],
    [{ subject: 'mailto:a@localhost' }, /subject must be/],
    [{ subject: 'mailto: a@b.example' }, /subject must be/],
    [{ subject: 'https://localhost' }, /subject must be/],
    [{ subject: 'https://10.0.0.1' }, /subject must be/],
    [{ subject: 'mailto:a@b.example', publicKey: newKeyPair().publicKey }, /privateKey/],
    [
      {
        subject: 'mailto:a@b.example',
        publicKey: newKeyPair().publicKey,
        privateKey: newKeyPair().privateKey,
      },
      /one key pair/,
    ],
    [{ subject: 'mailto:a@b.example', rotateKeys: 'yes' }, /rotateKeys/],
    [{ subject: 'mailto:a@b.example', surplus: 1 }, /surplus/],
  ])('%j is refused', async (body, expected) => {
    const app = await service.api.createApp();
    const reply = await put(app, body);
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatch(expected);
  });
});

describe('pushes', () => {
  test('reach browsers of all services, each outcome is counted', async () => {
    const app = await vendors.app('webpush', 'apns');
    const tokens = await vendors.add(app, 'webpush', 40);
    const [dead = ''] = tokens;
    vendors.gateways.webPush.deadTokens.add(dead);
    await service.db.query(
      `UPDATE installation SET updated_at = now() - interval '1 hour' WHERE app_id = $1`,
      [app.appId],
    );
    await vendors.add(app, 'apns', 5);
    const record = await push(app, { data: { alert: 'a', badge: 'Increment' } });
    expect(record).toMatchObject({ devices: 45, successes: 44 });
    expect(vendors.gateways.webPush.violations).toEqual([]);
    expect(JSON.parse(vendors.gateways.webPush.messages[0]?.text ?? '')).toMatchObject({
      alert: 'a',
      app_badge: 1,
    });
    const progress = await call(
      'GET',
      `/console/api/apps/${app.appId}/notifications/${record.objectId}/progress`,
      { admin: true },
    );
    expect(progress.body).toMatchObject({
      outcomes: { sent: 44, invalid_token: 1 },
      connectors: { webpush: { sent: 39, invalid_token: 1 } },
    });
  });

  test('need no hybridPush, and a browser without a subscription uses the device channel', async () => {
    const app = await appWithKeys();
    await register(app, { subscription: subscriptionOf(newBrowser()) });
    await call('POST', '/1.1/installations', {
      app,
      body: { deviceType: 'web', installationId: 'web-1' },
    });
    const record = await push(app, { data: { alert: 'a' } });
    // A message on the device channel counts as a success when the device acknowledges it.
    expect(record).toMatchObject({ devices: 2, webSuccesses: 1, outcomes: { sent: 2 } });
    expect(vendors.gateways.webPush.total).toBe(1);
  });

  test('an ended subscription is deleted, but not in its first minute', async () => {
    const app = await vendors.app('webpush');
    const tokens = await vendors.add(app, 'webpush', 3);
    vendors.gateways.webPush.deadTokens.add(tokens[0] ?? '');
    const count = async () =>
      (await service.db.query('SELECT FROM installation WHERE app_id = $1', [app.appId])).rowCount;
    await push(app, { data: { alert: 'a' } });
    expect(await count()).toBe(3);
    await service.db.query(
      `UPDATE installation SET updated_at = now() - interval '2 minutes' WHERE app_id = $1`,
      [app.appId],
    );
    await push(app, { data: { alert: 'b' } });
    await expect.poll(count).toBe(2);
  });

  test('a silent push is dropped for browsers, with the reason', async () => {
    const app = await vendors.app('webpush');
    await vendors.add(app, 'webpush', 2);
    const record = await push(app, { data: { silent: true, k: 1 } });
    const progress = await call(
      'GET',
      `/console/api/apps/${app.appId}/notifications/${record.objectId}/progress`,
      { admin: true },
    );
    expect(progress.body).toMatchObject({ outcomes: { dropped: 2 } });
    expect(vendors.gateways.webPush.total).toBe(0);
  });

  test.each([
    [{ alert: 'a', web: { urgency: 'now' } }, /web\.urgency/],
    [{ alert: 'a', web: { surplus: 1 } }, /web\.surplus/],
  ])('%j is refused at the call', async (data, expected) => {
    const app = await vendors.app('webpush');
    await vendors.add(app, 'webpush', 1);
    const where = { deviceType: 'web' };
    const reply = await call('POST', '/1.1/push', { app, master: true, body: { data, where } });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatch(expected);
  });

  test('are refused at the call if the app has browsers and no profile', async () => {
    const app = await service.api.createApp();
    await register(app, { subscription: subscriptionOf(newBrowser()) });
    const reply = await call('POST', '/1.1/push', {
      app,
      master: true,
      body: { data: { alert: 'a' } },
    });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatch(/Web Push/);
  });
});

describe('doctor', () => {
  test('counts the subscriptions of each key, and warns of those whose key is gone', async () => {
    const app = await appWithKeys();
    const { url: endpoint, ca } = vendors.gateways.webPush;
    await register(app, { subscription: subscriptionOf(newBrowser()) });
    const { keyId: old } = (await keyOf(app)).body;
    await put(app, { subject: 'mailto:push@example.com', endpoint, ca, rotateKeys: true });
    const { keyId: current } = (await keyOf(app)).body;
    const lost = keyIdOf(newKeyPair().publicKey);
    await register(app, { subscription: { ...subscriptionOf(newBrowser()), keyId: lost } });
    const { body } = await call('GET', '/console/api/doctor', { admin: true });
    const ofApp = (body.results as { code: string; params: Record<string, unknown> }[])
      .filter(({ params }) => params.app === app.appId)
      .map(({ code, params }) => [code, params.key, params.devices]);
    expect(ofApp).toEqual(
      expect.arrayContaining([
        ['webPushKey', current, 0],
        ['replacedWebPushKey', old, 1],
        ['lostWebPushKey', lost, 1],
      ]),
    );
  });

  test('counts them for all profiles of each app', async () => {
    const app = await appWithKeys();
    const apps = await listAppIds(service.db);
    for (const i of apps.keys()) await put(app, { subject: 'mailto:a@example.com' }, `more${i}`);
    const vault = new Vault(testConfig(service.databaseUrl).secrets);
    const findings = await checkWebPushKeys({ db: service.db, vault, maxApps: apps.length });
    const ofApp = findings.filter(({ params }) => params.app === app.appId);
    expect(ofApp).toHaveLength(apps.length + 1);
  });

  test('calls no key lost while a profile of its app cannot be decrypted', async () => {
    const app = await appWithKeys();
    await register(app, { subscription: subscriptionOf(newBrowser()) });
    const vault = new Vault([Buffer.alloc(32, 9)]);
    expect(await checkWebPushKeys({ db: service.db, vault })).toEqual([]);
  });
});
