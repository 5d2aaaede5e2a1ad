import { networkInterfaces } from 'node:os';
import { beforeAll, describe, expect, test } from 'vitest';
import { loadRoutes } from '../../../api/route-loader.ts';
import { AttemptLimit } from '../../../api/services/operator/access/call-limit.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { insertOutboxMessage } from '../../../shared/db/tables/outbox.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { mayReadMetrics } from '../../../shared/metrics.ts';
import { startTestApi, type TestApi, testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

let vault: Vault;

const api = useTestApi();
beforeAll(async () => {
  vault = new Vault(testConfig(api.databaseUrl).secrets);
});

const apps = '/console/api/apps';
const admin = (method: string, path: string, body?: unknown) =>
  api.request(method, path, { admin: true, ...(body === undefined ? {} : { body }) });

describe('the operator', () => {
  const calls: [string, string][] = [
    ['GET', apps],
    ['POST', apps],
    ['GET', `${apps}/x`],
    ['PATCH', `${apps}/x`],
    ['DELETE', `${apps}/x`],
    ['GET', `${apps}/x/profiles`],
    ['PUT', `${apps}/x/profiles/apns/_default`],
    ['DELETE', `${apps}/x/profiles/apns/_default`],
    ['GET', `${apps}/x/outbox`],
  ];

  test.each(calls)('%s %s is refused with 401 without the right token', async (method, path) => {
    const wrong = ['Bearer wrong', 'Bearer ', 'Basic YTpi', testConfig(api.databaseUrl).adminToken];
    for (const headers of [{}, ...wrong.map((Authorization) => ({ Authorization }))]) {
      const { status, body } = await api.request(method, path, { headers });
      expect({ status, body }).toEqual({
        status: 401,
        body: { code: 401, error: 'Unauthorized.' },
      });
    }
  });

  test("an app's master key cannot call the admin API", async () => {
    const app = await api.createApp();
    expect((await api.request('GET', apps, { app, master: true })).status).toBe(401);
  });

  test('cannot be called by pages of another origin', async () => {
    const { headers } = await api.request('GET', apps, {
      admin: true,
      headers: { Origin: 'https://evil.test' },
    });
    expect(headers.get('access-control-allow-origin')).toBeNull();
  });

  test('no route allows it by another spelling of the path or after a preflight', async () => {
    const routes = (await loadRoutes()).filter(({ auth }) => auth === 'admin');
    expect(routes.length).toBeGreaterThan(20);
    for (const path of routes.flatMap(({ paths }) => paths))
      for (const spelled of [
        path,
        path.toUpperCase(),
        path.replace('/console', '/Console'),
        `${path}/`,
      ])
        for (const method of ['GET', 'OPTIONS']) {
          const { headers } = await api.request(method, spelled, {
            headers: { Origin: 'https://evil.test', 'Access-Control-Request-Method': 'GET' },
          });
          expect([spelled, headers.get('access-control-allow-origin')]).toEqual([spelled, null]);
        }
  });

  test('sends bodies of the type application/json only', async () => {
    const body = JSON.stringify({ name: 'a' });
    const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''];
    for (const type of types) {
      const headers = { 'Content-Type': type };
      const reply = await api.request('POST', apps, { admin: true, body, headers });
      expect([reply.status, reply.body]).toEqual([
        415,
        { code: 415, error: expect.stringMatching('json') },
      ]);
    }
    const headers = { 'Content-Type': 'application/json; charset=utf-8' };
    expect((await api.request('POST', apps, { admin: true, body, headers })).status).toBe(201);
  });
});

