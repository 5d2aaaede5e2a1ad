import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../shared/config/config.ts';
import { Vault } from '../../../shared/crypto.ts';
import { Database } from '../../../shared/db/pool.ts';
import { rightsOf } from '../../../shared/domain/admin/oidc-rights.ts';
import { startTestApi, type TestApi, testConfig, testEnvironment } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { PlainBrowser } from '../../support/oidc-browser.ts';
import { TestOidcProvider } from '../../support/servers/oidc-provider.ts';

const publicUrl = 'http://carillon.test';
const start = `${publicUrl}/console/oidc/start`;
const redirectUri = `${publicUrl}/console/oidc/callback`;
const sessionCookie = 'carillon';
const loginCookie = 'carillon-login';

const accounts = {
  anna: { name: 'Anna Smith', email: 'anna@example.com', groups: ['push-owners'] },
  li: { name: 'Li', email: 'li@example.com', groups: ['push-senders', 'push-viewers', 'other'] },
  tom: { name: 'Tom', email: 'tom@example.com', groups: ['other', '<b>evil</b>'] },
  una: { name: 'Una' },
  max: { name: 'admin', email: 'max@example.com', roles: ['push-operators'] },
  sue: { name: 'Sue', groups: 'push-viewers' },
};
const roles = {
  'push-owners': { role: 'owner' },
  'push-operators': { role: 'operator', apps: ['a1', 'a2'] },
  'push-senders': { role: 'sender', apps: ['a1'] },
  'push-viewers': { role: 'viewer' },
};

let database: TestDatabase;
let provider: TestOidcProvider;
let api: TestApi;
let db: Database;
let browser: PlainBrowser;

beforeAll(async () => {
  database = await createTestDatabase();
  db = new Database({ url: database.url, applicationName: 'test' });
  provider = await TestOidcProvider.start({
    redirectUri,
    accounts,
    logoutUri: `${publicUrl}/console/login`,
  });
  api = await startTestApi({ databaseUrl: database.url, env: provider.environment(roles) });
});

afterAll(async () => {
  await api.close();
  await Promise.all([provider.close(), db.close()]);
  await database.drop();
});

beforeEach(() => {
  browser = new PlainBrowser({ [publicUrl]: api.url });
});

const jar = () => browser.cookies.get('carillon.test') ?? new Map<string, string>();
const login = (name: string) => browser.logInAt(start, name);
const ofSession = (method: string, path: string, body?: unknown) =>
  api.request(method, path, {
    body,
    headers: {
      cookie: `${sessionCookie}=${jar().get(sessionCookie)}`,
      'sec-fetch-site': 'same-origin',
    },
  });
const who = async () => (await ofSession('GET', '/console/api/session')).body;

