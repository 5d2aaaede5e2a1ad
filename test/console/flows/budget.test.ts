import type { CDPSession } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

/**
 * Requests of the first page until it has the list, by the clock of the page: its document, code,
 * styles, texts and three calls.
 */
const maxRequests = 9;
/**
 * The panels above the list are loaded after it. The browser itself requests the icon. The request
 * for the version follows two seconds after the page is loaded.
 */
const requestsUntilList = `(() => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const list = all.find(({ name }) => /console\\/api\\/apps\\?/.test(name));
  return all
    .filter(({ name, startTime }) => startTime < list.responseEnd && !/icon\\.svg$|build\\.json$/.test(name))
    .map(({ name }) => name);
})()`;
const rows = 200;
/**
 * Limit on the CPU time of the page's main thread until a list of 200 rows is shown. It is for a
 * machine that takes 60 ms for `workload`.
 */
const maxMs = 400;
const workloadMs = 60;

/**
 * Measures the speed of this machine with work like a page's: objects, texts and a list of
 * elements.
 */
const workload = `(() => {
  for (let round = 0; round < 20; round++) {
    const list = Array.from({ length: 5000 }, (_, at) => ({ at, text: 'row ' + (at * 7919) % 5000 }));
    list.sort((a, b) => (a.text < b.text ? -1 : 1));
    JSON.parse(JSON.stringify(list));
  }
})()`;

describe.skipIf(!hasChromium)('the first page of the console', () => {
  const api = useTestApi();
  const browser = useBrowser();

  test('needs few requests, and little CPU time for 200 rows', async () => {
    for (let at = 0; at < rows; at += 1) await api.createApp();
    const page = await browser.page();
    await browser.login(page, api.url, testConfig(api.databaseUrl).adminToken);
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(`${api.url}/console`);
    await page.getByRole('row').nth(rows).waitFor();
    const listShownMs = await taskMs(session);
    const requests = await page.evaluate<string[]>(requestsUntilList);
    expect(requests.join()).toContain('/console/api/apps?');
    expect(requests.length).toBeLessThanOrEqual(maxRequests);
    await page.evaluate(workload);
    const workMs = (await taskMs(session)) - listShownMs;
    expect(listShownMs).toBeLessThan(maxMs * Math.max(1, workMs / workloadMs));
  });

  test('leads to every app, even if one page cannot show all', async () => {
    const last = (
      await api.request('POST', '/console/api/apps', { admin: true, body: { name: 'Zoo' } })
    ).body;
    const page = await browser.page();
    await browser.login(page, api.url, testConfig(api.databaseUrl).adminToken);
    const link = page.locator(`main a[href$="/apps/${last.appId}"]`);
    await page.getByRole('row').nth(rows).waitFor();
    await expect.poll(() => link.count()).toBe(0);
    await page.getByRole('button', { name: 'Next' }).click();
    await link.waitFor();
    await page.getByLabel('Name or ID of an app').fill('zOO');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=zOO/);
    await link.click();
    await page.getByRole('heading', { level: 1, name: 'Zoo' }).waitFor();
    await page.getByRole('button', { name: 'App: Zoo. Choose another one' }).click();
    await page.getByRole('menuitem', { name: 'More apps: search…' }).click();
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.locator('[role=combobox]:focus').fill('zoo');
    await page.getByRole('option', { name: last.appId }).waitFor();
  });

  test('lets owners choose any app for a token and in the audit log', async () => {
    const body = { name: 'Last of all' };
    const last = (await api.request('POST', '/console/api/apps', { admin: true, body })).body;
    const page = await browser.page();
    await browser.login(page, api.url, testConfig(api.databaseUrl).adminToken);
    await page.goto(`${api.url}/console/audit?app=${last.appId}`);
    await page.getByRole('cell', { name: 'Last of all' }).first().waitFor();
    const choice = page.getByLabel('App', { exact: true });
    await expect.poll(() => choice.locator('option:checked').textContent()).toBe('Last of all');
    await page.goto(`${api.url}/console/people`);
    await page.getByRole('button', { name: 'New token' }).click();
    await page.getByLabel('Name', { exact: true }).fill('bot');
    await page.getByLabel('Name or ID of an app').fill('last OF');
    await page.getByLabel('App', { exact: true }).selectOption('Last of all');
    await page.getByRole('button', { name: 'Create the token' }).click();
    await page.getByText('The token of bot is created.').waitFor();
    const tokens = await api.request('GET', '/console/api/tokens', { admin: true });
    expect(tokens.body.results[0]).toMatchObject({ name: 'bot', apps: [last.appId] });
  });
});

/** Returns the CPU time of a page's main thread since its navigation. */
async function taskMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN);
}
