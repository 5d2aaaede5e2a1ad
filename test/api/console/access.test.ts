import { describe, expect, test } from 'vitest';
import { loadRoutes } from '../../../api/route-loader.ts';
import { CallLimit, callLimits } from '../../../api/services/operator/access/call-limit.ts';
import { dayMs, hourMs, minuteMs, systemClock } from '../../../shared/clock.ts';
import { hasRole, operatorRoles } from '../../../shared/domain/admin/operator.ts';
import { startTestApi, testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';
import { callerOf, createToken, pageOf } from './callers.ts';

/** Timeout of tests that make hundreds of calls one after another on a busy machine. */
const manyCallsMs = 120_000;

const api = useTestApi();
const base = '/console/api';
const adminToken = () => testConfig(api.databaseUrl).adminToken;
const login = (body: unknown, headers: Record<string, string> = {}) =>
  api.request('POST', `${base}/session`, { body, headers });

describe('roles', () => {
  test('every route of the admin API declares one, and refuses lower ones', async () => {
    const routes = (await loadRoutes()).filter(({ paths }) => paths[0]?.startsWith(base));
    const open = routes.filter(({ auth }) => auth !== 'admin').map(({ operation }) => operation);
    expect(open).toEqual(['getLoginMethods', 'startConsoleSession']);
    for (const role of operatorRoles.slice(0, -1)) {
      const call = await callerOf(api, role);
      for (const route of routes.filter(({ auth }) => auth === 'admin')) {
        const needed = route.role ?? 'none';
        expect(operatorRoles, route.operation).toContain(needed);
        if (route.role === undefined || hasRole(role, route.role)) continue;
        const path = (route.paths[0] ?? '').slice(base.length).replace(/:\w+/g, 'x');
        const { status, body } = await call(route.method, path);
        expect([route.operation, status, body.code]).toEqual([route.operation, 403, 403]);
        expect(body.error).toContain(`needs the role ${needed}`);
      }
    }
  });

  test('below owner get no reply with a key or a platform credential', async () => {
    const app = await api.createApp({
      authPlatforms: { weixin: { appId: 'platform', ca: 'secret of weixin' } },
    });
    for (const role of ['viewer', 'operator'] as const) {
      const call = await callerOf(api, role);
      const [list, one] = [await call('GET', '/apps'), await call('GET', `/apps/${app.appId}`)];
      expect([list.status, one.status]).toEqual([200, 200]);
      for (const { body } of [list, one])
        for (const secret of [app.appKey, app.masterKey, app.hookKey, 'secret of weixin'])
          expect(JSON.stringify(body)).not.toContain(secret);
      expect(one.body).toMatchObject({ appId: app.appId, name: app.name });
      expect(one.body.options.authPlatforms).toEqual({ weixin: { appId: '•••', ca: '•••' } });
    }
    const owner = await callerOf(api, 'owner');
    expect((await owner('GET', `/apps/${app.appId}`)).body).toMatchObject({
      masterKey: app.masterKey,
    });
  });

  test('a token for some apps reaches only these apps, and nothing global', async () => {
    const [own, other] = [await api.createApp(), await api.createApp()];
    const call = await callerOf(api, 'owner', { apps: [own.appId] });
    expect((await call('GET', `/apps/${own.appId}`)).status).toBe(200);
    expect((await call('GET', '/apps')).body.results).toMatchObject([{ appId: own.appId }]);
    for (const id of [other.appId, 'nowhere']) {
      const { status, body } = await call('GET', `/apps/${id}`);
      expect([status, body.error]).toEqual([403, 'This token is for other apps.']);
    }
    const id = `vendor_d:${other.appId}:_default`;
    await api.request('PUT', `${base}/apps/${other.appId}/profiles/vendor_d/_default`, {
      admin: true,
      body: { appKey: '1', masterSecret: 's' },
    });
    expect((await call('POST', `/breakers/${id}/open`)).status).toBe(403);
    expect((await call('GET', '/breakers')).body.results).toEqual([]);
    for (const [method, path] of [
      ['POST', '/apps'],
      ['GET', '/tokens'],
      ['POST', '/tokens'],
      ['GET', '/sessions'],
    ] as const)
      expect((await call(method, path)).status).toBe(403);
  });
});

describe('tokens', () => {
  test.each([
    ['no name', { role: 'viewer' }],
    ['an unknown role', { name: 'a', role: 'root' }],
    ['no apps', { name: 'a', role: 'viewer', apps: [] }],
    ['too many apps', { name: 'a', role: 'viewer', apps: Array(101).fill('x') }],
    ['an end that is no time', { name: 'a', role: 'viewer', expiresAt: 'soon' }],
    ['an end in the past', { name: 'a', role: 'viewer', expiresAt: '2001-01-01T00:00:00Z' }],
    ['an unknown member', { name: 'a', role: 'viewer', token: 'mine' }],
  ])('with %s are refused with 400', async (_case, body) => {
    expect((await api.request('POST', `${base}/tokens`, { admin: true, body })).status).toBe(400);
  });

  test('are shown once, listed without their secret, and end when they are deleted', async () => {
    const { id, token } = await createToken(api, 'viewer', { name: 'Anna' });
    const headers = { Authorization: `Bearer ${token}` };
    expect((await api.request('GET', `${base}/session`, { headers })).body).toEqual({
      name: 'Anna',
      role: 'viewer',
      apps: null,
      expiresAt: null,
      csrf: null,
    });
    const list = await api.request('GET', `${base}/tokens?limit=1`, { admin: true });
    expect(list.body.results).toMatchObject([
      { id, name: 'Anna', role: 'viewer', createdBy: 'admin' },
    ]);
    expect(list.body.next).toBe(id);
    expect(JSON.stringify(list.body)).not.toContain(token);
    const { rows } = await api.db.query('SELECT * FROM console_token');
    expect(JSON.stringify(rows)).not.toContain(token);
    const page = await pageOf(api, { token });
    expect((await api.request('DELETE', `${base}/tokens/${id}`, { admin: true })).status).toBe(200);
    expect((await api.request('GET', `${base}/session`, { headers })).status).toBe(401);
    expect((await page('GET', '/session')).status).toBe(401);
    for (const removed of [id, 'x', '99999999999999999999'])
      expect(
        (await api.request('DELETE', `${base}/tokens/${removed}`, { admin: true })).status,
      ).toBe(404);
  });

  test('end at their expiry time', async () => {
    let movedMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + movedMs };
    const own = await startTestApi({ databaseUrl: api.databaseUrl, clock });
    const expiresAt = new Date(systemClock.now() + hourMs).toISOString();
    const { token } = await createToken(own, 'viewer', { expiresAt });
    const page = await pageOf(own, { token });
    expect((await page('GET', '/session')).body.expiresAt).toBe(expiresAt);
    movedMs = hourMs;
    expect((await page('GET', '/session')).status).toBe(401);
    const headers = { Authorization: `Bearer ${token}` };
    expect((await own.request('GET', `${base}/session`, { headers })).status).toBe(401);
    await own.close();
  });

  test.each([
    'admin',
    ' Admin ',
    'ADMIN',
    'a d m i n',
    'ａｄｍｉｎ',
    'adm\u0131n',
    'carillon',
    'carillon (canary)',
    'Carillon  import',
    'ＣＡＲＩＬＬＯＮ （canary）',
    'caril\u00A0lon',
    '𝐚𝐝𝐦𝐢𝐧',
    'An\u200Bna',
    '\u202Eanna',
    'An\u00ADna',
    'a\u2028b',
    'a\nb',
    '\u2066Li\u2069',
    '',
    ' ',
    'x'.repeat(101),
  ])('cannot be named %j', async (name) => {
    const body = { name, role: 'viewer' };
    const reply = await api.request('POST', `${base}/tokens`, { admin: true, body });
    expect([reply.status, reply.body.code]).toEqual([400, 111]);
    expect(reply.body.error).toMatch(/^name: /);
  });

  test.each([
    ['Zoe\u0301', 'Zoé'],
    ['  Anna Li ', 'Anna Li'],
    ['administrator', 'administrator'],
    ['王芳', '王芳'],
    ['CI (carillon)', 'CI (carillon)'],
  ])('named %j get the name %j', async (name, stored) => {
    const reply = await api.request('POST', `${base}/tokens`, {
      admin: true,
      body: { name, role: 'viewer' },
    });
    expect([reply.status, reply.body.name]).toEqual([201, stored]);
  });

  test('are at most 1000', async () => {
    await api.db.query(
      `INSERT INTO console_token (digest, name, role, created_by, created_at)
       SELECT sha256(i::text::bytea), 'filler', 'viewer', 'test', now()
         FROM generate_series(1, 1000) AS i`,
    );
    const body = { name: 'one more', role: 'viewer' };
    expect((await api.request('POST', `${base}/tokens`, { admin: true, body })).status).toBe(409);
    await api.db.query("DELETE FROM console_token WHERE name = 'filler'");
  });
});