describe('a login', () => {
  test('starts a session with the name and the rights of the person', async () => {
    const back = await login('anna');
    const { searchParams } = new URL(back);
    expect(searchParams.get('iss')).toBe(provider.issuer);
    const reply = await browser.request(back);
    expect([reply.status, reply.headers.get('location')]).toEqual([302, `${publicUrl}/console/`]);
    expect(await who()).toMatchObject({ name: 'Anna Smith', role: 'owner', apps: null });
    expect(jar().has(loginCookie)).toBe(false);
    const cookies = reply.headers.getSetCookie();
    expect(cookies[0]).toMatch(/^carillon=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=/);
    const begun = await browser.request(start);
    expect(begun.headers.getSetCookie()[0]).toMatch(
      /^carillon-login=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
    const target = new URL(begun.headers.get('location') ?? '').searchParams;
    expect(Object.fromEntries(target)).toMatchObject({
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: 'openid profile email groups',
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^.{40,}$/),
      nonce: expect.stringMatching(/^.{40,}$/),
    });
  });

  test('ends its session after 12 hours, and a second login is another session', async () => {
    await browser.request(await login('anna'));
    const { expiresAt } = await who();
    const hours = (Date.parse(expiresAt) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(11.9);
    expect(hours).toBeLessThanOrEqual(12);
    const first = jar().get(sessionCookie);
    await browser.request(await login('anna'));
    expect(jar().get(sessionCookie)).not.toBe(first);
  });

  test('has the highest role of all values, for the apps of the values with this role', async () => {
    await browser.request(await login('li'));
    expect(await who()).toMatchObject({ name: 'Li', role: 'sender', apps: ['a1'] });
  });

  test('takes the claim roles, a claim with one text, and no name of the service', async () => {
    await browser.request(await login('max'));
    expect(await who()).toMatchObject({
      name: 'max@example.com',
      role: 'operator',
      apps: ['a1', 'a2'],
    });
    browser = new PlainBrowser({ [publicUrl]: api.url });
    await browser.request(await login('sue'));
    expect(await who()).toMatchObject({ name: 'Sue', role: 'viewer', apps: null });
  });

  test('of an account without a mapped value gets a page that names the claims', async () => {
    const reply = await browser.request(await login('tom'));
    expect(reply.status).toBe(403);
    const html = await reply.text();
    for (const part of ['<code>groups</code>', '<code>roles</code>', 'OIDC_ROLES', '<code>other'])
      expect(html).toContain(part);
    expect(html).toContain('&lt;b&gt;evil&lt;/b&gt;');
    expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(jar().has(sessionCookie)).toBe(false);
    browser = new PlainBrowser({ [publicUrl]: api.url });
    expect((await browser.request(await login('una'))).status).toBe(403);
  });

  test('is one person for all logins: changed rights count at the next login', async () => {
    await browser.request(await login('anna'));
    const people = async () =>
      (await ofSession('GET', '/console/api/tokens')).body.results.filter(
        ({ mail }: { mail: string }) => mail === 'anna@example.com',
      );
    const [before] = await people();
    expect(before).toMatchObject({ isOidc: true, role: 'owner', createdBy: 'OpenID Connect' });
    accounts.anna.groups = ['push-owners', 'push-viewers'];
    await browser.request(await login('anna'));
    expect(await people()).toEqual([{ ...before, usedAt: expect.any(String) }]);
    const audit = await ofSession('GET', '/console/api/audit?action=session.create');
    expect(audit.body.results[0]).toMatchObject({
      actor: { name: 'Anna Smith', role: 'owner', token: before.id },
      after: { subject: `${provider.issuer} anna`, role: 'owner', apps: null },
    });
    // The deletion of the person ends the sessions.
    await ofSession('DELETE', `/console/api/tokens/${before.id}`, {});
    expect((await ofSession('GET', '/console/api/session')).status).toBe(401);
  });

  test('with other rights ends the live updates of earlier logins', async () => {
    const watch = async () => {
      const headers = { cookie: `${sessionCookie}=${jar().get(sessionCookie)}` };
      const { body } = await fetch(`${api.url}/console/api/events?topics=overview`, { headers });
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      const read = async () => {
        for (let got = await reader?.read(); got && !got.done; got = await reader?.read())
          text += got.value;
      };
      void read();
      return { text: () => text, close: () => reader?.cancel() };
    };
    await browser.request(await login('sue'));
    const first = await watch();
    await expect.poll(first.text).toContain('event: overview');
    const { events } = api.services;
    await browser.request(await login('sue'));
    await events.hub.recheck();
    const second = await watch();
    await expect.poll(second.text).toContain('event: overview');
    expect(first.text()).not.toContain('bye');
    accounts.sue.groups = 'push-senders';
    await browser.request(await login('sue'));
    accounts.sue.groups = 'push-viewers';
    const current = await watch();
    await expect.poll(current.text).toContain('event: overview');
    await events.hub.recheck();
    for (const { text } of [first, second])
      await expect.poll(text).toContain('event: bye\ndata: {"reason":"session"}');
    expect(current.text()).not.toContain('bye');
    await current.close();
  });

  test('ends at the provider too', async () => {
    await browser.request(await login('anna'));
    const ended = await ofSession('DELETE', '/console/api/session', {});
    const url = new URL(ended.body.endSessionUrl);
    expect(url.origin).toBe(provider.issuer);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'carillon',
      post_logout_redirect_uri: `${publicUrl}/console/login`,
    });
    expect((await ofSession('GET', '/console/api/session')).status).toBe(401);
    // A session by a token ends here only.
    const token = testConfig(database.url).adminToken;
    const started = await api.request('POST', '/console/api/session', { body: { token } });
    const cookie = started.headers.get('set-cookie')?.split(';')[0] ?? '';
    const headers = { cookie, 'sec-fetch-site': 'same-origin' };
    const own = await api.request('DELETE', '/console/api/session', { headers, body: {} });
    expect(own.body).toEqual({});
  });
});

