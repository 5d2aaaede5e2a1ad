import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { useTestService } from '../../support/service.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('message class, picture, link and buttons in the composer', () => {
  const service = useTestService();
  const browser = useBrowser();
  let vendors: AllVendors;
  let app: App;
  beforeAll(async () => {
    vendors = await startVendors(service);
    app = await vendors.app('apns', 'vendor_a', 'vendor_b');
    for (const connector of ['apns', 'vendor_a', 'vendor_b']) await vendors.add(app, connector, 1);
    const { credentials } = vendors.instance('vendor_b');
    await service.api.request('PUT', `/console/api/apps/${app.appId}/profiles/vendor_b/_default`, {
      admin: true,
      body: { ...credentials, messageClasses: { order: { channel_id: '137' } } },
    });
    await service.dispatch();
  });
  afterAll(() => vendors.close());

  const open = async (language: 'en' | 'zh-CN'): Promise<Page> => {
    const page = await browser.page({ language });
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/new`);
    return page;
  };

  test('are in the body, the previews and the dry run', async () => {
    const page = await open('en');
    await page.getByLabel('Text', { exact: true }).fill('It is on its way.');
    await page.getByLabel('Image', { exact: true }).fill('http://example.com/1042.png');
    await page
      .getByText(/data\.image: expected an https/)
      .first()
      .waitFor();
    await page.getByLabel('Image', { exact: true }).fill('https://example.com/1042.png');
    await page.getByLabel('On tap', { exact: true }).fill('https://example.com/orders/1042');
    await page.getByRole('button', { name: '+ Button' }).click();
    await page.getByLabel('Title of button 1').fill('Track');
    await page.getByLabel('Link of button 1').fill('https://example.com/track');
    await page.getByRole('button', { name: '+ Button' }).click();
    await page.getByLabel('Title of button 2').fill('Later');
    await page.getByLabel('Message class', { exact: true }).selectOption('order');
    await page.getByText('Order: no daily limit').first().waitFor();
    await page.getByText("Missing: the vendor's right to this class").waitFor();
    await page.getByText('Missing: template_id, template_param').waitFor();
    await page.getByText('Not shown: image, buttons').first().waitFor();
    const system = page.getByLabel('System');
    await system.selectOption({ value: 'apns' });
    await page.getByRole('img', { name: /Track\. Later/ }).waitFor();
    await page.getByText('An extension of the app shows the image').waitFor();
    await system.selectOption({ value: 'vendor_a' });
    await page.getByRole('img', { name: /Track\. Later/ }).waitFor();
    await page.getByRole('tab', { name: 'JSON' }).click();
    const json = await page.getByRole('textbox', { name: 'JSON' }).inputValue();
    expect(JSON.parse(json)).toEqual({
      where: {},
      class: 'order',
      data: {
        alert: 'It is on its way.',
        image: 'https://example.com/1042.png',
        url: 'https://example.com/orders/1042',
        buttons: [
          { id: 'button1', title: 'Track', url: 'https://example.com/track' },
          { id: 'button2', title: 'Later' },
        ],
      },
    });
    await page.getByRole('tab', { name: 'Form' }).click();
    await page.getByRole('button', { name: 'Remove button 2' }).click();
    await page.getByRole('button', { name: /^Send to 3 device/ }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('Done', { exact: true }).waitFor();
    const [request] = vendors.instance('vendor_a').requests();
    expect(JSON.parse(String(request?.body))).toMatchObject({
      message: {
        android: {
          category: 'EXPRESS',
          notification: { image: 'https://example.com/1042.png', buttons: [{ name: 'Track' }] },
        },
      },
    });
    expect(vendors.instances.flatMap((one) => one.violations())).toEqual([]);
  });

  test('are in Chinese', async () => {
    const page = await open('zh-CN');
    await page.getByLabel('图片', { exact: true }).fill('https://example.com/1042.png');
    await page.getByRole('button', { name: '＋ 按钮' }).click();
    await page.getByLabel('按钮 1 的标题').fill('查看');
    await page.getByLabel('消息类别', { exact: true }).selectOption('news');
    await page.getByText('新闻: 每台设备每天最多 2 条').waitFor();
    await page.getByText('不显示：图片, 按钮').first().waitFor();
  });
});
