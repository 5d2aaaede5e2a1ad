import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../../ops/local/ports.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { TestOidcProvider } from '../../support/servers/oidc-provider.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

const accounts = {
  anna: { name: 'Anna Smith', email: 'anna@example.com', groups: ['owners'] },
  tom: { name: 'Tom', groups: ['sales'] },
};

describe.skipIf(!hasChromium)('login by OpenID Connect, in a browser', () => {
  const browser = useBrowser();
  let database: TestDatabase;
  let provider: TestOidcProvider;
  let api: TestApi;
  let url: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    provider = await TestOidcProvider.start({
      redirectUri: `${url}/console/oidc/callback`,
      logoutUri: `${url}/console/login`,
      accounts,
      host: 'localhost',
    });
    const roles = { owners: { role: 'owner' } };
    const env = { PORT: String(port), PUBLIC_URL: url, ...provider.environment(roles) };
    api = await startTestApi({ databaseUrl: database.url, env });
  });

  afterAll(async () => {
    await Promise.all([api.close(), provider.close()]);
    await database.drop();
  });

  const signInAs = async (page: Page, login: string) => {
    await page.getByRole('link', { name: /^Sign in with localhost:/ }).click();
    await page.locator('input[name=login]').fill(login);
    await page.locator('input[name=password]').fill('x');
    await page.locator('button[type=submit]').click();
  };

  test('leads to the console, is shown among the people, and ends at the provider', async () => {
    const page = await browser.page();
    await page.goto(`${url}/console`);
    await page.getByLabel('Token').waitFor();
    await signInAs(page, 'anna');
    await page.getByRole('button', { name: /Anna Smith \(owner\)/ }).waitFor();
    expect(new URL(page.url()).origin).toBe(url);

    await page.goto(`${url}/console/people`);
    const row = page.getByRole('row').filter({ hasText: 'anna@example.com' });
    await row.first().waitFor();
    await expect.poll(() => row.first().innerText()).toContain('OpenID Connect');

    const cookies = await page.context().cookies(url);
    expect(cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toEqual([
      ['carillon', true, 'Strict'],
    ]);

    await page.getByRole('button', { name: /Anna Smith \(owner\)/ }).click();
    await page.getByText('Log out', { exact: true }).click();
    // The provider asks, because the service keeps no token of the person.
    await page.locator('button[value=yes], button[autofocus]').first().click();
    await page.waitForURL(`${url}/console/login**`);
    await page.getByLabel('Token').waitFor();
    const reply = await page.request.get(`${url}/console/api/session`);
    expect(reply.status()).toBe(401);
  });

  test('of a person without a mapped group ends on a page with the way back', async () => {
    const page = await browser.page();
    await page.goto(`${url}/console`);
    await signInAs(page, 'tom');
    await page.getByRole('heading', { name: 'Your account has no right here' }).waitFor();
    await expect.poll(() => page.getByRole('listitem').allInnerTexts()).toEqual(['sales']);
    await page.getByRole('link', { name: 'Log in with a token' }).click();
    await page.getByLabel('Token').waitFor();
  });
});