describe('wrong admin tokens', () => {
  let movedMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + movedMs };
  const guess = (of: TestApi, token: string, from = '192.0.2.1') =>
    of.request('GET', apps, {
      headers: { Authorization: `Bearer ${token}`, 'X-Forwarded-For': from },
    });
  const right = () => testConfig(api.databaseUrl).adminToken;

  test('return 429 after ten per minute and address; the right token still works', async () => {
    const own = await startTestApi({
      databaseUrl: api.databaseUrl,
      clock,
      env: { TRUSTED_PROXIES: '1' },
    });
    const unsent = { headers: { 'X-Forwarded-For': '192.0.2.1' } };
    for (let i = 0; i < 20; i += 1)
      expect((await own.request('GET', apps, unsent)).status).toBe(401);
    for (let i = 0; i < 10; i += 1) expect((await guess(own, `guess ${i}`)).status).toBe(401);
    const refused = await guess(own, 'another guess');
    expect([refused.status, refused.body.code]).toEqual([429, 429]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // Another caller behind the same address does not lock the operator out.
    expect((await guess(own, right())).status).toBe(200);
    expect((await guess(own, 'another guess', '192.0.2.2')).status).toBe(401);
    // All IP addresses of an IPv6 network count together.
    for (let i = 0; i < 10; i += 1) await guess(own, `guess ${i}`, `2001:db8::${i + 1}`);
    expect((await guess(own, 'another guess', '2001:db8::ffff')).status).toBe(429);
    movedMs = 60_001;
    expect((await guess(own, 'another guess')).status).toBe(401);
    await own.close();
  });

  test.each([
    ['in headers', (of: TestApi, i: number) => guess(of, `guess ${i}`)],
    [
      'in logins',
      (of: TestApi, i: number) =>
        of.request('POST', '/console/api/session', {
          headers: { 'X-Forwarded-For': '192.0.2.1' },
          body: i % 2 === 0 ? { token: `guess ${i}` } : { code: `guess ${i}` },
        }),
    ],
  ])('%s are counted even if concurrent: ten of 300 return 401', async (_, attempt) => {
    const own = await startTestApi({
      databaseUrl: api.databaseUrl,
      clock,
      env: { TRUSTED_PROXIES: '1' },
    });
    const replies = await Promise.all(Array.from({ length: 300 }, (_, i) => attempt(own, i)));
    const count = (status: number) => replies.filter((reply) => reply.status === status).length;
    expect([count(401), count(429)]).toEqual([10, 290]);
    const login = { body: { token: right() }, headers: { 'X-Forwarded-For': '192.0.2.1' } };
    expect((await own.request('POST', '/console/api/session', login)).status).toBe(200);
    await own.close();
  });

  test('are counted by address in any spelling of a proxy; an invalid address is 400', async () => {
    const own = await startTestApi({
      databaseUrl: api.databaseUrl,
      clock,
      env: { TRUSTED_PROXIES: '1' },
    });
    const forms = [
      '203.0.113.7:51820',
      '203.0.113.7',
      '[::ffff:203.0.113.7]:443',
      '::ffff:cb00:7107',
    ];
    for (let i = 0; i < 10; i += 1)
      expect((await guess(own, `guess ${i}`, forms[i % forms.length])).status).toBe(401);
    for (const form of [...forms, '203.0.113.7:9'])
      expect((await guess(own, 'x', form)).status).toBe(429);
    // Another IPv4-mapped address is another client.
    expect((await guess(own, 'x', '::ffff:cb00:7108')).status).toBe(401);
    for (const text of ['unknown', '203.0.113.7:x', '_hidden', '203.0.113']) {
      const reply = await guess(own, right(), text);
      expect([reply.status, reply.body.error]).toEqual([
        400,
        expect.stringMatching(/^X-Forwarded-For: /),
      ]);
    }
    await own.close();
  });

  test('from more IP addresses than the limit evict the oldest address', () => {
    const limit = new AttemptLimit(clock, 2);
    const fail = (address: string) => limit.fail(address, new Refusal('unauthorized')).status;
    for (let i = 0; i < 10; i += 1) fail('192.0.2.1');
    expect(fail('192.0.2.1')).toBe(429);
    for (const address of ['192.0.2.2', '192.0.2.3']) expect(fail(address)).toBe(401);
    expect(fail('192.0.2.1')).toBe(401);
  });
});

test('METRICS_TOKEN is needed for the metrics only', async () => {
  const token = 'a token of Prometheus';
  const own = await startTestApi({ databaseUrl: api.databaseUrl, env: { METRICS_TOKEN: token } });
  const scrape = (authorization?: string) =>
    own.request('GET', '/metrics', {
      headers: authorization ? { Authorization: authorization } : {},
    });
  for (const wrong of [undefined, 'Bearer', `Bearer ${token}x`, `Basic ${token}`, token])
    expect((await scrape(wrong)).body).toEqual({ code: 401, error: expect.any(String) });
  expect((await scrape(`Bearer ${token}`)).body).toContain('carillon_');
  expect((await own.request('GET', '/readyz')).status).toBe(200);
  await own.close();
});

