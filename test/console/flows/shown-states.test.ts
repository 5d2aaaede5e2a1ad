import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { createToken } from '../../api/console/callers.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { changePush } from '../../support/tables.ts';
import { hasChromium, type PageOptions, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the state of a push on the pages', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp({ approvalAboveDevices: 4 });
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 3);
    await addChannelDevices(app, 2);
    await service.dispatch();
  });
  const addChannelDevices = async (of: App, count: number) => {
    for (let at = 0; at < count; at += 1) {
      const body = { deviceType: 'android', installationId: `device-${at}` };
      const reply = await service.api.request('POST', '/1.1/installations', { app: of, body });
      expect(reply.status).toBe(201);
    }
  };
  const admin = async (method: string, path: string, body: object = {}) => {
    const request = { admin: true, ...(method === 'GET' ? {} : { body }) };
    return (await service.api.request(method, `/console/api${path}`, request)).body;
  };
  const login = async (options: PageOptions & { token?: string } = {}): Promise<Page> => {
    const page = await browser.page(options);
    const token = options.token ?? testConfig(service.databaseUrl).adminToken;
    await browser.login(page, service.api.url, token);
    return page;
  };
  const open = (page: Page, path: string, of = app) =>
    browser.show(page, `${service.api.url}/console/apps/${of.appId}${path}`);
  const send = async (body: object, of = app): Promise<string> =>
    (await admin('POST', `/apps/${of.appId}/push`, { data: { alert: 'Hello' }, ...body })).objectId;
  const text = (page: Page) => page.locator('main').textContent();

  test('waits for a device that never connected, without counting a success', async () => {
    const own = await service.api.createApp();
    await addChannelDevices(own, 1);
    const page = await login();
    await open(page, '', own);
    expect(await text(page)).toContain('No gateway is set up yet');
    expect(await text(page)).not.toContain('No open breaker');
    await page.getByText('Get started').waitFor();
    const id = await send({}, own);
    await service.untilDone(own, id);
    await open(page, `/pushes/${id}`, own);
    await page.getByRole('heading', { name: '1 of 1 · waiting for the device: 1' }).waitFor();
    const row = page.getByRole('row', { name: /device channel/ });
    await expect
      .poll(() => row.getByRole('cell').allTextContents())
      .toEqual(
        ['device channel ', '', '0', '1', '0', '0', '0', '0%'].map((cell) =>
          expect.stringContaining(cell),
        ),
      );
    await open(page, '/pushes', own);
    await page.getByRole('cell', { name: '0%' }).waitFor();
    // The steps to the first push are done, even without credentials.
    await open(page, '', own);
    await page.getByText('Waiting for the device').waitFor();
    await expect.poll(() => page.getByText('Get started').count()).toBe(0);
    await changePush(service.db, own, { acked: 1 });
    await open(page, `/pushes/${id}`, own);
    await page.getByRole('heading', { name: '1 of 1', exact: true }).waitFor();
    expect(await text(page)).not.toContain('Waiting for the device');
  });

  test('shows the local time of a push at each device, which cannot be moved', async () => {
    const day = new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 11);
    const time = { push_time: `${day}20:00:00`, push_time_local: true, quiet_hours: '23:00-07:00' };
    const id = await send({ ...time, where: { deviceType: 'ios' }, data: { alert: 'Evening' } });
    const page = await login();
    for (const path of [`/pushes/${id}`, `/pushes/${id}?tab=content`, '/pushes/scheduled']) {
      await open(page, path);
      await page
        .getByText(/20:00, local time of each device/)
        .first()
        .waitFor();
    }
    await open(page, `/pushes/${id}?tab=content`);
    expect(await text(page)).toContain('23:00-07:00');
    await open(page, `/pushes/${id}`);
    for (const visibleText of ['Devices that match now: 3', '23:00-07:00', 'First time zone'])
      await page.getByText(visibleText).first().waitFor();
    await open(page, '/pushes/scheduled');
    const row = page.getByRole('row', { name: /Evening/ });
    await row.getByRole('button', { name: 'Cancel' }).waitFor();
    await expect.poll(() => row.getByRole('button', { name: 'Move' }).count()).toBe(0);
  });

  test('shows the start of a scheduled push, and that an undone one reached none', async () => {
    const push_time = new Date(Date.now() + 86_400_000).toISOString();
    const id = await send({ push_time, where: { deviceType: 'ios' }, data: { alert: 'Tomorrow' } });
    const page = await login();
    await open(page, `/pushes/${id}`);
    await page.getByText('Starts').locator(`time[datetime="${push_time}"]`).waitFor();
    await page.getByText('Devices that match now: 3').waitFor();
    await open(page, '/pushes/scheduled');
    await page
      .getByRole('row', { name: /Tomorrow/ })
      .getByRole('button', { name: 'Move' })
      .waitFor();
    await open(page, `/pushes/${id}`);
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
    await page.getByText('Cancelled before it began: no device got this push.').first().waitFor();
    expect(await text(page)).not.toContain('Finished');
    await open(page, '/pushes/undelivered');
    await page.getByText('No finished push has devices to resend to.').waitFor();
    expect(await text(page)).toContain('Cancelled pushes are not listed');
  });

  test('shows sender, devices and condition of a push that waits for approval', async () => {
    const sender = await createToken(service.api, 'sender', { name: 'marketing-bot' });
    const second = await createToken(service.api, 'operator', { name: 'Li' });
    const composer = await login({ token: sender.token });
    await open(composer, '/pushes/new');
    await composer.getByLabel('Text', { exact: true }).fill('To everybody');
    await composer.getByText(/wants an approval of pushes to more than 4 devices/).waitFor();
    const headers = { Authorization: `Bearer ${sender.token}` };
    const body = { data: { alert: 'To everybody' } };
    const path = `/console/api/apps/${app.appId}/push`;
    const { objectId } = (await service.api.request('POST', path, { headers, body })).body;
    const record = () => admin('GET', `/apps/${app.appId}/notifications/${objectId}`);
    await expect.poll(record).toMatchObject({ waitsForApproval: true });
    const page = await login({ token: second.token });
    await open(page, '');
    const attention = page.locator('section', { hasText: 'Needs attention' }).last();
    await attention.getByText('Waits for approval').waitFor();
    await attention.getByText('marketing-bot').waitFor();
    await attention.getByRole('link', { name: 'To everybody' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    const dialog = page.getByRole('alertdialog');
    for (const visibleText of ['marketing-bot', 'To everybody', 'All devices'])
      await dialog.getByText(visibleText).first().waitFor();
    await dialog.locator('dd', { hasText: /^5$/ }).waitFor();
    expect(await record()).toMatchObject({ state: 'paused' });
    await dialog.getByRole('button', { name: 'Approve and send' }).click();
    await expect.poll(record).toMatchObject({ state: 'done' });
    await page.getByText(/Approved by Li/).waitFor();
    // The sender is in the record, in the list and, for owners, next to the link to the audit log.
    const owner = await login();
    await open(owner, '/pushes');
    await owner.getByRole('cell', { name: 'marketing-bot' }).waitFor();
    await open(owner, `/pushes/${objectId}`);
    await owner.getByRole('link', { name: 'marketing-bot' }).click();
    await owner
      .getByRole('row', { name: /push.approve/ })
      .getByRole('link', { name: objectId })
      .click();
    await owner.getByRole('heading', { name: 'To everybody', level: 1 }).waitFor();
  });

  test('shows no rate for a paused push, and the freeze of a frozen push', async () => {
    const breaker = `/breakers/apns:${app.appId}:_default`;
    await admin('PATCH', `/apps/${app.appId}`, { options: { approvalAboveDevices: null } });
    await admin('POST', `${breaker}/open`);
    const id = await send({ data: { alert: 'Held' } });
    const progress = () => admin('GET', `/apps/${app.appId}/notifications/${id}/progress`);
    await expect.poll(progress).toMatchObject({ connectors: { channel: { sent: 2 } } });
    const page = await login();
    await open(page, `/pushes/${id}`);
    await page.getByText('circuit open, 3 wait').waitFor();
    expect(await text(page)).not.toMatch(/a second|left/);
    await admin('PUT', `/apps/${app.appId}/freeze`, { reason: 'wrong text' });
    await open(page, `/pushes/${id}`);
    await page.locator('h1 + *', { hasText: 'Frozen' }).waitFor();
    await open(page, '/pushes');
    await page.getByRole('row', { name: /Held/ }).getByText('Frozen').waitFor();
    await admin('DELETE', `/apps/${app.appId}/freeze`);
    await admin('POST', `${breaker}/release`);
    await service.untilDone(app, id);
  });
});