describe('calls of one token', () => {
  /** Repeats a call until it is refused. Returns the number of accepted calls. */
  async function callsUntil429(
    call: () => Promise<{ status: number; headers: Headers }>,
    limit: number,
  ) {
    for (let n = 0; n <= limit; n += 1) {
      const { status, headers } = await call();
      if (status !== 429) continue;
      expect(Number(headers.get('retry-after'))).toSatisfy(
        (seconds) => seconds >= 1 && seconds <= 60,
      );
      return n;
    }
    return limit + 1;
  }
  const callOf = (token: string, method: string, path: string, body?: object) => () =>
    api.request(method, base + path, { headers: { Authorization: `Bearer ${token}` }, body });

  test('are limited per minute: calls, changes and logins separately', {
    timeout: manyCallsMs,
  }, async () => {
    const [{ token }, other] = [await createToken(api, 'sender'), await createToken(api, 'sender')];
    const { appId } = await api.createApp();
    const page = await pageOf(api, { token });
    expect((await page('GET', '/session')).status).toBe(200);
    expect(await callsUntil429(() => login({ token }), callLimits.logins)).toBe(
      callLimits.logins - 1,
    );
    expect((await callOf(token, 'POST', '/login-links', {})()).status).toBe(429);
    const put = callOf(token, 'PUT', `/apps/${appId}/audiences/one`, { where: {} });
    expect(await callsUntil429(put, callLimits.changes)).toBe(callLimits.changes);
    const refused = await put();
    expect(refused.body.error).toBe(
      `This token made ${callLimits.changes} changes within a minute.`,
    );
    const read = callOf(token, 'GET', '/session');
    // Calls of its session count, and so do refused calls: the login link and two changes.
    const used = 1 + 1 + callLimits.changes + 2;
    expect(await callsUntil429(read, callLimits.calls)).toBe(callLimits.calls - used);
    expect((await callOf(token, 'GET', '/meta')()).status).toBe(429);
    for (const bearer of [other.token, adminToken()])
      expect((await callOf(bearer, 'GET', '/meta')()).status).toBe(200);
    expect(
      (await callOf(other.token, 'PUT', `/apps/${appId}/audiences/one`, { where: {} })()).status,
    ).toBe(200);
  });

  test('are allowed again after a minute; pushes have the limit of their app instead', {
    timeout: manyCallsMs,
  }, async () => {
    let movedMs = 0;
    const limit = new CallLimit({ ...systemClock, monotonicMs: () => movedMs }, { calls: 2 });
    const isTaken = (tokenId: number | null) => {
      try {
        limit.take(tokenId, 'calls');
        return true;
      } catch {
        return false;
      }
    };
    expect([1, 1, 1, 2].map(isTaken)).toEqual([true, true, false, true]);
    expect([null, null, null].every(isTaken)).toBe(true);
    movedMs = 60_000;
    expect([1, 1, 1].map(isTaken)).toEqual([true, true, false]);
    const app = await api.createApp({ pushCallsPerMinute: 9600 });
    const { token } = await createToken(api, 'sender');
    const send = callOf(token, 'POST', `/apps/${app.appId}/push`, {
      where: {},
      data: { alert: 'x' },
    });
    for (let n = 0; n <= callLimits.changes; n += 1) expect((await send()).status).toBe(201);
  });
});