describe('without METRICS_TOKEN, the metrics', () => {
  test('answer callers on this machine, except calls that a proxy forwards', async () => {
    expect((await api.request('GET', '/metrics')).status).toBe(200);
    for (const name of ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'Via']) {
      const reply = await api.request('GET', '/metrics', { headers: { [name]: '127.0.0.1' } });
      expect([name, reply.status, reply.body.error]).toEqual([
        name,
        401,
        expect.stringMatching(/METRICS_TOKEN/),
      ]);
    }
  });

  test.each([
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    [undefined, true],
    ['10.0.0.7', false],
    ['203.0.113.7', false],
    ['2001:db8::1', false],
    ['::ffff:10.0.0.7', false],
    ['', false],
  ])('answer a connection from %s: %s', (socketAddress, isAnswered) => {
    expect(mayReadMetrics({ headers: {}, socketAddress }, undefined)).toBe(isAnswered);
  });

  const outside = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  test.skipIf(outside === undefined)(
    'refuse a connection to another address of this machine',
    async () => {
      const own = await startTestApi({ databaseUrl: api.databaseUrl, env: { HOST: '0.0.0.0' } });
      const reply = await fetch(`http://${outside}:${new URL(own.url).port}/metrics`);
      expect([reply.status, await reply.json()]).toMatchObject([401, { code: 401 }]);
      expect((await fetch(`http://${outside}:${new URL(own.url).port}/readyz`)).status).toBe(200);
      await own.close();
    },
  );
});

describe('POST /console/api/apps', () => {
  test.each([
    ['malformed JSON', '{"name"', 107],
    ['a list', [], 107],
    ['no name', {}, 111],
    ['an empty name', { name: '  ' }, 111],
    ['a name that is not a text', { name: 1 }, 111],
    ['a name with control characters', { name: 'a\u0000b' }, 111],
    ['a name too long', { name: 'x'.repeat(101) }, 111],
    ['an unknown edition', { name: 'a', edition: 'moon' }, 111],
    ['an unknown plan', { name: 'a', plan: 'gold' }, 111],
    ['an unknown member', { name: 'a', appId: 'mine' }, 111],
    ['an unknown option', { name: 'a', options: { hybrid: true } }, 111],
    ['an option of the wrong type', { name: 'a', options: { hybridPush: 'yes' } }, 111],
    ['a member of every object', '{"name":"a","options":{"__proto__":{"hybridPush":true}}}', 111],
    [
      'a rate above the plan',
      { name: 'a', plan: 'development', options: { pushCallsPerMinute: 61 } },
      1,
    ],
    ['a rate above all plans', { name: 'a', options: { pushCallsPerMinute: 9601 } }, 111],
  ])('%s is refused with 400', async (_case, sent, code) => {
    const { status, body } = await admin('POST', apps, sent);
    expect({ status, code: body.code }).toEqual({ status: 400, code });
    expect(body.error).toMatch(/\w/);
  });

  test('a new app has its own keys and the default options', async () => {
    const { status, body } = await admin('POST', apps, { name: 'Alpha' });
    expect(status).toBe(201);
    expect(Object.keys(body).sort()).toEqual(
      ['appId', 'appKey', 'edition', 'hookKey', 'masterKey', 'name', 'options', 'plan'].sort(),
    );
    expect(new Set([body.appId, body.appKey, body.masterKey, body.hookKey]).size).toBe(4);
    expect(body).toMatchObject({ name: 'Alpha', edition: 'home', plan: 'commercial' });
    expect(body.options).toEqual({
      emailVerification: false,
      forbidUnverifiedEmailLogin: false,
      reloginAfterPasswordChange: true,
      generalSms: true,
      captchaForSms: false,
      hybridPush: false,
      forbidClientPush: true,
      allowUserQuery: false,
      allowStrictUserQuery: false,
      strictQueriesPerAddressPerHour: 2000,
      phoneVerification: false,
      forbidUnverifiedPhoneLogin: false,
      smsCountries: null,
      allowInstallationQuery: false,
      allowInstallationDelete: false,
      allowRoleCreate: true,
      maxRoles: 10_000,
      pushCallsPerMinute: 600,
      dailyRecipientCap: 1_000_000,
      approvalAboveDevices: null,
      devicePushesPerDay: null,
      quietHours: null,
      defaultTimeZone: 'UTC',
      installationValidityDays: 90,
      functionsUrl: null,
      functionsStagingUrl: null,
      functionsMasterKey: false,
      authPlatforms: {},
      mailTemplates: {},
      smsBalance: null,
      captchasPerAddressPerHour: 2000,
      installationsPerAddressPerHour: 200_000,
      installationBytesPerAddressPerDay: 256 * 1024 * 1024,
      installationBytes: 16 * 1024,
      rolesPerAddressPerHour: 500,
      roleBytesPerAddressPerDay: 16 * 1024 * 1024,
      roleBytes: 16 * 1024,
      signUpsPerAddressPerHour: 500,
      signUpBytesPerAddressPerDay: 32 * 1024 * 1024,
      userBytes: 128 * 1024,
      smsPerAddressPerHour: 500,
      smsPerAppPerDay: 100_000,
      unknownOutcome: 'repeat',
      receiptUrlGeneration: 0,
      reportOpens: false,
      checkedPlatformsOnly: false,
      trustUnverifiedNumbers: false,
      concealUsers: false,
    });
  });

  test('a development app has the limits of its plan', async () => {
    const { body } = await admin('POST', apps, {
      name: 'Dev',
      plan: 'development',
      edition: 'international',
    });
    expect(body).toMatchObject({ plan: 'development', edition: 'international' });
    expect(body.options).toMatchObject({ pushCallsPerMinute: 60, dailyRecipientCap: 10_000 });
  });
});

