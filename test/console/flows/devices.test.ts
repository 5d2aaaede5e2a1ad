import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { accessibilityFaults } from '../browser/accessibility.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the list of devices', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addIosInstallations(app, 4, { city: 'Rome', level: 3 });
    await service.addIosInstallations(app, 2, { city: 'Oslo', level: 7 });
  });
  const open = async (path = '', of = app): Promise<Page> => {
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await browser.show(page, `${service.api.url}/console/apps/${of.appId}/devices${path}`);
    return page;
  };
  const admin = async (method: string, path: string, of = app) => {
    const address = `/console/api/apps/${of.appId}/installations${path}`;
    return (await service.api.request(method, address, { admin: true })).body;
  };

  test('is filtered by conditions that are built from rows', async () => {
    const page = await open();
    await page.getByText('6 match').waitFor();
    await page.getByText('Condition', { exact: true }).click();
    await page.getByRole('button', { name: '+ Condition' }).click();
    await expect
      .poll(() => page.getByRole('button', { name: 'Show these devices' }).isDisabled())
      .toBe(true);
    await page.getByLabel('Field', { exact: true }).fill('level');
    // The type of the field is known.
    await page.getByLabel('Comparison').selectOption('is at least');
    await page.getByLabel('Value', { exact: true }).fill('5');
    await page.getByText('Without this line: 6 devices').waitFor();
    await page.getByRole('button', { name: 'Show these devices' }).click();
    await page.getByText('2 match').waitFor();
    await expect.poll(() => page.getByRole('row').count()).toBe(3);
    await page.reload();
    await page.getByText('1 condition', { exact: true }).waitFor();
    await page.getByText('2 match').waitFor();
    await page.getByRole('link', { name: 'Push to these' }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await page.getByText('6 match').waitFor();
  });

  test('has the columns that a person chose, also after a reload', async () => {
    const page = await open();
    await page.getByText('Columns', { exact: true }).click();
    await page.getByLabel('city', { exact: true }).check();
    await page.getByLabel('Registered').uncheck();
    await page.reload();
    await page.getByRole('columnheader', { name: 'city' }).waitFor();
    await page.getByRole('cell', { name: 'Oslo' }).first().waitFor();
    await expect.poll(() => page.getByRole('columnheader', { name: 'Registered' }).count()).toBe(0);
  });

  test('changes only what a person entered, and shows no form of another device', async () => {
    const [first, second] = (await admin('GET', '')).results.map(
      ({ objectId }: { objectId: string }) => objectId,
    );
    const page = await open(`/${first}`);
    const members = page.getByLabel('Members as JSON');
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await members.fill((await members.inputValue()).replace('Oslo', 'Wien'));
    // The device itself saves another member while the form is open, and the page loads it.
    const save = { app, master: true, body: { badge: 77 } };
    const saved = await service.api.request('PUT', `/1.1/installations/${first}`, save);
    expect(saved.status).toBe(200);
    await expect
      .poll(async () => {
        await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
        return page.getByText('77', { exact: true }).count();
      })
      .toBe(1);
    await page.getByRole('button', { name: 'Save the changes' }).click();
    await members.waitFor({ state: 'detached' });
    const { installation } = await admin('GET', `/${first}`);
    expect(installation).toMatchObject({ city: 'Wien', badge: 77 });
    const find = async (id: string) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Search everything' }).fill(id);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: `Device ${id}`, level: 1 }).waitFor();
      await page.getByRole('heading', { name: 'Send a test' }).waitFor();
    };
    // The pages of both devices show the loaded data at once.
    for (const id of [second, first]) await find(id);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await members.waitFor();
    await find(second);
    expect(await members.count()).toBe(0);
  });

  test('shows the filters that it applies, and leads back from an empty page', async () => {
    const few = await service.api.createApp();
    await service.addIosInstallations(few, 2);
    const { results, next } = await admin('GET', '?limit=1', few);
    const page = await open('', few);
    await page.getByRole('searchbox').fill('unknown');
    await page.keyboard.press('Enter');
    await page.getByText('No device matches.').waitFor();
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await expect.poll(() => page.getByRole('searchbox').inputValue()).toBe('');
    await page.getByText('Condition', { exact: true }).click();
    await page.getByLabel('Condition as JSON').fill('5');
    await page.getByText('This is not JSON.').waitFor();
    await page.getByLabel('Condition as JSON').fill('{}');
    const shown: string[] = (await admin('GET', '', few)).results.map(
      ({ objectId }: { objectId: string }) => objectId,
    );
    const last = shown.find((id) => id !== results[0].objectId);
    await admin('DELETE', `/${last}`, few);
    await browser.show(
      page,
      `${service.api.url}/console/apps/${few.appId}/devices?cursor=${encodeURIComponent(JSON.stringify(next))}`,
    );
    await page.getByRole('button', { name: 'First page' }).click();
    await page.getByRole('link', { name: results[0].objectId }).waitFor();
  });
});