describe('sessions', () => {
  test('have a cookie unreadable for scripts and sites, and only a stored digest', async () => {
    const reply = await login({ token: adminToken() });
    expect(reply.body).toMatchObject({ name: 'admin', role: 'owner', apps: null, csrf: null });
    const cookie = reply.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(
      /^carillon=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/,
    );
    expect(reply.headers.get('cache-control')).toBe('no-store');
    const { rows } = await api.db.query<{ digest: Buffer }>('SELECT * FROM console_session');
    expect(JSON.stringify(rows)).not.toContain(/carillon=([\w-]+)/.exec(cookie)?.[1]);
    const secure = await startTestApi({
      databaseUrl: api.databaseUrl,
      env: { PUBLIC_URL: 'https://push.example.com' },
    });
    const { headers } = await secure.request('POST', `${base}/session`, {
      body: { token: adminToken() },
    });
    expect(headers.get('set-cookie')).toMatch(
      /^__Host-carillon=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=604800$/,
    );
    await secure.close();
  });

  test('end by logout, by an owner, and when CARILLON_ADMIN_TOKEN changes', async () => {
    const [first, second, third] = [
      await pageOf(api, { token: adminToken() }),
      await pageOf(api, { token: adminToken() }),
      await pageOf(api, { token: (await createToken(api, 'operator')).token }),
    ];
    expect((await first('DELETE', '/session')).headers.get('set-cookie')).toMatch(
      /^carillon=;.*Max-Age=0/,
    );
    expect((await first('GET', '/session')).status).toBe(401);
    const { body } = await second('GET', '/sessions');
    expect(body.results[0]).toMatchObject({ name: 'a operator', role: 'operator' });
    const other = await startTestApi({
      databaseUrl: api.databaseUrl,
      env: { CARILLON_ADMIN_TOKEN: 'another token of the operator' },
    });
    const cookie =
      (await login({ token: adminToken() })).headers.get('set-cookie')?.split(';')[0] ?? '';
    const ended = await other.request('GET', `${base}/session`, { headers: { Cookie: cookie } });
    expect(ended.status).toBe(401);
    await other.close();
    expect((await second('DELETE', `/sessions/${body.results[0].id}`)).status).toBe(200);
    expect((await third('GET', '/session')).status).toBe(401);
    expect((await second('DELETE', '/sessions/nothing')).status).toBe(404);
  });

  test('end after 12 hours without a call, and after 7 days', async () => {
    let movedMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + movedMs };
    const own = await startTestApi({ databaseUrl: api.databaseUrl, clock });
    const idle = await pageOf(own, { token: adminToken() });
    const busy = await pageOf(own, { token: adminToken() });
    for (; movedMs < 7 * dayMs - 10 * hourMs; movedMs += 10 * hourMs)
      expect((await busy('GET', '/session')).status).toBe(200);
    expect((await idle('GET', '/session')).status).toBe(401);
    movedMs = 7 * dayMs + minuteMs;
    expect((await busy('GET', '/session')).status).toBe(401);
    await own.close();
  });

  test('are at most 20 per token: its least recently used session ends', async () => {
    const [{ token }, other] = [await createToken(api, 'viewer'), await createToken(api, 'viewer')];
    const pages = [
      await pageOf(api, { token: adminToken() }),
      await pageOf(api, { token: other.token }),
    ];
    const own = await pageOf(api, { token });
    for (let i = 0; i < 19; i += 1) await pageOf(api, { token });
    expect((await own('GET', '/session')).status).toBe(200);
    const newest = await pageOf(api, { token });
    expect((await own('GET', '/session')).status).toBe(401);
    for (const page of [...pages, newest]) expect((await page('GET', '/session')).status).toBe(200);
  });

  test('have at most 10 login codes per token: its oldest code ends', async () => {
    const [{ token }, other] = [await createToken(api, 'viewer'), await createToken(api, 'viewer')];
    const codeOf = async (bearer: string) => {
      const headers = { Authorization: `Bearer ${bearer}` };
      const reply = await api.request('POST', `${base}/login-links`, { headers, body: {} });
      return reply.body.code ?? String(reply.body.url).split('code=')[1];
    };
    const ofOther = await codeOf(other.token);
    const codes: string[] = [];
    for (let i = 0; i < 11; i += 1) codes.push(await codeOf(token));
    const [first = '', second = ''] = codes;
    expect((await login({ code: first })).status).toBe(401);
    for (const code of [second, ofOther]) expect((await login({ code })).status).toBe(200);
    await api.db.query('DELETE FROM console_login_code');
  });

  test('wrong tokens and codes return 401, then 429 for each address separately', async () => {
    const own = await startTestApi({ databaseUrl: api.databaseUrl, env: { TRUSTED_PROXIES: '1' } });
    const guess = (body: unknown, address: string) =>
      own.request('POST', `${base}/session`, { body, headers: { 'X-Forwarded-For': address } });
    for (let i = 0; i < 5; i += 1) {
      expect((await guess({ token: `wrong ${i}` }, '192.0.2.7')).status).toBe(401);
      expect((await guess({ code: `wrong ${i}` }, '192.0.2.7')).status).toBe(401);
    }
    expect((await guess({ token: 'wrong' }, '192.0.2.7')).status).toBe(429);
    expect((await guess({ token: 'wrong' }, '192.0.2.8')).status).toBe(401);
    expect((await guess({ token: adminToken() }, '192.0.2.7')).status).toBe(200);
    await own.close();
  });

  test.each([
    [{}],
    [{ token: 1 }],
    [{ token: 'a', code: 'b' }],
    ['null'],
    [{ token: 'x'.repeat(513) }],
  ])('%j logs no one in', async (body) => {
    expect((await login(body)).status).toBe(400);
  });
});

