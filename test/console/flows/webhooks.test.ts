import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import {
  startWebhookReceiver,
  status,
  verified,
  type WebhookReceiver,
} from '../../support/servers/webhook-receiver.ts';
import { useTestService } from '../../support/service.ts';
import { accessibilityFaults } from '../browser/accessibility.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('webhooks in a browser', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  let receiver: WebhookReceiver;
  beforeAll(async () => {
    app = await service.api.createApp();
    receiver = await startWebhookReceiver();
    await service.dispatch();
  });
  afterAll(() => receiver.close());

  test('are created, and show in words why a delivery failed, until it is resent', async () => {
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await page.goto(`${service.api.url}/console/apps/${app.appId}/webhooks`);
    await page.getByLabel('Name', { exact: true }).fill('orders');
    await page.getByLabel('URL', { exact: true }).fill(receiver.url);
    await page.getByText('A push waits until a second person approves it.').waitFor();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const secret = await page.getByText(/^whsec_/).textContent();
    receiver.respond = status(500, {}, 'Cannot reach the database');
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.getByRole('button', { name: 'Deliveries' }).click();
    const row = page.getByRole('row').filter({ hasText: 'HTTP 500' });
    await row.getByText('Cannot reach the database').waitFor();
    await row.getByText('waiting').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    receiver.respond = status(204);
    await row.getByRole('button', { name: 'Resend' }).click();
    await page.getByRole('row').filter({ hasText: 'HTTP 204' }).getByText('delivered').waitFor();
    const received = receiver.requests.map((request) => verified(secret ?? '', request).type);
    expect(new Set(received).size).toBe(1);
  });

  test('show each new secret until the page is left', async () => {
    const other = await service.api.createApp();
    const page = await browser.page();
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await page.goto(`${service.api.url}/console/apps/${other.appId}/webhooks`);
    const create = async (name: string) => {
      await page.getByLabel('Name', { exact: true }).fill(name);
      await page.getByLabel('URL', { exact: true }).fill(receiver.url);
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page.getByRole('heading', { name, exact: true }).waitFor();
    };
    const shown = (name: string) =>
      page.getByText(`The secret of ${name} is shown only now.`).waitFor();
    await create('first');
    await page.getByRole('button', { name: /^Replace the secret.*first/ }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Replace the secret' }).click();
    await shown('first');
    await create('second');
    await shown('second');
    await page.getByRole('button', { name: 'Switch off' }).first().click();
    await page.getByRole('button', { name: 'Switch on' }).waitFor();
    await Promise.all(['first', 'second'].map(shown));
  });
});
