/** What `carillon why` and the console say of a push and a Web Push device. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { newKeyPair } from '../../../connectors/webpush/vapid.ts';
import { browserOf, subscriptionOf, tokenOf } from '../../../ops/sandbox/webpush/browser.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { keyIdOf } from '../../../shared/domain/installations/subscription.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let vendors: AllVendors;
let app: App;
let serial = 0;
beforeAll(async () => {
  vendors = await startVendors(service);
  app = await vendors.app('webpush');
  await service.dispatch();
});
afterAll(() => vendors.close());
afterEach(() => {
  vendors.gateways.webPush.behave();
  vendors.gateways.webPush.deadTokens.clear();
});

const newBrowser = () => {
  serial += 1;
  return browserOf(serial.toString(16).padStart(64, '0'), 'mozilla');
};

/** Registers a device. Returns its objectId. */
async function register(body: object): Promise<string> {
  const reply = await service.api.request('POST', '/1.1/installations', {
    app,
    body: { deviceType: 'web', vendor: 'webpush', ...body },
  });
  expect(reply.status).toBeLessThan(300);
  return reply.body.objectId;
}

/** Sends a push to one device. Returns the explanation for the device. */
async function why(objectId: string, data: object = { alert: 'a' }) {
  const pushId = await beginPush(service, app, { where: { objectId }, data });
  await service.untilDone(app, pushId);
  const path = `/console/api/apps/${app.appId}/notifications/${pushId}/devices/${objectId}`;
  return (await service.api.request('GET', path, { admin: true })).body;
}

const mozilla = 'Its push service is updates.push.services.mozilla.com';
const keyOfProfile = async (): Promise<string> =>
  (await service.api.request('GET', '/1.1/webpush/key', { app })).body.keyId;

test('names the push service and the key of the subscription', async () => {
  const keyId = await keyOfProfile();
  const device = await register({ subscription: { ...subscriptionOf(newBrowser()), keyId } });
  expect(await why(device)).toMatchObject({
    outcome: 'sent',
    route: { connector: 'webpush', profile: '_default' },
    sentence: expect.stringMatching(/^It was accepted by Web Push \(profile _default\)/),
  });
  const { sentence } = await why(device);
  expect(sentence).toContain(`${mozilla}, and its subscription belongs to the VAPID key ${keyId}.`);
});

test('names a key that no profile has, and what to do about it', async () => {
  const keyId = keyIdOf(newKeyPair().publicKey);
  const device = await register({ subscription: { ...subscriptionOf(newBrowser()), keyId } });
  const { outcome, remedy, sentence } = await why(device);
  expect(outcome).toBe('failed');
  expect(remedy).toEqual({ code: 'subscriptionKey' });
  expect(sentence).toMatch(/no longer has the VAPID key of the subscription/);
  expect(sentence).toContain(`belongs to the VAPID key ${keyId}`);
});

test('says that the push service refuses the key', async () => {
  const browser = newBrowser();
  const device = await register({ subscription: subscriptionOf(browser) });
  vendors.gateways.webPush.keys.set(browser.endpoint, 'another');
  expect(await why(device)).toMatchObject({
    outcome: 'failed',
    status: 401,
    reason: 'subscription_of_other_key',
    remedy: { code: 'subscriptionKey' },
  });
});

test('says that a browser has no subscription', async () => {
  const device = await register({ vendor: undefined, installationId: 'browser-1' });
  expect(await why(device)).toMatchObject({
    route: { connector: 'channel' },
    sentence: expect.stringContaining('It has no Web Push subscription'),
  });
});

test('says that a push service is not listed', async () => {
  const device = await register({ subscription: subscriptionOf(newBrowser()) });
  // The list has become shorter since the device registered.
  const endpoint = 'https://push.example.com:8443/secret';
  await service.db.query('UPDATE installation SET registration_id = $1 WHERE object_id = $2', [
    endpoint,
    device,
  ]);
  const explained = await why(device);
  expect(explained).toMatchObject({ outcome: 'failed', remedy: { code: 'pushService' } });
  expect(explained.sentence).toContain('the push service is not listed');
  expect(explained.sentence).toContain('Its push service is push.example.com:8443');
  // Everybody who knows an endpoint can send messages to the browser.
  expect(JSON.stringify(explained)).not.toContain('secret');
});

test('says that a subscription has ended', async () => {
  const browser = newBrowser();
  const device = await register({ subscription: subscriptionOf(browser) });
  vendors.gateways.webPush.deadTokens.add(tokenOf(browser));
  await service.db.query(
    `UPDATE installation SET updated_at = now() - interval '1 hour' WHERE object_id = $1`,
    [device],
  );
  expect(await why(device)).toMatchObject({
    outcome: 'invalid_token',
    status: 410,
    sentence: expect.stringContaining('the address of this device is dead'),
  });
});

test('says that browsers show no silent pushes', async () => {
  const device = await register({ subscription: subscriptionOf(newBrowser()) });
  expect(await why(device, { silent: true, k: 1 })).toMatchObject({
    outcome: 'dropped',
    sentence: expect.stringContaining('does not support silent messages'),
  });
});
