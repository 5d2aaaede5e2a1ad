/** The page of `npm start` that tries Web Push, in a browser that reaches no push service. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startTryPage, type TryPage } from '../../../ops/local/try/server.ts';
import { type SandboxPage, startPage } from '../../../ops/sandbox/all/page.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { useTestService } from '../../support/service.ts';
import { accessibilityFaults } from '../browser/accessibility.ts';
import { chromiumOptions, hasChromium, type PageOptions, useBrowser } from '../browser/browser.ts';

const tryUrl = 'http://localhost:8090/';

describe.skipIf(!hasChromium)('trying Web Push in a browser', () => {
  const service = useTestService({ env: { CARILLON_TRY_URL: tryUrl } });
  const browser = useBrowser();
  let vendors: AllVendors;
  let sandbox: SandboxPage;
  let app: App;
  let tryPage: TryPage;
  beforeAll(async () => {
    vendors = await startVendors(service);
    sandbox = await startPage(vendors.instances);
    app = await vendors.app('webpush');
    await service.api.request('PUT', `/console/api/apps/${app.appId}/profiles/webpush/browser`, {
      admin: true,
      body: { subject: 'mailto:push@example.com' },
    });
    await service.dispatch();
    tryPage = await startTryPage(0);
    tryPage.open({
      api: { url: service.api.url, adminToken: testConfig(service.databaseUrl).adminToken },
      publicUrl: service.api.url,
      app,
      sandboxPage: () => sandbox.url,
    });
  });
  afterAll(async () => {
    await tryPage.close();
    await sandbox.close();
    await vendors.close();
  });
  const open = async (options: PageOptions = {}): Promise<Page> =>
    show(await browser.page(options));
  const show = async (page: Page): Promise<Page> => {
    await page.goto(tryPage.url);
    await page.locator('main:not([aria-busy])').waitFor();
    return page;
  };
  const devices = async () =>
    (await service.api.request('GET', '/1.1/installations', { app, master: true })).body.results;

  test('without a push service, a simulated browser gets the push', async () => {
    // Chromium offers no push service to the windows without history that the other tests use.
    const folder = await mkdtemp(join(tmpdir(), 'carillon-chromium-'));
    const context = await chromium.launchPersistentContext(folder, {
      ...chromiumOptions,
      locale: 'en',
      permissions: ['notifications'],
    });
    onTestFinished(async () => {
      await context.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    });
    const page = await show(await context.newPage());
    const send = page.getByRole('button', { name: 'Send a push' });
    await expect.poll(() => send.isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Allow notifications' }).click();
    await page.getByText('could not reach its push service').waitFor();
    const [device] = await devices();
    await page.getByText(`A simulated browser is device ${device.objectId}`).waitFor();
    await send.click();
    await page.getByText(/arrived after \d+ ms: Carillon – Your push arrived\./).waitFor();
    expect(JSON.parse((await page.locator('pre').textContent()) ?? '')).toMatchObject({
      notification: { title: 'Carillon', body: 'Your push arrived.' },
    });
    expect(await accessibilityFaults(page)).toEqual([]);
    const link = page.getByRole('link', { name: 'Show the device in the console' });
    const address = `${service.api.url}/console/apps/${app.appId}/devices/${device.objectId}`;
    expect(await link.getAttribute('href')).toBe(address);
  });

  test('without permission, the page says so, in Chinese too', async () => {
    const page = await open({ language: 'zh-CN' });
    expect(await page.title()).toBe('在此浏览器中试用推送');
    await page.getByRole('button', { name: '允许通知' }).click();
    await page.getByText('此浏览器不允许本页面发送通知').waitFor();
    await page.getByRole('button', { name: '发送推送' }).click();
    await page.getByText(/消息在 \d+ 毫秒后到达：Carillon – 您的推送已到达。/).waitFor();
    expect(await devices()).toHaveLength(1);
  });

  test('without an answer of the sandbox, the page links to the reason', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Allow notifications' }).click();
    await page.getByText('A simulated browser is device').waitFor();
    vendors.gateways.webPush.misbehave({ kind: 'answer', status: 404 });
    await page.getByRole('button', { name: 'Send a push' }).click();
    const why = page.getByRole('link', { name: 'Why?' });
    await why.waitFor();
    await page.getByText(/did not arrive within \d+ seconds/).waitFor();
    expect(await why.getAttribute('href')).toMatch(/\/pushes\/\w+\/devices\/\w+$/);
  });

  test("the console's first steps link to the page", async () => {
    const fresh = await service.api.createApp();
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await page.goto(`${service.api.url}/console/apps/${fresh.appId}`);
    const link = page.getByRole('link', { name: 'Try a push in this browser' });
    expect(await link.getAttribute('href')).toBe(tryUrl);
  });
});
