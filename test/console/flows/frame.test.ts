import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';
import { hasChromium, type PageOptions, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the frame of the pages', () => {
  const api = useTestApi();
  const browser = useBrowser();
  let app: App;
  beforeAll(async () => {
    app = await api.createApp();
    const body = { name: 'Corner shop' };
    await api.request('PATCH', `/console/api/apps/${app.appId}`, { admin: true, body });
  });
  const open = async (
    options: PageOptions = {},
    prepare?: (page: Page) => Promise<unknown>,
  ): Promise<Page> => {
    const page = await browser.page(options);
    await prepare?.(page);
    await browser.login(page, api.url, testConfig(api.databaseUrl).adminToken);
    await browser.show(page, `${api.url}/console/apps/${app.appId}`);
    return page;
  };
  /** Clears the errors that React logs for a caught exception. */
  const forgive = () => browser.faults.splice(0);

  test('names each tab after the page and the app', async () => {
    const page = await browser.page();
    await page.goto(`${api.url}/console`);
    await expect.poll(() => page.title()).toBe('Log in · Carillon');
    await browser.login(page, api.url, testConfig(api.databaseUrl).adminToken);
    for (const [path, title] of [
      ['', 'Apps · Carillon'],
      ['/operating', 'Operations · Carillon'],
      [`/apps/${app.appId}/devices`, 'Devices · Corner shop · Carillon'],
      [`/apps/${app.appId}/pushes`, 'Pushes · Corner shop · Carillon'],
      [`/apps/${app.appId}/nowhere`, 'Page not found · Corner shop · Carillon'],
    ] as const) {
      await page.goto(`${api.url}/console${path}`);
      await expect.poll(() => page.title()).toBe(title);
    }
    await page.goto(`${api.url}/console/apps/${app.appId}/devices`);
    await page.getByRole('link', { name: 'Quotas' }).click();
    await expect.poll(() => page.title()).toBe('Quotas · Corner shop · Carillon');
  });

  test("stays if a page's code is gone after an upgrade, and loads the page again", async () => {
    const page = await open();
    await page.route(/assets\/quotas.*\.js/, (route) => route.fulfill({ status: 404, body: '' }));
    await page.getByRole('link', { name: 'Quotas' }).click();
    await page.getByRole('heading', { level: 1, name: 'This page does not show' }).waitFor();
    await page.getByText(/could not be loaded/).waitFor();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    // Other pages can still be used.
    await page.getByRole('link', { name: 'Devices' }).click();
    await page.getByRole('heading', { level: 1, name: 'Devices' }).waitFor();
    await page.getByRole('link', { name: 'Quotas' }).click();
    await page.getByRole('heading', { level: 1, name: 'This page does not show' }).waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Reload the page' }).click();
    await page.getByRole('heading', { level: 1, name: 'Quotas' }).waitFor();
    forgive();
  });

  test("stays without a connection, in the page's language, and waits for the server", async () => {
    const page = await open({ language: 'zh-CN' });
    await page.context().setOffline(true);
    await page.getByRole('link', { name: '用量' }).click();
    await page.getByRole('heading', { level: 1, name: '此页面无法显示' }).waitFor();
    await page.getByRole('button', { name: '重新加载页面' }).click();
    await page.getByRole('alert').first().waitFor();
    await page.getByRole('navigation').first().waitFor();
    await page.context().setOffline(false);
    await page.getByRole('button', { name: '重新加载页面' }).click();
    await page.getByRole('heading', { level: 1, name: '用量' }).waitFor();
    forgive();
  });

  test('is in English if the Chinese texts cannot be loaded', async () => {
    const page = await open({ language: 'zh-CN' }, (one) =>
      one.route(/assets\/zh.*\.js/, (route) => route.fulfill({ status: 404, body: '' })),
    );
    await page.getByRole('link', { name: 'Devices' }).waitFor();
    forgive();
  });

  test('loads no key that was not requested', async () => {
    const page = await browser.page();
    const replies: string[] = [];
    page.on('response', (response) => {
      if (/\/console\/api\//.test(response.url()))
        response.text().then(
          (text) => replies.push(text),
          () => undefined,
        );
    });
    await browser.login(page, api.url, testConfig(api.databaseUrl).adminToken);
    await browser.show(page, `${api.url}/console/apps/${app.appId}`);
    await page.locator('pre').filter({ hasText: app.appKey }).waitFor();
    await browser.show(page, `${api.url}/console/apps/${app.appId}/settings`);
    expect(replies.join()).toContain(app.appKey);
    for (const key of [app.masterKey, app.hookKey]) expect(replies.join()).not.toContain(key);
    const row = page.locator('dl > div', { hasText: 'Master key' });
    await row.getByRole('button', { name: /Show/ }).click();
    await row.getByText(app.masterKey).waitFor();
    expect(replies.join()).not.toContain(app.hookKey);
  });
});
