import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { rotateOnce } from '../../../dispatcher/background/secret-rotation.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';
import { accessibilityFaults } from '../browser/accessibility.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';
import { englishIn } from '../browser/languages.ts';

const [oldKey, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const both = new Vault([newKey, oldKey]);
const [first, second = ''] = both.keyIds;

describe.skipIf(!hasChromium)('the rotation of the secret in a browser', () => {
  const env = { CARILLON_SECRET: [newKey, oldKey].map((key) => key.toString('base64')).join() };
  const api = useTestApi({ env });
  const browser = useBrowser();
  const press = (page: Page, name: string) =>
    page.getByRole('button', { name, exact: true }).click();

  test('shows the keys, asks first, and reports when the old key may be removed', async () => {
    const app = await api.createApp();
    const profile = { appId: app.appId, connector: 'vendor_d', name: '_default' } as const;
    await putProfile(api.db, new Vault([oldKey]), { ...profile, credentials: { appKey: 'k' } });
    const page = await browser.page();
    await browser.login(page, api.url, testConfig(api.databaseUrl).adminToken);
    await page.goto(`${api.url}/console/operating`);
    await page.getByRole('link', { name: 'Service secret' }).click();
    await page.getByText('No rotation to this key was requested.').waitFor();
    await press(page, 'Count now');
    await page.getByRole('row', { name: /^push_profile\.credentials\s+0\s+1\s+0$/ }).waitFor();
    await page.getByRole('row', { name: new RegExp(`^${second} .*Still needed`) }).waitFor();
    await press(page, 'Encrypt under the first key');
    await page.getByText(`Encrypt everything under ${first}?`).waitFor();
    await page
      .getByRole('alertdialog')
      .getByRole('button', { name: 'Encrypt under the first key' })
      .click();
    await page.getByText('Running', { exact: true }).waitFor();
    const deps = { db: api.db, vault: both, log: silentLog };
    while ((await rotateOnce(deps)).isMore);
    await page.getByText(`Nothing needs ${second}: remove it from CARILLON_SECRET`).waitFor();
    await page.getByRole('row', { name: new RegExp(`^${second} .*May be removed`) }).waitFor();
    await page.getByRole('row', { name: /^push_profile\.credentials\s+1\s+0\s+0$/ }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    const chinese = await browser.page({ language: 'zh-CN', theme: 'dark', width: 320 });
    await browser.login(chinese, api.url, testConfig(api.databaseUrl).adminToken);
    await browser.show(chinese, `${api.url}/console/secret`);
    expect(await englishIn(chinese)).toEqual([]);
    expect(await accessibilityFaults(chinese)).toEqual([]);
    const audit = await api.request('GET', '/console/api/audit?action=secret.rotate', {
      admin: true,
    });
    expect(audit.body.results).toMatchObject([{ target: first }]);
  });
});
