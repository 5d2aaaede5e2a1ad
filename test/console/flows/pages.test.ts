import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { findDevice } from '../../support/tables.ts';
import { accessibilityFaults } from '../browser/accessibility.ts';
import { hasChromium } from '../browser/browser.ts';
import { useScene } from '../browser/scene.ts';

describe.skipIf(!hasChromium)('pages of the console', () => {
  const { service, scene, login, show } = useScene();
  const focused = (page: Page) =>
    page.evaluate<string>('document.activeElement?.textContent ?? ""');

  test('are found by their names in LeanCloud, in both languages', async () => {
    const page = await login();
    await show(page, `/apps/${scene().app.appId}`);
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox');
    await field.waitFor();
    for (const [words, found] of [
      ['推送记录', 'Pushes'],
      ['在线发送', 'New push'],
      ['_installation', 'Devices'],
      ['混合推送', 'Gateways'],
    ] as const) {
      await field.fill(words);
      await page.getByRole('option', { name: found }).waitFor();
    }
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await field.waitFor({ state: 'detached' });
  });

  test('show what an id, a token or a name finds, by keyboard only', async () => {
    const { app, pushId, deviceId, deviceToken } = scene();
    const device = await findDevice(service.db, app, { deviceToken });
    const body = { username: 'anna', password: 'secret' };
    const user = await service.api.request('POST', '/1.1/users', { app, body });
    const page = await login();
    await show(page, '/operating');
    for (const [text, title, path] of [
      [pushId, 'Sale ends tonight · Everything −30 %', `/pushes/${pushId}`],
      [deviceToken, `Device ${device.objectId}`, `/devices/${device.objectId}`],
      [deviceId, `Device ${deviceId}`, `/devices/${deviceId}`],
      ['anna', 'anna', `/users/${user.body.objectId}`],
    ] as const) {
      await page.keyboard.press('Control+k');
      await page.locator('[role=combobox]:focus').waitFor();
      // Enter waits for the results of the text.
      await page.keyboard.insertText(text);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
      expect(decodeURIComponent(page.url())).toContain(path);
      await expect.poll(() => focused(page)).toContain(title);
    }
  });

  test('are live, poll if the stream is lost, and become live again', async () => {
    const { app, openPushId } = scene();
    const path = `/apps/${app.appId}/notifications/${openPushId}`;
    const control = (verb: string) =>
      service.api.request('POST', `/console/api${path}/${verb}`, { admin: true, body: {} });
    const page = await login();
    await page.route('**/console/api/events*', (route) => route.abort());
    await show(page, `/apps/${app.appId}/pushes/${openPushId}`);
    await page.getByText('circuit open, 298 wait').waitFor();
    await page.getByText(/^○ As of/).waitFor();
    await control('pause');
    await page.getByText('Paused', { exact: true }).waitFor();
    await page.unroute('**/console/api/events*');
    await page.getByText('● Live').waitFor();
    await control('resume');
    await page.getByText('Sending', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('● Live').waitFor();
    const body = {
      data: { alert: 'Later' },
      push_time: new Date(Date.now() + 3_600_000).toISOString(),
    };
    await service.api.request('POST', '/1.1/push', { app, master: true, body });
    await page.getByText('1 scheduled').waitFor();
  });
});