describe('a login is refused', () => {
  const changed = (back: string, name: string, value: string) => {
    const url = new URL(back);
    url.searchParams.set(name, value);
    return url.href;
  };
  const refusal = async (url: string) => {
    const reply = await browser.request(url);
    expect(reply.headers.get('content-type')).toContain('text/html');
    expect(jar().has(sessionCookie)).toBe(false);
    return { status: reply.status, html: await reply.text() };
  };

  test.each(['state', 'iss', 'code'])('with another %s', async (name) => {
    const { status, html } = await refusal(changed(await login('anna'), name, 'x'.repeat(43)));
    expect([status, html.includes('not valid')]).toEqual([400, true]);
    expect(jar().has(loginCookie)).toBe(false);
  });

  test('without the cookie of the browser that began it', async () => {
    const back = await login('anna');
    jar().delete(loginCookie);
    expect(await refusal(back)).toMatchObject({ status: 400 });
  });

  test.each(['nonce', 'verifier', 'state'] as const)(
    'with the cookie of another %s',
    async (name) => {
      const back = await login('anna');
      const vault = new Vault(testConfig(database.url).secrets);
      const sealed = Buffer.from(jar().get(loginCookie) ?? '', 'base64url');
      const pending = vault.open(sealed, 'console login') as Record<string, unknown>;
      const other = { ...pending, [name]: 'x'.repeat(43) };
      jar().set(loginCookie, vault.seal(other, 'console login').toString('base64url'));
      expect(await refusal(back)).toMatchObject({ status: 400 });
    },
  );

  test('after ten minutes, and with a cookie that was changed or made up', async () => {
    const back = await login('anna');
    const cookie = jar().get(loginCookie) ?? '';
    const vault = new Vault(testConfig(database.url).secrets);
    const pending = vault.open(Buffer.from(cookie, 'base64url'), 'console login') as object;
    const old = { ...pending, beganAtMs: Date.now() - 600_000 };
    const cookies = [
      vault.seal(old, 'console login').toString('base64url'),
      vault.seal(pending, 'another context').toString('base64url'),
      `${cookie.slice(0, -2)}AA`,
      'x',
      'x'.repeat(5000),
    ];
    const before = provider.paths.length;
    for (const value of cookies) {
      jar().set(loginCookie, value);
      expect(await refusal(back)).toMatchObject({ status: 400 });
    }
    expect(provider.paths.slice(before)).toEqual([]);
  });

  test('with a code that was used', async () => {
    const back = await login('anna');
    const cookie = jar().get(loginCookie) ?? '';
    expect((await browser.request(back)).status).toBe(302);
    jar().set(loginCookie, cookie);
    jar().delete(sessionCookie);
    expect(await refusal(back)).toMatchObject({ status: 400 });
  });

  test('with a code that has expired', async () => {
    const back = await login('anna');
    await provider.expire(new URL(back).searchParams.get('code') ?? '');
    expect(await refusal(back)).toMatchObject({ status: 400 });
  });

  test('by the provider', async () => {
    const begun = await browser.request(start);
    const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state') ?? '';
    const query = new URLSearchParams({ error: 'access_denied', state, iss: provider.issuer });
    const { status, html } = await refusal(`${redirectUri}?${query}`);
    expect([status, html.includes('refused the login')]).toEqual([403, true]);
  });

  test('in Chinese for a Chinese browser', async () => {
    const headers = { 'accept-language': 'zh-CN', accept: 'text/html' };
    const reply = await fetch(`${api.url}/console/oidc/callback`, { headers });
    expect(reply.status).toBe(400);
    expect(await reply.text()).toContain('请重新登录');
  });

  test('after 60 calls of a network in a minute, before the provider is asked', async () => {
    const limited = await startTestApi({
      databaseUrl: database.url,
      env: provider.environment(roles),
    });
    const statuses: number[] = [];
    for (let i = 0; i < 62; i++) {
      const reply = await fetch(`${limited.url}/console/oidc/start`, { redirect: 'manual' });
      statuses.push(reply.status);
      await reply.body?.cancel();
    }
    expect(statuses.slice(58)).toEqual([302, 302, 429, 429]);
    await limited.close();
  });
});

