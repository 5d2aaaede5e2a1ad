import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { accessibilityFaults } from '../browser/accessibility.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

const width = 390;
const height = 900;
/** Height of the bar above every page. */
const maxBarPx = 60;
/** Smaller fonts make the browser of a phone zoom in on focus. */
const minFontPx = 16;

describe.skipIf(!hasChromium)('the console on a phone', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 5);
    await service.dispatch();
  });
  const open = async (path: string): Promise<Page> => {
    const page = await browser.page({ width });
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await browser.show(page, `${service.api.url}/console/apps/${app.appId}${path}`);
    return page;
  };

  test('has one bar, whose menu leads to every page and closes itself', async () => {
    const page = await open('');
    const bar = await page.locator('header').first().boundingBox();
    expect(bar?.height).toBeLessThanOrEqual(maxBarPx);
    await expect.poll(() => page.getByRole('link', { name: 'Devices' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Menu' }).click();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Freeze the app' }).waitFor();
    await page.getByRole('link', { name: 'Devices' }).click();
    await page.getByRole('heading', { name: 'Devices', level: 1 }).waitFor();
    await expect
      .poll(() => page.getByRole('link', { name: 'Pushes', exact: true }).count())
      .toBe(0);
  });

  test('composes and stops a push with one hand', async () => {
    const page = await open('/pushes/new');
    const sizes = await page.evaluate<number[]>(
      `[...document.querySelectorAll('main :is(input:not([type=radio], [type=checkbox], [type=file]), textarea, select)')]
        .map((field) => parseFloat(getComputedStyle(field).fontSize))`,
    );
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(minFontPx);
    await page.getByLabel('Text', { exact: true }).fill('From a phone');
    const send = page.getByRole('button', { name: 'Send to 5 devices' });
    await send.waitFor();
    // Without scrolling, the button is at the lower edge.
    const box = await send.boundingBox();
    expect(box?.y).toBeGreaterThan(height / 2);
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(height);
    const breaker = `/console/api/breakers/apns:${app.appId}:_default`;
    await service.api.request('POST', `${breaker}/open`, { admin: true, body: {} });
    await send.click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByRole('heading', { name: 'From a phone', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
  });

  test('keeps a long form of filters behind one button, which counts them', async () => {
    const page = await open('/pushes?status=done');
    await expect.poll(() => page.getByLabel('State').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Filters (1 set)' }).click();
    await page.getByLabel('State').selectOption('');
    await page.getByRole('button', { name: 'Filters', exact: true }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  test('shows the shortcuts, and opens the guide about the page', async () => {
    const page = await open('/devices');
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Help and shortcuts' });
    await dialog.getByText('Open Devices').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await dialog.getByRole('link', { name: 'Concepts' }).click();
    await page.getByRole('heading', { level: 1, name: 'Concepts' }).waitFor();
  });
});
