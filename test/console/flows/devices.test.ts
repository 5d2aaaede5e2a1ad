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
  const open = async (): Promise<Page> => {
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await browser.show(page, `${service.api.url}/console/apps/${app.appId}/devices`);
    return page;
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
});
