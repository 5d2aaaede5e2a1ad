import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';
import { hasChromium, type PageOptions, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the guides in the console', () => {
  const api = useTestApi();
  const browser = useBrowser();
  let app: App;
  let viewerToken = '';
  beforeAll(async () => {
    app = await api.createApp();
    const body = { name: 'Reader', role: 'viewer', apps: [app.appId] };
    const reply = await api.request('POST', '/console/api/tokens', { admin: true, body });
    viewerToken = reply.body.token;
  });

  /** Opens a path as a person with the fewest rights. */
  const open = async (path: string, options: PageOptions = {}): Promise<Page> => {
    const page = await browser.page(options);
    await browser.login(page, api.url, viewerToken);
    await browser.show(page, `${api.url}/console${path}`);
    return page;
  };
  const title = (page: Page, name: string) =>
    page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
  /** Returns the distance of an element from the upper edge of the window. */
  const topOf = (page: Page, id: string) =>
    page.evaluate<number>(`document.getElementById('${id}').getBoundingClientRect().top`);
  const untilAtTop = async (page: Page, id: string) => {
    await expect.poll(() => topOf(page, id)).toBeLessThan(100);
    expect(await topOf(page, id)).toBeGreaterThanOrEqual(0);
  };
  const focused = (page: Page) =>
    page.evaluate<string>('document.activeElement?.textContent ?? ""');

  test('open from the help of a page, and lead to each other and to their sections', async () => {
    const page = await open(`/apps/${app.appId}/quotas`);
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByRole('link', { name: 'Sending' }).click();
    await title(page, 'Sending');
    expect(new URL(page.url()).pathname).toBe('/console/docs/sending');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => focused(page)).toBe('Sending');
    await expect.poll(() => page.title()).toBe('Sending · Carillon');
    await page.getByRole('link', { name: 'hours in which a device gets nothing' }).click();
    await untilAtTop(page, 'quiet-hours');
    await page.getByRole('link', { name: 'Getting started' }).first().click();
    await title(page, 'Getting started');
    await untilAtTop(page, '2-create-an-app');
    await page.reload();
    await untilAtTop(page, '2-create-an-app');
    await page.goBack();
    await title(page, 'Sending');
    await page.getByRole('link', { name: 'Getting started' }).first().click();
    await untilAtTop(page, '2-create-an-app');
    await page.getByRole('link', { name: 'All guides' }).click();
    await title(page, 'Documentation');
    await page.getByRole('link', { name: 'redrive' }).click();
    await title(page, 'Redrive: send again to recipients that a push did not reach');
  });

  test("are in the reader's language, or say that they are in English", async () => {
    const page = await open('/docs/sending', { language: 'zh-CN' });
    await title(page, '发送推送');
    await page.locator('article').getByRole('link', { name: '入门' }).first().click();
    await title(page, '入门');
    await untilAtTop(page, '2-创建应用');
    await page.reload();
    await untilAtTop(page, '2-创建应用');
    await page.getByRole('link', { name: '全部文档' }).click();
    await title(page, '文档');
    await page.getByRole('link', { name: '性能' }).click();
    await title(page, 'Performance');
    await page.getByText('这篇文档只有英文版。').waitFor();
    expect(await page.locator('article').getAttribute('lang')).toBe('en');
    await page.getByRole('button', { name: 'English' }).click();
    await page.getByText('All guides').waitFor();
    expect(await page.locator('article').getAttribute('lang')).toBeNull();
    await browser.show(page, `${api.url}/console/docs/nothing`);
    await title(page, 'Page not found');
  });

  test('are found by their titles in both languages, and are in the navigation', async () => {
    const page = await open('');
    await page.getByRole('link', { name: 'Documentation' }).click();
    await title(page, 'Documentation');
    for (const words of ['troubleshoot', '排查']) {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill(words);
      await page.getByRole('option', { name: 'Guide Troubleshooting' }).click();
      await title(page, 'Troubleshooting');
    }
  });

  test('can be loaded again if their file is gone after an upgrade', async () => {
    const page = await open('/docs');
    await page.route(/assets\/guide-sending.*\.js/, (route) =>
      route.fulfill({ status: 404, body: '' }),
    );
    await page.getByRole('link', { name: 'sending' }).click();
    await title(page, 'This page does not show');
    await page.getByRole('link', { name: 'Documentation' }).click();
    await title(page, 'Documentation');
    await page.getByRole('link', { name: 'sending' }).click();
    await title(page, 'This page does not show');
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Reload the page' }).click();
    await title(page, 'Sending');
    // React logs the caught exception.
    browser.faults.splice(0);
  });

  test('are not loaded with other pages', async () => {
    const page = await browser.page();
    const files: string[] = [];
    page.on('request', (request) => files.push(new URL(request.url()).pathname));
    await browser.login(page, api.url, viewerToken);
    await browser.show(page, `${api.url}/console/apps/${app.appId}`);
    expect(files.filter((file) => /assets\/guide/.test(file))).toEqual([]);
    await browser.show(page, `${api.url}/console/docs/sending`);
    const pages = files.filter((file) => /assets\/guide-.*\.js$/.test(file));
    expect(pages.filter((file) => !file.includes('guide-page'))).toHaveLength(1);
  });
});