describe('a person', () => {
  test('does not approve the own push, with the login or with a token', async () => {
    const app = await api.createApp({ approvalAboveDevices: 1 });
    for (const n of [1, 2])
      await api.request('POST', '/1.1/installations', {
        app,
        body: { deviceType: 'android', installationId: `device-${n}` },
      });
    await browser.request(await login('anna'));
    const body = { name: 'anna@example.com', role: 'owner' };
    const { token } = (await api.request('POST', '/console/api/tokens', { admin: true, body }))
      .body;
    const { services } = api;
    const anna = { ...(await who()), tokenId: -1, session: null };
    const other = { ...anna, name: 'anna@example.com', tokenId: -2 };
    const stranger = { ...anna, name: 'Li', tokenId: -3 };
    expect(token).toEqual(expect.any(String));
    const send = async (createdBy: string, createdToken: number) => {
      const { body: sent } = await api.request('POST', '/1.1/push', {
        app,
        master: true,
        body: { data: { alert: 'x' } },
      });
      await db.query(
        'UPDATE notification SET created_by = $2, created_token = $3 WHERE app_id = $1',
        [app.appId, createdBy, createdToken],
      );
      return sent.objectId as string;
    };
    for (const [sender, approver] of [
      [anna, other],
      [other, anna],
      [anna, anna],
    ]) {
      const publicId = await send(sender.name, sender.tokenId);
      const approving = services.pushControl.approve({
        controller: approver,
        appId: app.appId,
        publicId,
      });
      await expect(approving).rejects.toMatchObject({ kind: 'forbidden' });
    }
    const publicId = await send(anna.name, anna.tokenId);
    const approving = services.pushControl.approve({
      controller: stranger,
      appId: app.appId,
      publicId,
    });
    expect(await approving).toMatchObject({ approval: { givenBy: 'Li' } });
  });
});

describe('the provider', () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  const service = async (options: Partial<Parameters<typeof TestOidcProvider.start>[0]> = {}) => {
    const own = await TestOidcProvider.start({ redirectUri, accounts, ...options });
    const started = await startTestApi({
      databaseUrl: database.url,
      env: own.environment(roles),
    });
    closers.push(
      () => own.close(),
      () => started.close(),
    );
    return { own, started, browser: new PlainBrowser({ [publicUrl]: started.url }) };
  };

  test('may give claims by userinfo only, and take the secret in the body', async () => {
    const { own, browser: other } = await service({
      isUserInfoOnly: true,
      authMethod: 'client_secret_post',
    });
    const reply = await other.request(await other.logInAt(start, 'li'));
    expect(reply.status).toBe(302);
    expect(own.paths).toContain('/me');
  });

  test('may be down at the start of the service and later', async () => {
    const own = await TestOidcProvider.start({ redirectUri, accounts });
    own.isDown = true;
    const started = await startTestApi({
      databaseUrl: database.url,
      env: own.environment(roles),
    });
    closers.push(
      () => own.close(),
      () => started.close(),
    );
    const methods = await started.request('GET', '/console/api/login-methods');
    expect(methods.body).toEqual({ token: true, oidc: new URL(own.issuer).host });
    const other = new PlainBrowser({ [publicUrl]: started.url });
    const first = await other.request(start);
    expect(first.status).toBe(503);
    expect(await first.text()).toContain('does not answer');
    // The failure is remembered for some seconds.
    const asked = own.paths.length;
    expect((await other.request(start)).status).toBe(503);
    expect(own.paths).toHaveLength(asked);
  });

  test('is asked for its configuration once', async () => {
    const { own, browser: other } = await service();
    await Promise.all(Array.from({ length: 20 }, () => other.request(start)));
    expect(own.paths).toEqual(['/.well-known/openid-configuration']);
    const back = await other.logInAt(start, 'anna');
    own.isDown = true;
    expect((await other.request(back)).status).toBe(503);
  });
});

