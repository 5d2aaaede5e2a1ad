/** The page of `npm start` in a real Firefox with a push service: a real push without a sandbox. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../../ops/local/ports.ts';
import { startTryPage, type TryPage } from '../../../ops/local/try/server.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { Firefox, hasFirefox } from './firefox.ts';
import { PushService } from './push-service.ts';
import { Remote } from './remote.ts';

/** Firefox starts in 2 s on a free machine. */
const browserMs = 60_000;

describe.skipIf(!hasFirefox())('the page of npm start in Firefox', { timeout: 180_000 }, () => {
  let push: PushService;
  let service: TestService;
  let app: App;
  let page: TryPage;
  let firefox: Firefox;
  let remote: Remote;

  beforeAll(async () => {
    push = await PushService.start();
    service = await startTestService({ env: { WEBPUSH_HOSTS: push.host } });
    await service.dispatch();
    app = await service.api.createApp();
    const { authority } = await loopbackIdentity();
    await service.api.request('PUT', `/console/api/apps/${app.appId}/profiles/webpush/browser`, {
      admin: true,
      body: { subject: 'mailto:push@example.com', ca: authority.certificate },
    });
    page = await startTryPage(0);
    page.open({
      api: { url: service.api.url, adminToken: testConfig(service.databaseUrl).adminToken },
      publicUrl: service.api.url,
      app,
      sandboxPage: () => 'http://127.0.0.1:1',
    });
    // By default, a remote-controlled Firefox has no connection to a push service.
    firefox = await Firefox.create(push, { 'remote.prefs.recommended': false });
    const port = await freePort();
    firefox.start('about:blank', `--remote-debugging-port=${port}`);
    remote = await Remote.connect(port);
    await push.untilHello();
    await remote.open(page.url);
  }, browserMs * 2);
  afterAll(async () => {
    remote.close();
    await firefox.delete();
    await page.close();
    await service.close();
    push.close();
  }, browserMs);

  const click = (id: string) => remote.evaluate(`document.getElementById('${id}').click()`);
  const textOf = (selector: string) => () =>
    remote.evaluate(`document.querySelector('${selector}').textContent`);
  const eventually = (read: () => Promise<string>) => expect.poll(read, { timeout: browserMs });

  test('this browser becomes a device of the app', async () => {
    await eventually(textOf('#allow')).toBe('Allow notifications');
    await click('allow');
    await eventually(textOf('#device')).toContain(`Its push service is ${push.host}.`);
    expect(await textOf('#problem')()).toBe('');
    const reply = await service.api.request('GET', '/1.1/installations', { app, master: true });
    expect(reply.body.results).toMatchObject([{ deviceType: 'web', deviceProfile: 'browser' }]);
    const [{ objectId }] = reply.body.results;
    expect(await textOf('#device')()).toContain(objectId);
    const path = `/console/api/apps/${app.appId}/test-devices`;
    const testDevices = await service.api.request('GET', path, { admin: true });
    expect(testDevices.body.results).toMatchObject([{ installation: objectId }]);
  });

  test('each push arrives, with the time that it took', async () => {
    for (const n of [1, 2]) {
      await click('send');
      await eventually(async () => String(push.acks.length)).toBe(String(n));
      await eventually(textOf('#result')).toMatch(
        /^The message arrived after \d+ ms: Carillon – Your push arrived\.$/,
      );
    }
    expect(push.acks.map(({ code }) => code)).toEqual([100, 100]);
    const registration = 'navigator.serviceWorker.ready.then((one) => one.getNotifications())';
    const titles = await remote.evaluate(
      `${registration}.then((all) => all.map(({ title }) => title))`,
    );
    expect(titles).toBe('Carillon,Carillon');
  });
});
