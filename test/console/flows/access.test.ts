import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

const base = '/console/api';

describe.skipIf(!hasChromium)('access to the console', () => {
  const api = useTestApi();
  const browser = useBrowser();
  const adminToken = () => testConfig(api.databaseUrl).adminToken;
  const open = async (path: string, token = adminToken()): Promise<Page> => {
    const page = await browser.page();
    await browser.login(page, api.url, token);
    await browser.show(page, api.url + path);
    return page;
  };
  /** Waits until a page shows the login, which appears after every refused call. */
  const untilLogin = (page: Page) =>
    page.getByRole('heading', { name: 'Carillon console' }).waitFor();
  const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

  test('a token is shown once, and its revocation ends every session', async () => {
    const page = await open('/console/people');
    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Anna');
    await dialog.getByLabel('Role').selectOption('operator');
    await dialog.getByRole('button', { name: 'Create the token' }).click();
    const token = await dialog.locator('pre').first().innerText();
    await dialog.getByRole('button', { name: 'Create a link' }).click();
    const link = await dialog.locator('pre').nth(1).innerText();
    await dialog.getByRole('button', { name: 'I have copied it' }).click();
    await row(page, 'Anna').first().waitFor();
    expect(await page.content()).not.toContain(token);

    const byHand = await open('/console/operating', token);
    const byLink = await browser.page();
    // The links in tests contain the address of PUBLIC_URL.
    await byLink.goto(api.url + new URL(link).pathname + new URL(link).hash);
    await byLink.getByRole('button', { name: /Anna \(operator\)/ }).waitFor();
    await page.getByRole('button', { name: 'Revoke the token of Anna' }).click();
    await page.getByRole('button', { name: 'Revoke the token', exact: true }).click();
    await row(page, 'Anna').first().waitFor({ state: 'detached' });
    for (const other of [byHand, byLink]) {
      await other.reload();
      await untilLogin(other);
      await other.getByLabel('Token').fill(token);
      await other.keyboard.press('Enter');
      await other.getByText('This token is not valid, or no longer.').waitFor();
    }

    await page.goto(`${api.url}/console/audit?actor=admin`);
    await row(page, 'token.delete').first().waitFor();
    await expect.poll(() => row(page, 'token.create').first().innerText()).toContain('Anna');
    await page.getByRole('searchbox', { name: 'Action' }).fill('token.create');
    await page.keyboard.press('Enter');
    await row(page, 'token.delete').first().waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('action')).toBe('token.create');
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export as JSON lines' }).click(),
    ]);
    const lines = (await text(await file.createReadStream())).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).action)).toEqual(['token.create']);
  });

  test("a link in another person's session asks first, then logs in", async () => {
    const reply = await api.request('POST', `${base}/tokens`, {
      admin: true,
      body: { name: 'Mallory', role: 'viewer' },
    });
    const linkOf = async () => {
      const headers = { Authorization: `Bearer ${reply.body.token}` };
      const { body } = await api.request('POST', `${base}/login-links`, { headers, body: {} });
      return `${api.url}/console/login#code=${body.code}`;
    };
    const page = await open('/console');
    const admin = page.getByRole('button', { name: /admin \(owner\)/ });
    await admin.waitFor();
    const link = await linkOf();
    await page.goto(link);
    await page
      .getByText('You are logged in as admin (owner). This link logs in as Mallory (viewer).')
      .waitFor();
    expect(page.url()).not.toContain('code=');
    await page.getByRole('button', { name: 'Stay logged in as admin' }).click();
    await admin.waitFor();
    await page.goto(`${api.url}/console/operating`);
    await page.goto(link);
    await page.getByRole('button', { name: 'Log in as Mallory' }).click();
    await page.getByRole('button', { name: /Mallory \(viewer\)/ }).waitFor();
    await page.goto(`${api.url}/console/operating`);
    await page.goto(link);
    await page.getByRole('button', { name: /Mallory \(viewer\)/ }).waitFor();
    const fresh = await browser.page();
    await fresh.goto(link);
    await fresh.getByText('This link was used already').waitFor();
    await fresh.goto(await linkOf());
    await fresh.getByRole('button', { name: /Mallory \(viewer\)/ }).waitFor();
  });

  test('an owner ends a session; others see neither the pages nor links to them', async () => {
    const reply = await api.request('POST', `${base}/tokens`, {
      admin: true,
      body: { name: 'Li', role: 'viewer' },
    });
    const viewer = await open('/console/people', reply.body.token);
    await viewer.getByText('Your role does not permit this.').first().waitFor();
    await expect.poll(() => viewer.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
    const page = await open('/console/people');
    await page.getByRole('button', { name: 'End the session of Li' }).click();
    await page.getByRole('button', { name: 'End the session', exact: true }).click();
    await page
      .getByRole('button', { name: 'End the session of Li' })
      .waitFor({ state: 'detached' });
    await viewer.reload();
    await untilLogin(viewer);
  });

  test('a page on another port can change and read nothing with the cookie', async () => {
    const attacker = createServer((_, response) =>
      response.end('<!doctype html><form></form>'),
    ).listen(0);
    const address = attacker.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const page = await open('/console/operating');
    const { body: before } = await api.request('GET', `${base}/tokens`, { admin: true });
    const calls: string[] = [];
    await page.goto(`http://127.0.0.1:${port}/`);
    page.on('request', (request) => calls.push(request.url()));
    await page.evaluate(attacks(`${api.url}${base}`));
    expect(calls.filter((url) => url.includes(base)).length).toBeGreaterThanOrEqual(5);
    // The form sends the page to the reply.
    const [reply] = await Promise.all([
      page.waitForNavigation(),
      page.evaluate('document.forms[0].submit()'),
    ]);
    expect(reply?.status()).toBe(403);
    const { body: after } = await api.request('GET', `${base}/tokens`, { admin: true });
    expect(after).toEqual(before);
    // The session has not ended.
    await browser.show(page, `${api.url}/console/operating`);
    // The browser reports what it blocked for that page.
    expect(browser.faults.splice(0).join()).toContain('CORS');
    attacker.close();
  });

  test('a notice appears if the server has another build', async () => {
    const page = await browser.page();
    await page.route('**/console/build.json', (route) =>
      route.fulfill({ json: { digest: 'another' } }),
    );
    await browser.login(page, api.url, adminToken());
    await page.getByText('The server has a new version of this page.').waitFor();
    await page.unroute('**/console/build.json');
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByText('The server has a new version').waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
  });

  // Must be the last test, because afterwards this address has to wait.
  test('too many attempts are reported, and the right token is still accepted', async () => {
    const page = await browser.page();
    await page.goto(`${api.url}/console`);
    await page.getByLabel('Token').fill('another wrong token');
    // Immediately before the attempt in the page, because all count for one minute.
    for (let i = 0; i < 10; i += 1)
      await api.request('POST', `${base}/session`, { body: { token: `wrong ${i}` } });
    await page.keyboard.press('Enter');
    await page.getByText('Too many attempts.').waitFor();
    await page.getByLabel('Token').fill(adminToken());
    await page.keyboard.press('Enter');
    await page.getByRole('navigation').first().waitFor();
  });
});

