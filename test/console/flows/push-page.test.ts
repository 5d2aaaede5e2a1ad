import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the page of a push', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 4);
    await service.dispatch();
  });
  const sent = async (data: object, members: object = {}): Promise<Page> => {
    const body = { data, ...members };
    const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    const { objectId } = reply.body;
    await service.untilDone(app, objectId);
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/${objectId}`);
    return page;
  };

  test('says in its first line how the push went, and what was delivered and opened', async () => {
    const page = await sent({ alert: 'To all' });
    await page.getByText(/^Accepted for 4 of 4 devices \(100%\), in /).waitFor();
    const funnel = page.getByRole('list', { name: 'From sent to opened' });
    await expect.poll(() => funnel.getByRole('listitem').count()).toBe(4);
    await expect.poll(() => funnel.getByRole('listitem').first().textContent()).toBe('Sent4 ');
    await funnel.getByText('No delivery was reported.').waitFor();
    await expect
      .poll(() => page.getByRole('button', { name: 'Resend to undelivered' }).count())
      .toBe(0);
  });

  test('shows message, condition and sender in words, and the JSON on a click', async () => {
    const data = {
      alert: { title: 'Sale', body: 'Two for one' },
      image: 'https://shop.example/sale.png',
      buttons: [{ id: 'more', title: 'See more', url: 'shop://sale' }],
      ios: { alert: 'Only for iPhones' },
      orderId: 7,
    };
    const page = await sent(data, { languages: { fr: { alert: 'Soldes' } }, class: 'marketing' });
    await page.getByText('the app, with one of its keys').waitFor();
    await page.getByRole('tab', { name: 'Content' }).click();
    const factOf = (name: string) =>
      page
        .locator('dl > div')
        .filter({ has: page.getByText(name, { exact: true }) })
        .locator('dd');
    const facts = {
      Title: 'Sale',
      Text: 'Two for one',
      Image: 'https://shop.example/sale.png',
      Buttons: 'See more shop://sale',
      'Text for iOS': 'Only for iPhones',
      'Text in fr': 'Soldes',
      'Message class': 'Marketing',
      orderId: '7',
    };
    for (const [name, value] of Object.entries(facts))
      expect(await factOf(name).first().textContent(), name).toBe(value);
    const json = page.getByText('"orderId": 7');
    await expect.poll(() => json.isVisible()).toBe(false);
    await page.getByText('JSON', { exact: true }).click();
    await json.waitFor();
    await page.getByRole('tab', { name: 'Audience' }).click();
    await page.getByText('All devices', { exact: true }).waitFor();
  });

  test('leads to the site of the vendor, and warns that a resend fails again', async () => {
    service.apns.misbehave({ kind: 'answer', status: 400, reason: 'PayloadEmpty' });
    const page = await sent({ alert: 'Refused' });
    service.apns.behave();
    await page.getByRole('link', { name: '4 failed: see why' }).click();
    await page.getByRole('cell', { name: /correct the content/ }).waitFor();
    await page.getByRole('button', { name: 'Resend to undelivered' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText(/The same failure will happen again/).waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    service.apns.misbehave({ kind: 'answer', status: 403, reason: 'TopicDisallowed' });
    const other = await sent({ alert: 'Forbidden' });
    service.apns.behave();
    await other.getByRole('link', { name: '4 failed: see why' }).click();
    const site = other.getByRole('link', { name: 'Open the site of APNs' });
    expect(await site.getAttribute('href')).toBe('https://developer.apple.com/account');
  });
});