describe('a login link in a browser with a session', () => {
  /** Returns the code of a login link for a new token of a person. */
  async function codeFor(name: string) {
    const { token } = await createToken(api, 'operator', { name });
    const headers = { Authorization: `Bearer ${token}` };
    const { body } = await api.request('POST', `${base}/login-links`, { headers, body: {} });
    return { token, code: String(body.code) };
  }
  const cookieOf = (reply: { headers: Headers }) =>
    (reply.headers.get('set-cookie') ?? '').split(';')[0] ?? '';

  test('of another person asks first, and replaces the session when confirmed', async () => {
    const Cookie = cookieOf(await login({ token: adminToken() }));
    const { code } = await codeFor('Mallory');
    const secondLogin = await login({ code }, { Cookie });
    expect(secondLogin.body).toMatchObject({
      code: 409,
      current: { name: 'admin', role: 'owner' },
      asked: { name: 'Mallory', role: 'operator' },
    });
    expect([secondLogin.status, secondLogin.headers.get('set-cookie')]).toEqual([409, null]);
    const still = await api.request('GET', `${base}/session`, { headers: { Cookie } });
    expect(still.body.name).toBe('admin');
    expect((await login({ code, replace: false }, { Cookie })).status).toBe(409);
    const replaced = await login({ code, replace: true }, { Cookie });
    expect([replaced.status, replaced.body.name]).toEqual([200, 'Mallory']);
    expect((await login({ code, replace: true }, { Cookie })).status).toBe(401);
  });

  test('does not ask for the same person, an ended session, or a typed token', async () => {
    const { token, code } = await codeFor('Anna');
    const own = cookieOf(await login({ token }));
    expect((await login({ code }, { Cookie: own })).status).toBe(200);
    const { code: other } = await codeFor('Li');
    expect((await login({ code: other }, { Cookie: 'carillon=ended' })).status).toBe(200);
    expect((await login({ token: adminToken() }, { Cookie: own })).body.name).toBe('admin');
    expect((await login({ code: 'wrong' }, { Cookie: own })).status).toBe(401);
    for (const body of [
      { code, replace: 'yes' },
      { token, replace: true },
    ])
      expect((await login(body, { Cookie: own })).status).toBe(400);
  });
});