/**
 * Script of the other page. It sends the requests that a browser sends with the cookie, because a
 * site includes all ports of a host.
 */
const attacks = (api: string): string => `(async () => {
  const token = JSON.stringify({ name: 'thief', role: 'owner' });
  const simple = (type) => ({ method: 'POST', mode: 'no-cors', credentials: 'include', headers: { 'Content-Type': type }, body: token });
  const attempts = [
    ['${api}/tokens', simple('text/plain')],
    ['${api}/tokens', simple('application/x-www-form-urlencoded')],
    ['${api}/session', simple('text/plain')],
  ];
  // The browser keeps the replies from this page, and calls that a failure.
  for (const [url, request] of attempts) await fetch(url, request).catch(() => {});
  for (const method of ['GET', 'DELETE'])
    // The browser asks first, and is refused.
    await fetch('${api}/session', { method, credentials: 'include', headers: { 'Content-Type': 'application/json' } }).catch(() => {});
  await new Promise((resolve) => { const image = new Image(); image.onerror = image.onload = resolve; image.src = '${api}/tokens'; });
  const [form] = document.forms;
  Object.assign(form, { action: '${api}/tokens', method: 'post', enctype: 'text/plain' });
  const field = document.createElement('input');
  Object.assign(field, { name: '{"name":"thief","role":"owner","x":"', value: '"}' });
  form.append(field);
})()`;
