import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { addDevicesIn, awakeZone, hoursOfNow } from '../../support/gateways/quiet-hours.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevicesWith, startScheduledPushes } from '../../support/tables.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)(
  'a push with variables, quiet hours and local time, in a browser',
  () => {
    const service = useTestService();
    const browser = useBrowser();
    let app: App;
    beforeAll(async () => {
      app = await service.api.createApp();
      await service.addApnsProfile(app);
      await service.dispatch();
    });
    const compose = async (): Promise<Page> => {
      const page = await browser.page();
      await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
      await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/new`);
      return page;
    };
    const send = async (page: Page, count: number): Promise<void> => {
      await page
        .getByRole('button', { name: new RegExp(`^(Send|Schedule) (to|for) ${count} device`) })
        .click();
      await page
        .getByRole('alertdialog')
        .getByRole('button', { name: /^(Send|Schedule)$/ })
        .click();
    };
    const record = async (page: Page) => {
      const pushId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
      const path = `/console/api/apps/${app.appId}/notifications/${pushId}`;
      return (await service.api.request('GET', path, { admin: true })).body;
    };

    test('has variables, quiet hours and a frequency cap, and shows who waits', async () => {
      const hours = hoursOfNow();
      await addDevicesIn(service, app, awakeZone, 2);
      await addDevicesIn(service, app, 'Etc/UTC', 3);
      await changeDevicesWith(
        service.db,
        app,
        { timeZone: 'Etc/UTC' },
        { fields: { name: 'Ann' } },
      );
      const page = await compose();
      await page.getByLabel('Text', { exact: true }).fill('Hello {{name}}');
      await page.getByText('Personalisation', { exact: true }).click();
      await page.getByLabel('Name of another variable').fill('name');
      await page.getByRole('button', { name: 'Add variable' }).click();
      await page.getByLabel('Default of name, without the field').fill('friend');
      const [from = '', to = ''] = hours.split('-');
      await page.getByText('Schedule and delivery').click();
      await page.getByLabel('Quiet hours').selectOption('own');
      await page.getByLabel('Quiet from').fill(from);
      await page.getByLabel('Quiet until').fill(to);
      await page.getByLabel('Pushes per device and day').fill('2');
      await page
        .getByText(/within their quiet hours .* then: 3\./)
        .first()
        .waitFor();
      await send(page, 5);
      await page.getByText('Waited for quiet hours').waitFor();
      await expect.poll(() => page.getByText('Waited for quiet hours').textContent()).toMatch(/3$/);
      await expect
        .poll(() => record(page))
        .toMatchObject({
          quietWaits: 3,
          outcomes: { sent: 2 },
          request: {
            quietHours: hours,
            deviceCap: 2,
            variables: { name: { field: 'name', default: 'friend' } },
          },
          variables: [{ name: 'name', devices: 5, fallback: 2 }],
        });
      await page.getByRole('button', { name: 'Cancel', exact: true }).click();
      await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
      await expect
        .poll(() => record(page))
        .toMatchObject({ state: 'cancelled', outcomes: { dropped: 3 } });
    });

    test('shows who waits, even if its record was read before planning', async () => {
      const body = { data: { alert: 'Later' }, quiet_hours: hoursOfNow() };
      const { objectId } = (
        await service.api.request('POST', '/1.1/push', { app, master: true, body })
      ).body;
      const path = `/console/api/apps/${app.appId}/notifications/${objectId}`;
      const read = async () => (await service.api.request('GET', path, { admin: true })).body;
      await expect.poll(read).toMatchObject({ isPlanned: true, quietWaits: 3 });
      const page = await compose();
      let reads = 0;
      await page.route(`**${path}`, async (route) => {
        reads += 1;
        const response = await route.fetch();
        const { quietWaits, ...planned } = await response.json();
        const early = { ...planned, isPlanned: false };
        return route.fulfill({ response, json: reads === 1 ? early : { ...planned, quietWaits } });
      });
      await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/${objectId}`);
      await page.getByText('Waited for quiet hours').waitFor();
      expect(reads).toBe(2);
    });

    test('shows all recipients, even if it ends between two replies', async () => {
      const { objectId } = (
        await service.api.request('POST', '/1.1/push', {
          app,
          master: true,
          body: { data: { alert: 'Now' } },
        })
      ).body;
      const path = `/console/api/apps/${app.appId}/notifications/${objectId}`;
      const read = async () => (await service.api.request('GET', path, { admin: true })).body;
      await expect.poll(read).toMatchObject({ state: 'done', outcomes: { sent: 5 } });
      const page = await compose();
      let reads = 0;
      await page.route(`**${path}/progress`, async (route) => {
        reads += 1;
        const response = await route.fetch();
        const ended = await response.json();
        const early = { ...ended, status: 'in-queue', outcomes: {}, connectors: {} };
        return route.fulfill({ response, json: reads === 1 ? early : ended });
      });
      await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/${objectId}`);
      // Until the first progress arrives, the page shows the numbers of the record.
      await expect.poll(() => reads).toBe(2);
      await page.getByRole('heading', { name: '5 of 5' }).waitFor();
      expect(reads).toBe(2);
    });

    test('is sent at the local time of each device, and shows its next start', async () => {
      const page = await compose();
      await page.getByLabel('Text', { exact: true }).fill('Morning');
      await page.getByText('Schedule and delivery').click();
      await page.getByLabel('Schedule', { exact: true }).check();
      await page.getByLabel("At each device's local time").check();
      const inTwoDays = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 11);
      await page.getByLabel('Time of day at the device').fill(`${inTwoDays}09:00`);
      await send(page, 5);
      await page.getByRole('heading', { name: 'Morning', level: 1 }).waitFor();
      // Before the first zone it is a scheduled push. Its time is the time in the first zone of the
      // world.
      const before = await record(page);
      expect(before).toMatchObject({ state: 'scheduled', nextStart: null });
      await startScheduledPushes(service.db, app);
      await expect
        .poll(async () => (await record(page)).nextStart, { timeout: 30_000 })
        .not.toBeNull();
      await page.reload();
      const { nextStart } = await record(page);
      await page.getByText('Next start').locator(`time[datetime="${nextStart}"]`).waitFor();
    });
  },
);