describe('login links', () => {
  test('log in once, with the permissions of the token that created them', async () => {
    const call = await callerOf(api, 'sender', { name: 'Li' });
    const link = await call('POST', '/login-links');
    expect(link.status).toBe(201);
    expect(link.body.url).toBe(`http://carillon.test/console/login#code=${link.body.code}`);
    expect((await login({ code: link.body.code })).body).toMatchObject({
      name: 'Li',
      role: 'sender',
    });
    expect((await login({ code: link.body.code })).status).toBe(401);
    const { rows } = await api.db.query('SELECT * FROM console_login_code');
    expect(rows).toEqual([]);
  });

  test('expire after 15 minutes, and cannot be created by a session', async () => {
    let movedMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + movedMs };
    const own = await startTestApi({ databaseUrl: api.databaseUrl, clock });
    const { body } = await own.request('POST', `${base}/login-links`, { admin: true });
    movedMs = 15 * minuteMs;
    expect(
      (await own.request('POST', `${base}/session`, { body: { code: body.code } })).status,
    ).toBe(401);
    await own.close();
    const page = await pageOf(api, { token: adminToken() });
    expect((await page('POST', '/login-links')).status).toBe(403);
  });
});

describe('requests of other origins', () => {
  const same = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' };
  const host = () => new URL(api.url).host;

  test('with the cookie change nothing', async () => {
    const page = await pageOf(api, { token: adminToken() });
    const { id } = await createToken(api, 'viewer', { name: 'stays' });
    const refused: [number, Record<string, string>][] = [
      [403, { 'Sec-Fetch-Site': 'same-site' }],
      [403, { 'Sec-Fetch-Site': 'cross-site' }],
      [403, { 'Sec-Fetch-Site': 'none' }],
      [403, { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://carillon.test' }],
      [403, { 'Sec-Fetch-Site': '' }],
      [403, { 'Sec-Fetch-Site': '', Origin: 'null' }],
      [403, { 'Sec-Fetch-Site': '', Origin: 'http://127.0.0.1:1' }],
      [403, { 'Sec-Fetch-Site': '', Origin: 'http://carillon.test.evil.test' }],
      [415, { ...same, 'Content-Type': 'text/plain' }],
      [415, { ...same, 'Content-Type': 'application/x-www-form-urlencoded' }],
      [415, { ...same, 'Content-Type': '' }],
    ];
    for (const [status, headers] of refused) {
      const reply = await page('DELETE', `/tokens/${id}`, { headers });
      expect([headers, reply.status]).toEqual([headers, status]);
    }
    expect((await page('GET', '/tokens?limit=1')).body.results).toMatchObject([{ id }]);
  });

  test('of PUBLIC_URL or of the same host are allowed if the browser names no site', async () => {
    const page = await pageOf(api, { token: adminToken() });
    for (const Origin of ['http://carillon.test', `http://${host()}`]) {
      const { id } = await createToken(api, 'viewer');
      const headers = { 'Sec-Fetch-Site': '', Origin };
      expect((await page('DELETE', `/tokens/${id}`, { headers })).status).toBe(200);
    }
  });

  test('with the cookie read nothing if the browser names the site', async () => {
    const page = await pageOf(api, { token: adminToken() });
    for (const site of ['same-site', 'cross-site'])
      expect((await page('GET', '/apps', { headers: { 'Sec-Fetch-Site': site } })).status).toBe(
        403,
      );
    expect((await page('GET', '/apps', { headers: { 'Sec-Fetch-Site': 'none' } })).status).toBe(
      200,
    );
    const { headers } = await page('GET', '/apps');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f]{16}$/);
  });

  test('do not log in', async () => {
    const body = { token: adminToken() };
    expect((await login(body, { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403);
    expect((await login(body, { Origin: 'https://evil.test' })).status).toBe(403);
    expect((await login(body, { 'Content-Type': 'text/plain' })).status).toBe(415);
    expect((await login(body, { Origin: `http://${host()}` })).status).toBe(200);
  });

  test('with a wrong token are refused even with a valid cookie', async () => {
    const page = await pageOf(api, { token: adminToken() });
    expect(
      (await page('GET', '/session', { headers: { Authorization: 'Bearer wrong' } })).status,
    ).toBe(401);
  });
});
