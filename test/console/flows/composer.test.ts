import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { useTestService } from '../../support/service.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the composer', () => {
  const service = useTestService();
  const browser = useBrowser();
  let vendors: AllVendors;
  let app: App;
  beforeAll(async () => {
    vendors = await startVendors(service);
    app = await vendors.app('apns', 'vendor_e');
    await service.addIosInstallations(app, 3, { locale: 'zh_CN', nickname: 'Ann' });
    await service.addIosInstallations(app, 1, { locale: 'fr-FR', nickname: 'Bo' });
    await service.dispatch();
  });
  afterAll(() => vendors.close());

  const open = async (): Promise<Page> => {
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/new`);
    return page;
  };
  const body = async (page: Page) => {
    await page.getByRole('tab', { name: 'JSON' }).click();
    return JSON.parse(await page.getByRole('textbox', { name: 'JSON' }).inputValue());
  };

  test('translates into the languages of the devices, and shows a text on a real device', async () => {
    const page = await open();
    await page.getByLabel('Text', { exact: true }).fill('Hello {{nickname}}');
    await page.getByText('Languages', { exact: true }).click();
    await page.getByRole('button', { name: /Chinese.* zh-Hans \(75%\)/ }).click();
    await page.getByLabel('Text in zh-Hans').fill('你好');
    await page.getByText('Personalisation', { exact: true }).click();
    await page.getByLabel('Name of another variable').fill('nickname');
    await page.getByRole('button', { name: 'Add variable' }).click();
    const example = page.getByRole('region', { name: 'Example of a real device' });
    await example.getByText(/Hello (Ann|Bo)/).waitFor();
    await page.getByRole('button', { name: '+ Condition' }).click();
    await page.getByLabel('Field', { exact: true }).fill('nickname');
    await page.getByLabel('Value', { exact: true }).fill('Bo');
    await example.getByText('Hello Bo').waitFor();
    await page.getByRole('button', { name: /^Send to 1 device/ }).click();
    const question = page.getByRole('alertdialog');
    await question.getByText('Hello {{nickname}}').waitFor();
    await question.getByText('nickname is Bo').waitFor();
    await question.getByText('zh-Hans').waitFor();
    await question.getByText('Now', { exact: true }).waitFor();
    await question.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByRole('heading', { name: 'Hello {{nickname}}', level: 1 }).waitFor();
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/new`);
    await page.getByRole('button', { name: 'Saved audiences' }).click();
    await page.getByRole('heading', { name: 'Recent audiences' }).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Use' }).click();
    expect(await body(page)).toMatchObject({ where: { nickname: 'Bo' } });
  });

  test('says at the field that the text is too long for a vendor of the audience', async () => {
    await vendors.add(app, 'vendor_e', 1);
    const page = await open();
    await page.getByLabel('Text', { exact: true }).fill('Short');
    await page.getByText('5 of 100 characters (vivo)').waitFor();
    await page.getByLabel('Title', { exact: true }).fill('x'.repeat(42));
    await page.getByText('2 characters too many for vivo: at most 40.').waitFor();
    await page.getByLabel('+ Override for a platform').selectOption('vivo');
    await page.getByLabel('Title for vivo').fill('Short');
    await page.getByText('42 characters', { exact: true }).waitFor();
  });

  test('keeps delivery closed until it is set, and takes ids from a file', async () => {
    const page = await open();
    await page.getByLabel('Text', { exact: true }).fill('To some');
    await expect.poll(() => page.getByLabel('Expires').isVisible()).toBe(false);
    await page.getByText('Schedule and delivery').click();
    await page.getByLabel('Quiet hours').selectOption('own');
    await page.getByLabel('Quiet until').fill('07:30');
    await page.getByLabel('Pushes per device and day').fill('2');
    await page.getByText('Now · 2 settings').waitFor();
    expect(await body(page)).toMatchObject({ quiet_hours: '22:00-07:30', device_cap: 2 });
    await page.reload();
    await page.getByRole('tab', { name: 'Form' }).click();
    await page.getByLabel('Expires').waitFor();
    await page.getByLabel('List of devices').check();
    const file = (text: string) => ({
      name: 'ids.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(text),
    });
    const input = page.locator('input[type=file]');
    await input.setInputFiles(file('name,device_token\nAnn,aa11\nBo,"bb22"\n'));
    await page.getByText('IDs read: 2').waitFor();
    const many = Array.from({ length: 501 }, (_, at) => `id${at}`).join('\n');
    await input.setInputFiles(file(many));
    await page.getByText(/^The file has 501 IDs/).waitFor();
    expect(await body(page)).toMatchObject({ device_ids: ['aa11', 'bb22'] });
  });

  test('keeps a scheduled push while its time is edited, in the JSON and in the form', async () => {
    const page = await open();
    await page.getByRole('tab', { name: 'JSON' }).click();
    const draft = { where: {}, data: { alert: 'Later' }, push_time: 'tomorrow' };
    await page.getByRole('textbox', { name: 'JSON' }).fill(JSON.stringify(draft));
    await page
      .getByText(/push_time/)
      .first()
      .waitFor();
    await page.getByRole('tab', { name: 'Form' }).click();
    await expect.poll(() => page.getByLabel('Schedule', { exact: true }).isChecked()).toBe(true);
    await page.getByLabel('Now', { exact: true }).check();
    await page.getByLabel('Schedule', { exact: true }).check();
    const time = page.locator('input[type=datetime-local]');
    await time.fill('');
    await expect.poll(() => page.getByLabel('Schedule', { exact: true }).isChecked()).toBe(true);
    await time.fill('2030-01-01T20:00');
    expect(await body(page)).toMatchObject({
      push_time: expect.stringMatching(/^20(30-01-01|29-12-31)T/),
    });
  });

  test('changes a recurring push only after it is loaded', async () => {
    const definition = {
      name: 'Leap day',
      expression: '0 9 29 2 *',
      timeZone: 'Asia/Shanghai',
      body: { where: {}, data: { alert: 'Leap' } },
    };
    const path = `/console/api/apps/${app.appId}/recurring-pushes`;
    const created = await service.api.request('POST', path, { admin: true, body: definition });
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route('**/recurring-pushes?*', async (route) => {
      asked.resolve();
      await released.promise;
      await route.continue();
    });
    await page.goto(
      `${service.api.url}/console/apps/${app.appId}/pushes/new?repeat=${created.body.id}`,
    );
    await asked.promise;
    await page.locator('main [aria-busy=true]').first().waitFor();
    expect(await page.getByRole('button', { name: 'Create', exact: true }).count()).toBe(0);
    released.resolve();
    await page.getByRole('heading', { name: 'Change Leap day', level: 1 }).waitFor();
    await expect.poll(() => page.getByLabel('Cron expression').inputValue()).toBe('0 9 29 2 *');
  });
});
