import type { BrowserContext, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

const maxMs = 120_000;

/** Uses the console as three people: a developer, an operator and a security tester. */
describe.skipIf(!hasChromium)('the console used by three people', { timeout: maxMs }, () => {
  // Few requests at a time, so that a push to 20,000 through a slow gateway is not done before it
  // is stopped.
  const service = useTestService({ gateway: { maxStreams: 20 } });
  const browser = useBrowser();
  beforeAll(() => service.dispatch().then(() => undefined));
  const admin = () => testConfig(service.databaseUrl).adminToken;
  const login = async (token = admin()): Promise<Page> => {
    const page = await browser.page();
    await browser.login(page, service.api.url, token);
    return page;
  };
  const tokenFor = async (name: string, role: string, apps?: string[]): Promise<string> => {
    const body = { name, role, ...(apps ? { apps } : {}) };
    return (await service.api.request('POST', '/console/api/tokens', { admin: true, body })).body
      .token;
  };
  const address = (app: App, path: string) => `${service.api.url}/console/apps/${app.appId}${path}`;

  test('a developer gets from the first visit to the first push by the page alone', async () => {
    const page = await login();
    await page.getByText('There is no app yet.').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('Corner shop');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Get started' }).waitFor();
    // The device channel needs no credentials. The page shows the call that registers a device.
    const snippet = page.locator('pre').filter({ hasText: 'my-first-device' });
    // Until the key of the app is loaded, the snippet contains a variable instead.
    const device = await snippet.filter({ hasNotText: '$APP_KEY' }).innerText();
    expect((await callSnippet(device)).status).toBe(201);
    await page.reload();
    await page.getByText('Done', { exact: true }).waitFor();
    await page.keyboard.press('c');
    await page.getByRole('heading', { name: 'New push', level: 1 }).waitFor();
    await page.getByLabel('Text', { exact: true }).fill('We are open');
    await page.getByRole('button', { name: /^Send to 1 device/ }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByRole('heading', { name: 'We are open', level: 1 }).waitFor();
    await page.getByText('Done', { exact: true }).waitFor();
    await page.getByText('1 of 1').waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'In progress' }).waitFor();
  });

  test('an operator stops a wrong push to 20,000 devices with two clicks', async () => {
    const { app, tokens } = await createAppOn(service, null, 20_000);
    service.apns.misbehave({ kind: 'slow', delayMs: 2000 });
    const objectId = await beginPush(service, app, { data: { alert: 'Wrong price' } });
    const page = await login(await tokenFor('Olga', 'operator'));
    await page.goto(address(app, ''));
    await page.getByRole('link', { name: 'Wrong price' }).click();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
    service.apns.behave();
    const reply = await service.api.request(
      'GET',
      `/console/api/apps/${app.appId}/notifications/${objectId}`,
      { admin: true },
    );
    expect(reply.body.state).toBe('cancelled');
    expect(tokens.filter((token) => service.apns.seen(token) > 0).length).toBeLessThan(20_000);
  });

  test('an operator finds out why 100 devices of a gateway failed', async () => {
    const { app } = await createAppOn(service, null, 100);
    service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const objectId = await beginPush(service, app, { data: { alert: 'Long story' } });
    await service.untilDone(app, objectId);
    service.apns.behave();
    const page = await login(await tokenFor('Oleg', 'operator'));
    await page.goto(address(app, '/pushes'));
    await page.getByRole('link', { name: 'Long story' }).click();
    await page.getByRole('tab', { name: 'Failures' }).click();
    const cause = page.getByRole('row', { name: /PayloadTooLarge/ });
    await expect.poll(() => cause.innerText()).toMatch(/\b100\b/);
    await cause.getByRole('link').click();
    const list = page.getByRole('region', { name: 'Devices' });
    await list.getByRole('link').first().click();
    await page.getByText('PayloadTooLarge').first().waitFor();
  });

  test('a viewer and a stolen page can change nothing and see no secret', async () => {
    const { app } = await createAppOn(service, null, 3);
    const token = await tokenFor('Vera', 'viewer', [app.appId]);
    const page = await login(token);
    await page.goto(address(app, '/pushes'));
    await page.getByText('No push').first().waitFor();
    await expect.poll(() => page.getByRole('link', { name: 'New push' }).count()).toBe(0);
    await page.goto(address(app, '/pushes/new'));
    await page.getByText('you need the role sender').waitFor();
    expect(await post(page, `/apps/${app.appId}/push`)).toBe(403);
    const other = await service.api.createApp();
    expect(await post(page, `/apps/${other.appId}/push`)).toBe(403);
    const stolen = `${await page.content()} ${await page.evaluate('JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])')}`;
    for (const secret of [token, app.masterKey, app.appKey]) expect(stolen).not.toContain(secret);
    const cookies = await page.context().cookies();
    await page.getByRole('button', { name: /Vera/ }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.getByLabel('Token').waitFor();
    const thief = await browser.page();
    await thief.context().addCookies(copyOf(cookies));
    await thief.goto(address(app, '/pushes'));
    await thief.getByLabel('Token').waitFor();
  });
});

const copyOf = (cookies: Awaited<ReturnType<BrowserContext['cookies']>>) =>
  cookies.map(({ name, value, domain, path }) => ({ name, value, domain, path }));

/** Makes a call that sends a push, like a script in the page. Returns the status. */
const post = (page: Page, path: string): Promise<number> =>
  page.evaluate<number>(
    `fetch('/console/api${path}', { method: 'POST', headers: { 'Content-Type': 'application/json' },
       body: JSON.stringify({ where: {}, data: { alert: 'x' } }) }).then((reply) => reply.status)`,
  );

/** Makes the call of a curl snippet. */
function callSnippet(curl: string): Promise<Response> {
  const url = /https?:\/\/\S+/.exec(curl)?.[0] ?? '';
  const headers = [...curl.matchAll(/-H ['"]([^:'"]+): ([^'"]+)['"]/g)].map(
    ([, name = '', value = '']): [string, string] => [name, value],
  );
  const body = /-d '([^']+)'/.exec(curl)?.[1] ?? '';
  return fetch(url, { method: 'POST', headers, body });
}
