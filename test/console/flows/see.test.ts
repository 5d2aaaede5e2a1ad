import { text } from 'node:stream/consumers';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { textIn } from '../../../shared/domain/texts/catalogue.ts';
import { writeReplyText } from '../../../shared/domain/texts/texts.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { readDevices } from '../../support/tables.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('the console in a browser', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  /** App for pushes that fail. */
  let other: App;
  let pushId: string;
  const token = () => testConfig(service.databaseUrl).adminToken;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    other = await service.api.createApp();
    await service.addApnsProfile(other);
    await service.addIosInstallations(app, 200);
    await service.dispatch();
    const body = { data: { alert: 'Sale ends tonight' } };
    const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    pushId = reply.body.objectId;
    await service.untilDone(app, pushId);
  });
  const open = async (
    path = '',
    options: Parameters<typeof browser.page>[0] = {},
  ): Promise<Page> => {
    const page = await browser.page(options);
    await browser.login(page, service.api.url, token());
    if (path !== '') await page.goto(`${service.api.url}/console${path}`);
    return page;
  };
  const shows = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

  test('logs in only with a valid token, and stores no token in the browser', async () => {
    const page = await browser.page();
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes`);
    await page.getByLabel('Token').fill('a-wrong-token');
    await page.getByRole('button', { name: 'Log in' }).click();
    await shows(page, 'This token is not valid, or no longer.');
    await page.getByLabel('Token').fill(token());
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Pushes', level: 1 }).waitFor();
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({
      name: 'carillon',
      httpOnly: true,
      sameSite: 'Strict',
      path: '/',
    });
    const stored = await page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])',
    );
    expect(stored + (await page.content())).not.toContain(token());
    expect(cookie?.value).not.toContain(token());
  });

  test('copies a text also over http, where browsers have no clipboard for scripts', async () => {
    const page = await browser.page();
    await page.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.addInitScript(
      "window.addEventListener('copy', (event) => { window.copied = event.clipboardData.getData('text/plain'); })",
    );
    await browser.login(page, service.api.url, token());
    await page.goto(`${service.api.url}/console/people`);
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByText('Copied').first().waitFor();
    await expect.poll(() => page.evaluate('window.copied')).toBe('npx carillon login-link');
  });

  test('logs in once by a link', async () => {
    const reply = await service.api.request('POST', '/console/api/login-links', {
      admin: true,
      body: {},
    });
    const page = await browser.page();
    await page.goto(reply.body.url);
    await page.getByRole('heading', { name: 'Apps', level: 1 }).waitFor();
    expect(page.url()).not.toContain('code');
    const again = await browser.page();
    await again.goto(reply.body.url);
    await shows(again, /This link was used already/);
  });

  test('shows the login in every tab after a logout in one tab', async () => {
    const page = await open();
    const second = await page.context().newPage();
    await second.goto(`${service.api.url}/console/operating`);
    await second.getByRole('heading', { name: 'Operations' }).waitFor();
    await page.getByRole('button', { name: /admin \(owner\)/ }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.getByLabel('Token').waitFor();
    await second.reload();
    await second.getByLabel('Token').waitFor();
  });

  test('leads from the apps to a push, whose totals equal those of its record', async () => {
    const page = await open();
    await page.locator(`main a[href$="/apps/${app.appId}"]`).click();
    await page.getByRole('heading', { name: 'Test app', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Pushes', exact: true }).click();
    await page.getByRole('link', { name: 'Sale ends tonight' }).click();
    await page.getByRole('heading', { name: 'Sale ends tonight' }).waitFor();
    await shows(page, '200 of 200');
    const path = `/console/api/apps/${app.appId}/notifications/${pushId}/progress`;
    const { body } = await service.api.request('GET', path, { admin: true });
    const funnel = page.getByRole('list', { name: 'From sent to opened' });
    const [sent] = await funnel.getByRole('listitem').allTextContents();
    expect(sent).toBe(`Sent${body.outcomes.sent} `);
  });

  test('keeps filters in the URL, and reports if nothing matches', async () => {
    const page = await open(`/apps/${app.appId}/pushes`);
    await page.getByLabel('State').selectOption('cancelled');
    await shows(page, 'No push matches the filters.');
    expect(new URL(page.url()).searchParams.get('status')).toBe('cancelled');
    await page.reload();
    await shows(page, 'No push matches the filters.');
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await page.getByRole('searchbox').fill('nothing of this kind');
    await page.keyboard.press('Enter');
    await shows(page, 'No push matches the filters.');
    await page.getByRole('searchbox').fill('ends tonight');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Sale ends tonight' }).waitFor();
  });

  test('reports which quotas only the vendors know', async () => {
    const page = await open(`/apps/${app.appId}/quotas`);
    await page.getByRole('cell', { name: 'unknown' }).first().waitFor();
    await shows(page, 'Unknown: only the vendor knows this quota');
  });

  test("shows a refusal and its members in the page's language", async () => {
    const page = await open(`/apps/${app.appId}/pushes?from=yesterday`, { language: 'zh-CN' });
    await shows(page, '参数无效。');
    await page.goto(`${service.api.url}/console/apps/nowhere/pushes`);
    await shows(page, '没有此应用。');
    await shows(page, 'There is no such app.');
  });

  test('filters pushes by time, which is in the URL', async () => {
    const page = await open(`/apps/${app.appId}/pushes`);
    await page.getByRole('link', { name: 'Sale ends tonight' }).waitFor();
    await page.getByLabel('Before').fill('2020-01-31T12:30');
    await page.keyboard.press('Enter');
    await shows(page, 'No push matches the filters.');
    const { to } = Object.fromEntries(new URL(page.url()).searchParams);
    expect(new Date(to ?? '')).toEqual(new Date('2020-01-31T12:30'));
    await page.reload();
    await shows(page, 'No push matches the filters.');
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await page.getByRole('link', { name: 'Sale ends tonight' }).waitFor();
    await expect.poll(() => page.getByLabel('Before').inputValue()).toBe('');
    await page.getByLabel('From').fill('2020-01-31T12:30');
    await page.keyboard.press('Enter');
    await page.waitForURL(/from=/);
    await page.getByRole('link', { name: 'Sale ends tonight' }).waitFor();
  });

  test("leads from a push's failures by cause to the explanation for a device", async () => {
    const [token = ''] = await service.addIosInstallations(other, 3);
    service.apns.deadTokens.set(token, Date.now());
    const body = { data: { alert: 'To few' } };
    const { objectId } = (
      await service.api.request('POST', '/1.1/push', { app: other, master: true, body })
    ).body;
    await service.untilDone(other, objectId);
    const page = await open(`/apps/${other.appId}/pushes/${objectId}?tab=failures`);
    const path = `/console/api/apps/${other.appId}/notifications/${objectId}/failures/summary`;
    const [cause] = (await service.api.request('GET', path, { admin: true })).body.results;
    expect(cause).toMatchObject({ reason: 'Unregistered', n: 1 });
    await shows(page, textIn('en', 'remedies', cause.remedy.code));
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export as CSV' }).click(),
    ]);
    const [, line] = (await text(await file.createReadStream())).split('\r\n');
    expect(line).toMatch(/^\w+,apns,invalid_token,410,Unregistered,/);
    await page.getByRole('tab', { name: 'Message IDs' }).click();
    await shows(page, 'No gateway gave an ID.');
    await page.goBack();
    await page.getByRole('tab', { name: 'Progress' }).click();
    await page
      .getByRole('row', { name: /^APNs/ })
      .getByRole('link', { name: '1', exact: true })
      .click();
    await page.getByRole('heading', { name: 'Devices: APNs, Invalid token' }).waitFor();
    await page.getByRole('link', { name: 'Show devices' }).click();
    await page.getByRole('table').nth(1).getByRole('link').click();
    await page.getByRole('heading', { name: 'Delivery details of a device' }).waitFor();
    await shows(page, 'Invalid token');
  });

  test('finds a device by its token, and shows its route and its last pushes', async () => {
    const [token = ''] = await service.addIosInstallations(app, 1, { city: 'Rome' });
    const page = await open(`/apps/${app.appId}/devices`);
    await page.getByRole('searchbox').fill(token);
    await page.keyboard.press('Enter');
    await page.getByRole('row').nth(1).getByRole('link').click();
    await page.getByRole('heading', { name: /^Device / }).waitFor();
    await shows(page, 'APNs · _default');
    await shows(page, /"city": "Rome"/);
    await page.goBack();
    await page.getByText('All devices', { exact: true }).click();
    await page.getByLabel('Condition as JSON').fill('{"city":');
    await shows(page, 'This is not JSON.');
  });

  test('explains why a device got a push', async () => {
    const page = await open(`/apps/${app.appId}/pushes/${pushId}?tab=audience`);
    const device = (await readDevices(service.db, app))[0]?.objectId ?? '';
    await page.getByLabel('Device', { exact: true }).fill(device);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('heading', { name: 'Delivery details of a device' }).waitFor();
    const path = `/console/api/apps/${app.appId}/notifications/${pushId}/devices/${device}`;
    const { body } = await service.api.request('GET', path, { admin: true });
    // The sentence has its time in the reader's time zone, like every page.
    const [before = '', after = ''] = body.sentence.split(body.at);
    const said = page.getByText(before).first();
    await said.waitFor();
    await expect.poll(() => said.textContent()).toMatch(/at [^T]*\d\d:\d\d:\d\d\.$/);
    expect(after).toBe('.');
    await page.getByRole('button', { name: '中文' }).click();
    await shows(page, writeReplyText('trace', body.texts[0], 'zh').split(body.at)[0] ?? '');
  });

  test('pauses, resumes and cancels a scheduled push in two clicks', async () => {
    const body = {
      data: { alert: 'Later' },
      push_time: new Date(Date.now() + 3_600_000).toISOString(),
    };
    const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    const page = await open(`/apps/${app.appId}/pushes/${reply.body.objectId}`);
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
    const path = `/console/api/apps/${app.appId}/notifications/${reply.body.objectId}`;
    expect((await service.api.request('GET', path, { admin: true })).body.state).toBe('cancelled');
  });

  test('shows a push live, and stops it', async () => {
    const large = await service.api.createApp();
    await service.addApnsProfile(large);
    await service.addIosInstallations(large, 10_000);
    // Sending takes ten seconds. The push is paused until the page is open.
    const body = { data: { alert: 'Slowly' }, flow_control: 1000 };
    const { objectId } = (
      await service.api.request('POST', '/1.1/push', { app: large, master: true, body })
    ).body;
    const path = `/console/api/apps/${large.appId}/notifications/${objectId}`;
    await service.api.request('POST', `${path}/pause`, { admin: true, body: {} });
    const page = await open(`/apps/${large.appId}/pushes/${objectId}`);
    await page.getByText('Paused', { exact: true }).waitFor();
    await page.getByText('● Live').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('heading', { name: /^[1-9][\d,]* of 10,000$/ }).waitFor();
    await page.getByRole('button', { name: 'Change rate' }).click();
    await page.getByLabel('Rate limit (devices per second)').fill('1,200');
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    const pace = async () =>
      (await service.api.request('GET', path, { admin: true })).body.flowControl;
    await expect.poll(pace).toBe(1200);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
    expect((await service.api.request('GET', path, { admin: true })).body.state).toBe('cancelled');
    // The page continues while the remaining recipients are counted, at the pace of the push.
    const heading = page.getByRole('heading', { name: /^[\d,]+ of 10,000$/ });
    const ended = async () => Number((await heading.innerText()).replace(/ .*|,/g, ''));
    const atOnce = await ended();
    await expect.poll(ended).toBeGreaterThan(atOnce);
  });

  test('opens pages by keyboard, and moves the focus to their headings', async () => {
    const page = await open(`/apps/${app.appId}`);
    await page.getByRole('heading', { name: 'Test app', level: 1 }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    const heading = page.getByRole('heading', { name: 'Pushes', level: 1 });
    await heading.waitFor();
    await expect.poll(() => page.evaluate('document.activeElement?.textContent')).toBe('Pushes');
    await page.keyboard.press('g');
    await page.keyboard.press('o');
    await page.getByText('● Live').waitFor();
    await expect.poll(() => page.evaluate('document.activeElement?.textContent')).toBe('Test app');
    await page.keyboard.press('.');
    await page.getByText(/^‖ Held/).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await expect.poll(() => page.evaluate('document.activeElement?.textContent')).toBe('Pushes');
    await page.keyboard.press('/');
    await expect.poll(() => page.evaluate('document.activeElement?.type')).toBe('search');
  });
});