describe('GET /console/api/apps', () => {
  test('an unknown app is 404', async () => {
    for (const id of ['nowhere', '%00', '..%2F..', "x'--"]) {
      const { status, body } = await admin('GET', `${apps}/${id}`);
      expect([400, 404]).toContain(status);
      expect(body.error).toMatch(/\w/);
    }
    expect((await admin('GET', `${apps}/nowhere`)).body).toEqual({
      code: 404,
      error: 'There is no such app.',
    });
  });

  test('the list has every app, and a single app also has its keys', async () => {
    const app = await api.createApp();
    const { body } = await admin('GET', apps);
    const found = body.results.find((one: App) => one.appId === app.appId);
    expect(found).toMatchObject({
      masterKey: app.masterKey,
      appKey: app.appKey,
      hookKey: app.hookKey,
    });
    expect((await admin('GET', `${apps}/${app.appId}`)).body).toEqual(found);
  });
});

describe('PATCH /console/api/apps/:appId', () => {
  test.each([
    ['an unknown option', { options: { pushCalls: 1 } }, 111],
    ['an option of the wrong type', { options: { dailyRecipientCap: '10' } }, 111],
    ['an invalid URL', { options: { functionsUrl: 'javascript:alert(1)' } }, 111],
    ['the plan', { plan: 'commercial' }, 111],
    ['the keys', { masterKey: 'mine' }, 111],
    ['malformed JSON', '{', 107],
    ['days beyond a year', { options: { installationValidityDays: 366 } }, 111],
  ])('%s is refused with 400 and changes nothing', async (_case, sent, code) => {
    const app = await api.createApp();
    const { status, body } = await admin('PATCH', `${apps}/${app.appId}`, sent);
    expect({ status, code: body.code }).toEqual({ status: 400, code });
    expect((await admin('GET', `${apps}/${app.appId}`)).body.options).toEqual(app.options);
  });

  test('an unknown app is 404', async () => {
    expect((await admin('PATCH', `${apps}/nowhere`, { name: 'x' })).status).toBe(404);
  });

  test('options are merged with the existing options', async () => {
    const app = await api.createApp({ hybridPush: true });
    const path = `${apps}/${app.appId}`;
    await admin('PATCH', path, {
      options: { pushCallsPerMinute: 1200, authPlatforms: { weixin: { key: 'k' } } },
    });
    const { status, body } = await admin('PATCH', path, {
      name: 'Renamed',
      options: { generalSms: false },
    });
    expect(status).toBe(200);
    expect(body.name).toBe('Renamed');
    expect(body.options).toMatchObject({
      hybridPush: true,
      pushCallsPerMinute: 1200,
      generalSms: false,
      authPlatforms: { weixin: { key: 'k' } },
    });
    expect((await admin('PATCH', path, {})).body).toEqual(body);
  });

  test('concurrent changes are all kept', async () => {
    const app = await api.createApp();
    const path = `${apps}/${app.appId}`;
    const names = ['emailVerification', 'captchaForSms', 'hybridPush', 'allowUserQuery'];
    await Promise.all(names.map((name) => admin('PATCH', path, { options: { [name]: true } })));
    const { body } = await admin('GET', path);
    expect(names.map((name) => body.options[name])).toEqual([true, true, true, true]);
  });

  test('a changed option applies immediately in the process that changed it', async () => {
    const app = await api.createApp();
    expect((await api.services.appCache.app(app.appId))?.options.forbidClientPush).toBe(true);
    await admin('PATCH', `${apps}/${app.appId}`, { options: { forbidClientPush: false } });
    expect((await api.services.appCache.app(app.appId))?.options.forbidClientPush).toBe(false);
  });
});

