import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { accessibilityFaults } from '../browser/accessibility.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the list of apps', () => {
  const service = useTestService();
  const browser = useBrowser();
  let quiet: App;
  let busy: App;
  const admin = (method: 'GET' | 'POST' | 'PATCH', path: string, body?: object) =>
    service.api.request(method, `/console/api${path}`, { admin: true, ...(body ? { body } : {}) });
  const push = async (app: App, alert: string): Promise<string> => {
    const body = { data: { alert } };
    return (await service.api.request('POST', '/1.1/push', { app, master: true, body })).body
      .objectId;
  };
  const stateOf = async (app: App, id: string) =>
    (await admin('GET', `/apps/${app.appId}/notifications/${id}`)).body.state;
  beforeAll(async () => {
    quiet = await service.api.createApp();
    busy = await service.api.createApp({ approvalAboveDevices: 4 });
    await admin('PATCH', `/apps/${quiet.appId}`, { name: 'A quiet app' });
    await admin('PATCH', `/apps/${busy.appId}`, { name: 'Busy app' });
    for (const app of [quiet, busy]) await service.addApnsProfile(app);
    await service.addIosInstallations(busy, 3);
    await service.dispatch();
    await service.untilDone(busy, await push(busy, 'Before'));
  });
  const open = async (): Promise<Page> => {
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    return page;
  };

  test('shows what is being sent, and stops it in its row', async () => {
    await admin('POST', `/breakers/apns:${busy.appId}:_default/open`, {});
    const id = await push(busy, 'A wrong price');
    const page = await open();
    const row = page.getByRole('listitem').filter({ hasText: 'A wrong price' });
    await row.getByRole('link', { name: 'Busy app' }).waitFor();
    await page.getByText('Stopped (circuit open)').waitFor();
    await row.getByRole('button', { name: 'Pause: A wrong price' }).click();
    await row.getByRole('button', { name: 'Resume: A wrong price' }).waitFor();
    expect(await stateOf(busy, id)).toBe('paused');
    expect(await accessibilityFaults(page)).toEqual([]);
    await row.getByRole('button', { name: 'Cancel: A wrong price' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
    await page.getByText('Nothing is being sent.').waitFor();
    expect(await stateOf(busy, id)).toBe('cancelled');
    await admin('POST', `/breakers/apns:${busy.appId}:_default/release`, {});
  });

  test('shows who asks for an approval, and approves or rejects it', async () => {
    await service.addIosInstallations(busy, 3, { city: 'Rome' });
    const [first, second] = [await push(busy, 'Approve this'), await push(busy, 'Reject this')];
    const page = await open();
    const row = (text: string) =>
      page
        .getByRole('listitem')
        .filter({ hasText: text })
        .filter({ has: page.getByRole('button', { name: 'Reject', exact: true }) });
    await row('Approve this').getByText('All devices').waitFor();
    await row('Approve this').getByText('6', { exact: true }).waitFor();
    await row('Approve this').getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Approve and send' }).click();
    expect(await service.untilDone(busy, first)).toMatchObject({ successes: 6 });
    await row('Reject this').getByRole('button', { name: 'Reject', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Reject the push' }).click();
    await expect.poll(() => stateOf(busy, second)).toBe('cancelled');
    await page.getByText('No problems found.').waitFor();
  });

  test('is sorted by name or with the newest push first', async () => {
    const page = await open();
    const firstApp = () => page.getByRole('row').nth(1).getByRole('link').textContent();
    await page.getByRole('cell', { name: 'A quiet app' }).waitFor();
    expect(await firstApp()).toBe('A quiet app');
    await page.getByLabel('Sort by').selectOption('Newest push');
    await expect.poll(firstApp).toBe('Busy app');
    await page.reload();
    await expect.poll(firstApp).toBe('Busy app');
  });

  test('freezes the service or an app from the header and from the search', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Freeze the service' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByLabel('Reason, for the other operators').fill('a wrong price');
    await dialog.getByRole('button', { name: 'Freeze the service' }).click();
    await page.getByText('Reason: a wrong price').waitFor();
    await expect
      .poll(() => page.getByRole('button', { name: 'Freeze the service' }).count())
      .toBe(0);
    await page.getByRole('button', { name: 'Release the service' }).click();
    await page.getByText('Reason: a wrong price').waitFor({ state: 'detached' });
    await page.goto(`${service.api.url}/console/apps/${quiet.appId}`);
    await page.getByRole('heading', { name: 'A quiet app', level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await page.locator('[role=combobox]:focus').fill('freeze');
    await page.getByRole('option', { name: 'Freeze the app' }).click();
    await dialog.getByRole('button', { name: 'Freeze the app' }).click();
    await page.getByText('This app is frozen: its pushes wait.').waitFor();
    expect((await admin('GET', '/freezes')).body.results).toMatchObject([{ appId: quiet.appId }]);
  });
});
