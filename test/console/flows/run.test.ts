import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { createApnsCredentials } from '../../../ops/sandbox/apns/server.ts';
import { Vault } from '../../../shared/crypto.ts';
import { keepFailedReceipt } from '../../../shared/db/tables/receipts.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { sealContexts } from '../../../shared/domain/apps/seal-contexts.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { changeFailures, readDevices } from '../../support/tables.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('operating the service in a browser', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  const pushIds: string[] = [];
  const admin = (method: 'GET' | 'POST', of: App, path: string, body?: object) =>
    service.api.request(method, `/console/api/apps/${of.appId}${path}`, {
      admin: true,
      ...(body ? { body } : {}),
    });
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 3, { city: 'Rome' });
    await service.dispatch();
    for (const alert of ['Spring sale', 'Autumn sale']) {
      const { objectId } = (await admin('POST', app, '/push', { where: {}, data: { alert } })).body;
      await service.untilDone(app, objectId);
      pushIds.push(objectId);
    }
  });
  const open = async (
    path: string,
    options: Parameters<typeof browser.page>[0] = {},
  ): Promise<Page> => {
    const page = await browser.page(options);
    await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
    await page.goto(`${service.api.url}/console${path}`);
    return page;
  };
  const openApp = (path: string) => open(`/apps/${app.appId}${path}`);
  const press = (page: Page, name: string) =>
    page.getByRole('button', { name, exact: true }).click();
  const confirm = (page: Page, name: string | RegExp) =>
    page.getByRole('alertdialog').getByRole('button', { name }).click();

  test('sends a failed push again after a dry run, with links in both directions', async () => {
    service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const { objectId } = (await admin('POST', app, '/push', { where: {}, data: { alert: 'Lost' } }))
      .body;
    await service.untilDone(app, objectId);
    service.apns.behave();
    const [device] = await readDevices(service.db, app);
    await changeFailures(service.db, app, { isUnsure: true }, [device?.deviceToken ?? '']);
    const page = await openApp('/pushes/undelivered');
    await page.getByLabel('Reason, as in the failures of a push').fill('PayloadTooLarge');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Resend: Lost' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText('1 may have it').waitFor();
    await dialog.getByText('2 devices get it.').waitFor();
    await dialog.getByLabel('Also to those that may have it').check();
    await dialog.getByText('1 of them may get it twice').waitFor();
    await dialog.getByText('3 devices get it.').waitFor();
    await confirm(page, 'Resend to 3 devices');
    await page.getByText('Resend of').waitFor();
    const [again] = (await admin('GET', app, `/notifications/${objectId}`)).body.redrives;
    expect(await service.untilDone(app, again)).toMatchObject({ outcomes: { sent: 3 } });
    await page.getByRole('link', { name: objectId }).click();
    await page.getByText('Resent to 3 devices by').waitFor();
    await expect
      .poll(() => page.getByRole('button', { name: 'Resend to undelivered' }).count())
      .toBe(0);
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/undelivered`);
    await page.getByRole('row', { name: /^Lost\s+3\s+0\s+0\s+3\s+0\s/ }).waitFor();
  });

  test('recalls a push after a dry run, and shows what was done', async () => {
    const { objectId } = (
      await admin('POST', app, '/push', { where: {}, data: { alert: 'Wrong price' } })
    ).body;
    await service.untilDone(app, objectId);
    const page = await openApp(`/pushes/${objectId}`);
    await press(page, 'Recall');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText('APNs: stays on 3').waitFor();
    await expect
      .poll(() => dialog.getByRole('button', { name: 'Recall from 0 devices' }).isDisabled())
      .toBe(true);
    await dialog.getByLabel('Replace it where it cannot be recalled').check();
    await dialog.getByLabel('New text').fill('Right price');
    await dialog.getByText('APNs: replaced on 3').waitFor();
    const before = service.apns.total;
    await confirm(page, 'Recall from 3 devices');
    await page.getByText('Recalled by').waitFor();
    await page.getByText('APNs: replaced on 3').waitFor();
    expect(service.apns.total - before).toBe(3);
    const ids = service.apns.requests.slice(-3).map(({ headers }) => headers['apns-collapse-id']);
    expect(ids).toEqual([objectId, objectId, objectId]);
    const { recall } = (await admin('GET', app, `/notifications/${objectId}`)).body;
    await page.getByRole('link', { name: recall.objectId }).click();
    await page.getByText('Recalls the push').waitFor();
    await page.getByRole('heading', { name: 'Right price', level: 1 }).waitFor();
    await expect
      .poll(() => page.getByRole('button', { name: 'Recall', exact: true }).count())
      .toBe(0);
  });

  test('shows the end of a recall on a slow network', async () => {
    const { objectId } = (
      await admin('POST', app, '/push', { where: {}, data: { alert: 'Wrong price' } })
    ).body;
    await service.untilDone(app, objectId);
    const page = await openApp(`/pushes/${objectId}`);
    await page.getByRole('heading', { name: 'Wrong price', level: 1 }).waitFor();
    let isFirst = true;
    await page.route(`**/notifications/${objectId}`, async (route) => {
      const reply = await route.fetch();
      const record = await reply.json();
      if (isFirst) record.recall.status = 'in-queue';
      // Later replies take longer than the page waits before it asks again.
      else await sleep(1500);
      isFirst = false;
      await route.fulfill({ response: reply, json: record });
    });
    await press(page, 'Recall');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByLabel('Replace it where it cannot be recalled').check();
    await dialog.getByLabel('New text').fill('Right price');
    await confirm(page, 'Recall from 3 devices');
    await page.getByText('A recall is running:').waitFor();
    await page.getByText('Recalled by').waitFor();
  });

  test('processes a refused receipt of a gateway again', async () => {
    const digest = 'refused';
    const vault = new Vault(testConfig(service.databaseUrl).secrets);
    const call = vault.seal(
      { headers: {}, body: '[]' },
      sealContexts.receipt(app.appId, 'vendor_d', digest),
    );
    const refused = {
      connector: 'vendor_d',
      digest,
      call,
      status: 400,
      reason: 'expected a list',
      bytes: 2,
    } as const;
    await keepFailedReceipt(service.db, app.appId, refused, 1);
    const page = await openApp('/profiles');
    await page.getByText('400 expected a list').waitFor();
    await press(page, 'Process again');
    await page.getByText('Calls processed: 1. Refused again: 0.').waitFor();
  });

  test('reads the credentials of a gateway from its file, and never shows a secret', async () => {
    const { teamId, keyId, privateKey } = createApnsCredentials();
    const replies: Promise<string>[] = [];
    const page = await openApp('/profiles');
    page.on('response', (response) => replies.push(response.text().catch(() => '')));
    await page.getByLabel('Profile', { exact: true }).fill('second');
    await press(page, 'Enter credentials');
    await press(page, 'Save');
    await page.getByText('Required').first().waitFor();
    const file = {
      name: `AuthKey_${keyId}.p8`,
      mimeType: 'text/plain',
      buffer: Buffer.from(privateKey),
    };
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByLabel('topics', { exact: true }).fill('com.example.app');
    await page.getByLabel('teamId', { exact: true }).fill('short');
    await press(page, 'Save');
    await page.getByRole('alert').getByText('teamId').waitFor();
    await page.getByLabel('teamId', { exact: true }).fill(teamId);
    await press(page, 'Save');
    await page
      .getByText(/^stored, SHA-256/)
      .first()
      .waitFor();
    await page.reload();
    await page
      .getByText(/^stored, SHA-256/)
      .first()
      .waitFor();
    await expect.poll(() => page.getByLabel('keyId', { exact: true }).inputValue()).toBe(keyId);
    await expect.poll(() => page.getByLabel('privateKey', { exact: true }).inputValue()).toBe('');
    const [, line = ''] = privateKey.split('\n');
    expect((await Promise.all(replies)).join('\n')).not.toContain(line);
    await press(page, 'Delete');
    await confirm(page, 'Delete the profile');
    await page.getByRole('heading', { name: 'Gateways', level: 1 }).waitFor();
    expect((await admin('GET', app, '/profiles')).body.results).toHaveLength(1);
  });

  test('stages other credentials, shows the result of the check, and rolls back', async () => {
    const path = `/console/api/apps/${app.appId}/profiles/vendor_d/_default`;
    const body = { appKey: 'k', masterSecret: 's', authEndpoint: 'http://127.0.0.1:9' };
    expect((await service.api.request('PUT', path, { admin: true, body })).status).toBe(200);
    const page = await openApp('/profiles/vendor_d/_default');
    for (const name of ['appKey', 'masterSecret'])
      await page.getByLabel(name, { exact: true }).fill('new');
    await press(page, 'Try on 1 % of the batches first');
    await page.getByRole('heading', { name: 'Rotation of the credentials' }).waitFor();
    await page.getByText('ECONNREFUSED').first().waitFor();
    await press(page, 'Roll back');
    await confirm(page, 'Roll back');
    await page.getByText('Rolled back by hand.').waitFor();
    expect((await service.api.request('DELETE', path, { admin: true })).status).toBe(200);
  });

  test('stops sending through a gateway, and resumes it', async () => {
    const page = await open('/operating');
    await press(page, 'Stop sending by APNs · _default');
    await page.getByText('Stopped (circuit open) · forced').waitFor();
    await press(page, 'Release APNs · _default');
    await page.getByText('Healthy', { exact: true }).first().waitFor();
  });

  test('shows why a gateway could not be stopped, and a freeze not be ended', async () => {
    const page = await open('/operating');
    const json = { code: 1, error: 'Cannot reach the database.' };
    await page.route('**/breakers/*/open', (route) => route.fulfill({ status: 503, json }));
    await press(page, 'Stop sending by APNs · _default');
    await page.getByRole('alert').getByText(json.error).waitFor();
    const body = { reason: 'a try' };
    const freeze = `/console/api/apps/${app.appId}/freeze`;
    await service.api.request('PUT', freeze, { admin: true, body });
    await page.route('**/freeze', (route) => route.fulfill({ status: 503, json }));
    await browser.show(page, `${service.api.url}/console/apps/${app.appId}/pushes`);
    await press(page, 'Release the app');
    await page.getByRole('alert').getByText(json.error).waitFor();
    await page.unroute('**/freeze');
    await press(page, 'Release the app');
    await page.getByText('This app is frozen: its pushes wait.').waitFor({ state: 'detached' });
  });

  test('freezes an app with a reason, shows it on its pages, and ends the freeze', async () => {
    const page = await openApp('/settings?tab=freeze');
    await page.getByLabel('Reason, for the other operators').fill('the text is wrong');
    await page.getByRole('main').getByRole('button', { name: 'Freeze the app' }).click();
    await confirm(page, 'Freeze the app');
    await page.getByText('Reason: the text is wrong').waitFor();
    const { objectId } = (await admin('POST', app, '/push', { where: {}, data: { alert: 'Held' } }))
      .body;
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes`);
    await page.getByText('This app is frozen: its pushes wait.').waitFor();
    await press(page, 'Release the app');
    await page.getByText('This app is frozen: its pushes wait.').waitFor({ state: 'detached' });
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 3 });
  });

  test('keeps an option that is changed while others are saved', async () => {
    const other = await service.api.createApp();
    const page = await open(`/apps/${other.appId}/settings?tab=rights`);
    const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(`**/apps/${other.appId}?*`, async (route) => {
      if (route.request().method() === 'PATCH') {
        asked.resolve();
        await released.promise;
      }
      await route.continue();
    });
    await page.getByLabel('Number of roles').fill('13');
    await press(page, 'Save the changes');
    await asked.promise;
    const option = page.getByRole('switch').first();
    const isOn = await option.isChecked();
    await option.setChecked(!isOn);
    released.resolve();
    const changes = page.getByRole('region', { name: 'Changes that are not saved' });
    await expect.poll(() => changes.getByRole('row').count()).toBe(2);
    expect(await option.isChecked()).toBe(!isOn);
  });

  test('saves options after showing the changes, and shows keys on a click only', async () => {
    const page = await openApp('/settings');
    await page.getByRole('tab', { name: 'Accounts' }).click();
    const verifies = page.getByRole('switch', { name: 'Verify email addresses' });
    await verifies.check();
    await page.getByRole('tab', { name: 'Rights of the app key' }).click();
    await page.getByLabel('Number of roles').fill('many');
    await page.getByText('This is not a number.').waitFor();
    await page.getByLabel('Number of roles').fill('12');
    const changes = page.getByRole('region', { name: 'Changes that are not saved' });
    await changes.getByText('10,000').waitFor();
    await press(page, 'Save the changes');
    await page.getByText('Saved. It counts within a second on every process.').waitFor();
    expect((await admin('GET', app, '')).body.options).toMatchObject({
      maxRoles: 12,
      emailVerification: true,
    });
    await page.getByRole('tab', { name: 'App and keys' }).click();
    expect(await page.content()).not.toContain(app.masterKey);
    await press(page, 'Show the Master key');
    await page.getByText(app.masterKey).waitFor();
    await press(page, 'Replace the Hook key');
    await page.getByLabel('The old key stays valid for').selectOption('0');
    await confirm(page, 'Replace the key');
    await page.getByText('Replaced.').waitFor();
    expect((await admin('GET', app, '')).body.hookKey).not.toBe(app.hookKey);
  });

  test('deletes all matching devices by their number, and none if the number changed', async () => {
    const large = await service.api.createApp();
    await service.addIosInstallations(large, 10_001, { city: 'Oslo' });
    const count = async () =>
      (await admin('GET', large, '/installations?limit=1&count=all')).body.count;
    const page = await open(
      `/apps/${large.appId}/devices?where=${encodeURIComponent('{"city":"Oslo"}')}`,
    );
    await page.getByText('10,001 match').waitFor();
    const remove = async (number: string) => {
      await press(page, 'Delete all that match');
      const dialog = page.getByRole('alertdialog');
      await expect
        .poll(() => dialog.getByRole('button', { name: /^Delete/ }).isDisabled())
        .toBe(true);
      await dialog.getByRole('textbox').fill(number);
      await confirm(page, /^Delete/);
    };
    await service.addIosInstallations(large, 5, { city: 'Oslo' });
    await remove('10001');
    await page.getByText(/so nothing was deleted/).waitFor();
    expect(await count()).toBe(10_006);
    await page.getByText('10,006 match').waitFor();
    await remove('10006');
    await page.getByText('10,006 deleted.').waitFor();
    expect(await count()).toBe(0);
  });

  test('edits a device, and sends a test to it', async () => {
    const page = await openApp('/devices?where={"city":"Rome"}');
    await page.getByRole('table').getByRole('link').first().click();
    await press(page, 'Edit');
    const members = page.getByLabel('Members as JSON');
    await members.fill((await members.inputValue()).replace('Rome', 'Wien'));
    await press(page, 'Save the changes');
    await page.getByText('"city": "Wien"').waitFor();
    await press(page, 'Send a test');
    await page.getByRole('heading', { name: 'A test from the console', level: 1 }).waitFor();
    await page.getByText('1 of 1').first().waitFor();
  });

  test('finds a user, acts on the account, and deletes it', async () => {
    const body = { username: 'bob', password: 'secret-1', email: 'bob@example.com' };
    const created = (await service.api.request('POST', '/1.1/users', { app, body })).body;
    const page = await openApp('/users');
    await page.getByRole('searchbox').fill('bob@example.com');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'bob' }).click();
    await page.getByRole('heading', { name: 'User bob' }).waitFor();
    await press(page, 'Mark the address as verified');
    await page.getByText('verified', { exact: true }).waitFor();
    await press(page, 'Log out');
    await confirm(page, 'Log out');
    await page.getByText('The session has ended.').waitFor();
    const own = { app, headers: { 'X-LC-Session': created.sessionToken } };
    expect((await service.api.request('GET', '/1.1/users/me', own)).status).toBeGreaterThanOrEqual(
      400,
    );
    await press(page, 'Delete');
    await confirm(page, 'Delete the user');
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
    expect((await admin('GET', app, `/users/${created.objectId}`)).status).toBe(404);
  });

  test('writes an SMS template, and approves it', async () => {
    const page = await openApp('/messages?tab=texts');
    await page.getByLabel('Name', { exact: true }).first().fill('order');
    await page.getByLabel('Text', { exact: true }).fill('Your order {{number}} is ready.');
    await press(page, 'Save the template');
    await page.getByText('A verification template must show {{code}}.').waitFor();
    await page.getByLabel('Type').selectOption('notification');
    await press(page, 'Save the template');
    await press(page, 'Approve order');
    await page.getByRole('row', { name: /order/ }).getByText('Approved').waitFor();
  });

  test('compares two pushes by their numbers', async () => {
    const [a = '', b = ''] = pushIds;
    const page = await openApp(`/pushes/${b}`);
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.getByLabel('First push').selectOption(a);
    const row = page.getByRole('row', { name: /^Sent/ });
    await row.waitFor();
    await expect.poll(() => row.innerText()).toMatch(/3 · 100%\s+3 · 100%/);
    expect(new URL(page.url()).search).toBe(`?a=${a}&b=${b}`);
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes`);
    for (const title of ['Spring sale', 'Autumn sale'])
      await page.getByRole('checkbox', { name: `Choose “${title}” for a comparison` }).check();
    await page.reload();
    await page.getByRole('link', { name: 'Compare (2 of 2)' }).click();
    await row.waitFor();
    await expect.poll(() => row.innerText()).toMatch(/3 · 100%\s+3 · 100%/);
  });
});
