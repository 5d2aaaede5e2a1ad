/** Web Push in a real Firefox: the example of `examples/web`, a push service, and Carillon. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { Firefox, hasFirefox, Site } from './firefox.ts';
import { PushService } from './push-service.ts';

/** Firefox starts in 2 s on a free machine. */
const browserMs = 60_000;

describe.skipIf(!hasFirefox())('Firefox', { timeout: 180_000 }, () => {
  let push: PushService;
  let service: TestService;
  let site: Site;
  let firefox: Firefox;
  let app: App;

  const profile = async (more: object = {}) => {
    const { authority } = await loopbackIdentity();
    const body = { subject: 'mailto:push@example.com', ca: authority.certificate, ...more };
    const path = `/console/api/apps/${app.appId}/profiles/webpush/_default`;
    const reply = await service.api.request('PUT', path, { admin: true, body });
    expect(reply.status).toBe(200);
  };
  const send = async (data: object, more: object = {}) =>
    service.untilDone(app, await beginPush(service, app, { data, ...more }));
  const page = (path = '/') =>
    site.url({ server: service.api.url, appId: app.appId, appKey: app.appKey }, path);
  /** Returns the subscriptions of all installations. */
  const subscriptions = async () => {
    const reply = await service.api.request('GET', '/1.1/installations', { app, master: true });
    const all = reply.body.results as { subscription?: { endpoint: string; keyId: string } }[];
    return all.flatMap(({ subscription }) => subscription ?? []);
  };
  const endpoints = async () => (await subscriptions()).map(({ endpoint }) => endpoint);
  const shown = () => site.of('push').map(({ title }) => title);
  const untilRegistered = () =>
    expect.poll(() => site.of('registered').length, { timeout: browserMs }).toBeGreaterThan(0);
  /** Starts Firefox again. It may also open the page of the session before. */
  const restart = async (path = '/') => {
    site.reports.length = 0;
    firefox.start(page(path));
    await untilRegistered();
  };
  /** Sends pushes until the browser shows one: it may have connected to its service just now. */
  const untilShown = (title: string) =>
    expect
      .poll(
        async () => {
          await send({ alert: title, 'collapse-id': title });
          return shown();
        },
        { timeout: browserMs, interval: 1000 },
      )
      .toContain(title);

  beforeAll(async () => {
    push = await PushService.start();
    service = await startTestService({ env: { WEBPUSH_HOSTS: push.host } });
    await service.dispatch();
    site = await Site.start(push);
    firefox = await Firefox.create(push);
    app = await service.api.createApp();
    await profile();
    firefox.start(page());
  }, browserMs);
  afterAll(async () => {
    await firefox.delete();
    site.close();
    await service.close();
    push.close();
  }, browserMs);

  test('the page of the example becomes a device', async () => {
    await untilRegistered();
    expect(site.of('failed')).toEqual([]);
    expect((await endpoints())[0]).toContain(push.host);
  });

  test('shows a message with its text, and acknowledges that it could decrypt it', async () => {
    const record = await send({ title: 'Grüße', alert: 'Hello ☃', orderId: '1042' });
    expect(record).toMatchObject({ devices: 1, webSuccesses: 1 });
    await expect.poll(() => site.of('push').length, { timeout: browserMs }).toBe(1);
    expect(site.of('push')[0]).toMatchObject({
      title: 'Grüße',
      options: { body: 'Hello ☃' },
      data: { orderId: '1042' },
    });
    expect(push.acks.map(({ code }) => code)).toEqual([100]);
  });

  test('the largest message arrives', async () => {
    const text = 'x'.repeat(3700);
    const where = { deviceType: 'web' };
    await send({ web: { payload: { title: 'Large', alert: text } } }, { where });
    await expect.poll(shown, { timeout: browserMs }).toContain('Large');
    expect(push.acks.at(-1)?.code).toBe(100);
  });

  test('of two messages with a collapse id, a closed browser gets the last one', async () => {
    await firefox.stop();
    await send({ alert: 'first', 'collapse-id': 'x' });
    await send({ alert: 'second', 'collapse-id': 'x' });
    const before = push.acks.length;
    await restart();
    await expect.poll(() => push.acks.length, { timeout: browserMs }).toBe(before + 1);
    expect(push.acks.at(-1)?.code).toBe(100);
    // The visit registered again, and is still the same device.
    expect(await subscriptions()).toHaveLength(1);
    expect(site.of('registered')).toHaveLength(1);
  });

  test('after a rotation, the old subscription gets pushes, and a visit takes the new key', async () => {
    const keyIds = async () => (await subscriptions()).map(({ keyId }) => keyId);
    const [before] = await keyIds();
    await profile({ rotateKeys: true });
    await untilShown('with the old key');
    await firefox.stop();
    await restart();
    const fresh = async () => (await keyIds()).filter((keyId) => keyId !== before);
    await expect
      .poll(async () => (await fresh()).length, { timeout: browserMs })
      .toBeGreaterThan(0);
    await untilShown('with the new key');
  });

  test('a browser that its push service forgot subscribes again', async () => {
    const before = await endpoints();
    push.forget();
    const fresh = async () => (await endpoints()).filter((one) => !before.includes(one));
    await expect
      .poll(async () => (await fresh()).length, { timeout: browserMs })
      .toBeGreaterThan(0);
    await untilShown('after the loss');
  });

  test('the page with the SDK of LeanCloud becomes a device, and gets a push', async () => {
    await firefox.stop();
    await restart('/sdk');
    expect(site.of('failed')).toEqual([]);
    await untilShown('by the SDK');
  });
});
