import { beforeAll, describe, expect, test } from 'vitest';
import { query } from '../../../shared/db/query.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('Live Activities in a browser', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 3);
    const [objectId] = await query(service.db).column<string>(
      'SELECT object_id FROM installation WHERE app_id = $1',
      [app.appId],
    );
    for (const name of [{ attributesType: 'OrderAttributes' }, { activityId: 'order-1' }])
      await service.api.request('POST', '/1.1/liveActivities/tokens', {
        app,
        body: { objectId, token: `ab${'0'.repeat(60)}`, ...name },
      });
    await service.dispatch();
  });
  const open = async () => {
    const page = await browser.page({});
    const { adminToken } = testConfig(service.databaseUrl);
    await browser.login(page, service.api.url, adminToken);
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/live-activities`);
    return page;
  };
  const last = () => JSON.parse(String(service.apns.requests.at(-1)?.body)).aps;

  test('are started after a dry run of the same content', async () => {
    const page = await open();
    const send = page.getByRole('button', { name: 'Send', exact: true });
    await page.getByLabel('Type of the attributes').fill('OrderAttributes');
    await page.getByLabel('Content state').fill('{"stage": 1}');
    await page.getByLabel('Title of the alert').fill('On its way');
    await expect.poll(() => send.isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('Devices that have no token for it and get nothing: 2.').waitFor();
    await page.getByText('"attributes-type": "OrderAttributes"').waitFor();
    await page.getByLabel('Title of the alert').fill('Nearly there');
    await expect.poll(() => send.isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('"title": "Nearly there"').waitFor();
    await send.click();
    await page.getByText('The push is accepted.').waitFor();
    await expect.poll(() => service.apns.total).toBe(1);
    expect(last()).toMatchObject({ event: 'start', alert: { title: 'Nearly there' } });
  });

  test('are updated and ended', async () => {
    const page = await open();
    for (const [action, event] of [
      ['Update', 'update'],
      ['End', 'end'],
    ] as const) {
      await page.getByLabel('Action', { exact: true }).selectOption(action);
      await page.getByLabel('Activity', { exact: true }).fill('order-1');
      await page.getByLabel('Content state').fill(`{"at": "${event}"}`);
      await page.getByRole('button', { name: 'Dry run' }).click();
      await page.locator('pre').getByText(`"event": "${event}"`).waitFor();
      await page.getByRole('button', { name: 'Send', exact: true }).click();
      await expect.poll(() => last()).toMatchObject({ event, 'content-state': { at: event } });
    }
  });

  test('of a new channel get a broadcast, and the channel is deleted', async () => {
    const page = await open();
    await page.getByText('There are no channels.').waitFor();
    await page.getByRole('button', { name: 'Create a channel' }).click();
    const row = page.getByRole('row').nth(1);
    await row.getByRole('button', { name: 'Broadcast' }).click();
    await page.getByLabel('Content state').fill('{"stage": 7}');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.locator('pre').getByText('"stage": 7').waitFor();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await expect.poll(() => last()).toMatchObject({ 'content-state': { stage: 7 } });
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are no channels.').waitFor();
    expect(service.apns.channels.of('com.example.app').size).toBe(0);
  });
});