describe('DELETE /console/api/apps/:appId', () => {
  test('an app is deleted with its profiles and messages', async () => {
    const app = await api.createApp();
    await admin('PUT', `${apps}/${app.appId}/profiles/vendor_d/_default`, {
      appKey: '1',
      masterSecret: 's',
    });
    await insertOutboxMessage(api.db, vault, app.appId, {
      kind: 'sms',
      to: '+1',
      type: 'code',
      text: 'x',
    });
    expect(await admin('DELETE', `${apps}/${app.appId}`, { appId: app.appId })).toMatchObject({
      status: 200,
      body: {},
    });
    for (const path of ['', '/profiles', '/outbox'])
      expect((await admin('GET', `${apps}/${app.appId}${path}`)).status).toBe(404);
    expect((await admin('DELETE', `${apps}/${app.appId}`, { appId: app.appId })).status).toBe(404);
    for (const table of ['push_profile', 'outbox']) {
      const { rows } = await api.db.query(`SELECT 1 FROM ${table} WHERE app_id = $1`, [app.appId]);
      expect(rows).toEqual([]);
    }
  });
});

describe('GET /console/api/apps/:appId/outbox', () => {
  test('an unknown kind is 400, an unknown app 404', async () => {
    const app = await api.createApp();
    expect((await admin('GET', `${apps}/${app.appId}/outbox?kind=fax`)).status).toBe(400);
    expect((await admin('GET', `${apps}/${app.appId}/outbox?to=a&to=b`)).status).toBe(400);
    expect((await admin('GET', `${apps}/nowhere/outbox`)).status).toBe(404);
  });

  test('messages are listed newest first, filtered, and are encrypted at rest', async () => {
    const [app, other] = [await api.createApp(), await api.createApp()];
    const sms = {
      kind: 'sms',
      to: '+8613800000000',
      type: 'verification',
      text: 'Code 123456',
      code: '123456',
    } as const;
    const mail = {
      kind: 'mail',
      to: 'a@b.test',
      type: 'passwordReset',
      text: 'Open',
      link: 'http://x/y',
    } as const;
    await insertOutboxMessage(api.db, vault, app.appId, sms);
    await insertOutboxMessage(api.db, vault, app.appId, mail);
    await insertOutboxMessage(api.db, vault, other.appId, sms);
    const path = `${apps}/${app.appId}/outbox`;
    const createdAt = expect.stringMatching(/Z$/);
    expect((await admin('GET', path)).body).toEqual({
      results: [
        { ...mail, createdAt },
        { ...sms, createdAt },
      ],
    });
    for (const query of ['kind=sms', 'to=%2B8613800000000', 'kind=sms&to=+8613800000000'])
      expect((await admin('GET', `${path}?${query}`)).body).toEqual({
        results: [{ ...sms, createdAt }],
      });
    expect((await admin('GET', `${path}?kind=mail&to=unknown@b.test`)).body).toEqual({
      results: [],
    });
    const { rows } = await api.db.query<{ body: Buffer }>(
      'SELECT body FROM outbox WHERE app_id = $1',
      [app.appId],
    );
    for (const row of rows)
      expect(row.body.toString('latin1')).not.toMatch(/123456|http|Code|Open/);
  });
});

test('a refusal with its own text has its code and members in a header', async () => {
  const { body, headers } = await admin('GET', '/console/api/apps/nowhere/notifications');
  expect(body.error).toBe('There is no such app.');
  const detail = headers.get('x-carillon-refusal-detail') ?? '';
  expect(JSON.parse(decodeURIComponent(detail))).toEqual({ code: 'noApp', params: {} });
});

test('unknown paths and methods under /console/api return JSON', async () => {
  const missing = await admin('GET', '/console/api/nothing');
  expect(missing.body).toEqual({ code: 404, error: 'Not found.' });
  expect(missing.headers.get('x-carillon-refusal')).toBe('notFound');
  expect((await api.request('GET', '/1.1/nothing')).headers.get('x-carillon-refusal')).toBeNull();
  expect((await admin('PUT', apps, {})).body.code).toBe(405);
});