test('without a provider the addresses have no login', async () => {
  const plain = await startTestApi({ databaseUrl: database.url });
  expect((await plain.request('GET', '/console/api/login-methods')).body).toEqual({
    token: true,
    oidc: null,
  });
  for (const path of ['start', 'callback'])
    expect((await fetch(`${plain.url}/console/oidc/${path}`)).status).toBe(404);
  await plain.close();
});

describe('OIDC_ROLES', () => {
  const env = {
    ...testEnvironment('postgresql://127.0.0.1/none'),
    OIDC_ISSUER: 'https://id.example.com/realms/shop',
    OIDC_CLIENT_ID: 'carillon',
    OIDC_CLIENT_SECRET: 'SESAME',
    OIDC_ROLES: '{"a":{"role":"viewer"}}',
  };

  test('needs the other three variables, and they need it', () => {
    expect(readConfig(env).oidc).toEqual({
      issuer: 'https://id.example.com/realms/shop',
      clientId: 'carillon',
      clientSecret: 'SESAME',
      roles: { a: { role: 'viewer' } },
    });
    for (const name of ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_ROLES']) {
      const { [name]: _, ...rest } = env as Record<string, string>;
      expect(() => readConfig(rest)).toThrow(new RegExp(`${name} .*expected with`));
    }
  });

  test.each([
    ['{', 'JSON'],
    ['[]', ''],
    ['{}', 'at least one'],
    ['{"a":"viewer"}', 'a'],
    ['{"a":{"role":"king"}}', 'a: role: expected one of viewer'],
    ['{"a":{"role":"viewer","apps":[]}}', 'a: apps: expected at least one app'],
    ['{"a":{"role":"viewer","app":"x"}}', 'app'],
  ])('is refused with the member: %s', (OIDC_ROLES, part) => {
    const read = () => readConfig({ ...env, OIDC_ROLES });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(part);
    expect(read).not.toThrow('SESAME');
  });

  test.each([
    [['x'], undefined],
    [['__proto__', 'constructor'], undefined],
    [['v'], { role: 'viewer', apps: null }],
    [['s1', 'v'], { role: 'sender', apps: ['1'] }],
    [['s1', 's2', 's1'], { role: 'sender', apps: ['1', '2'] }],
    [['s1', 's2', 'sAll'], { role: 'sender', apps: null }],
    [['sAll', 'o1'], { role: 'operator', apps: ['1'] }],
  ])('gives the values %j the rights %j', (values, rights) => {
    const map = {
      v: { role: 'viewer' },
      s1: { role: 'sender', apps: ['1'] },
      s2: { role: 'sender', apps: ['2'] },
      sAll: { role: 'sender' },
      o1: { role: 'operator', apps: ['1'] },
    } as const;
    const copy = Object.fromEntries(
      Object.entries(map).map(([name, entry]) => [
        name,
        'apps' in entry ? { ...entry, apps: [...entry.apps] } : entry,
      ]),
    );
    expect(rightsOf(values, copy)).toEqual(rights);
  });
});
