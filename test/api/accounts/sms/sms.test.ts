import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App, AppOptionsPatch } from '../../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi, type TestResponse } from '../../../support/api.ts';
import { movableClock } from '../../../support/gateways/apns.ts';
import { useTestApi } from '../../../support/test-api.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

let secondApi: TestApi;
const clock = movableClock(Date.now());

const api = useTestApi({ clock });
beforeAll(async () => {
  secondApi = await startTestApi({ databaseUrl: api.databaseUrl, clock });
});

afterAll(async () => {
  await secondApi.close();
});

const phone = '+8613800138000';
/** Returns a number for the n-th person. Each number is in a separate block. */
const numberOf = (n: number) => `+86138${String(n * 10_007).padStart(8, '0')}`;

const request = (app: App, body: object = {}, more: object = {}) =>
  api.request('POST', '/1.1/requestSmsCode', {
    app,
    body: { mobilePhoneNumber: phone, ...body },
    ...more,
  });

const verify = (app: App, code: string, body: object = { mobilePhoneNumber: phone }) =>
  api.request('POST', `/1.1/verifySmsCode/${code}`, { app, body });

async function outbox(app: App, to = phone) {
  const path = `/console/api/apps/${app.appId}/outbox?kind=sms&to=${encodeURIComponent(to)}`;
  const { status, body } = await api.request('GET', path, { admin: true });
  expect(status).toBe(200);
  return body.results;
}

async function codeFor(app: App, to = phone): Promise<string> {
  return (await outbox(app, to))[0].code;
}

async function accepted(app: App, body: object = {}, more: object = {}) {
  const reply = await request(app, body, more);
  expect(reply.body).toEqual({});
  expect(reply.status).toBe(200);
}

const another = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

describe('POST /1.1/requestSmsCode', () => {
  test('requires the keys of an app', async () => {
    const body = { mobilePhoneNumber: phone };
    expect((await api.request('POST', '/1.1/requestSmsCode', { body })).body.code).toBe(401);
  });

  test.each([
    [{ mobilePhoneNumber: undefined }, 212],
    [{ mobilePhoneNumber: '' }, 212],
    [{ mobilePhoneNumber: null }, 212],
    [{ mobilePhoneNumber: '12345' }, 127],
    [{ mobilePhoneNumber: 13_800_138_000 }, 127],
    [{ mobilePhoneNumber: { $ne: 1 } }, 127],
    [{ mobilePhoneNumber: [phone] }, 127],
    [{ mobilePhoneNumber: '+86 10 12345678' }, 127],
    [{ smsType: 'fax' }, 111],
    [{ smsType: { $ne: 'sms' } }, 111],
    [{ ttl: 'ten' }, 111],
    [{ ttl: '' }, 111],
    [{ ttl: '1e1' }, 111],
    [{ ttl: ' 5' }, 111],
    [{ ttl: '0' }, 1],
    [{ ttl: '31' }, 1],
    [{ ttl: { $gt: 0 } }, 111],
    [{ ttl: 0 }, 1],
    [{ ttl: -1 }, 1],
    [{ ttl: 31 }, 1],
    [{ name: { $ne: 1 } }, 111],
    [{ op: ['x'] }, 111],
    [{ sign: { a: 1 } }, 111],
    [{ template: true }, 111],
    [{ validate_token: {} }, 111],
    [{ name: 'x'.repeat(101) }, 1],
    [{ name: 'see http://evil.example' }, 1],
    [{ name: 'pay at evil.com' }, 1],
    [{ op: 'EVIL．ｃｏｍ' }, 1],
    [{ op: 'evil。com' }, 1],
    [{ op: 'evil\u200b.\u200bcom' }, 1],
    [{ op: 'ｗｗｗ．evil' }, 1],
    [{ name: '10.0.0.1' }, 1],
    [{ name: 'ﷺ'.repeat(10) }, 1],
    [{ op: '【Bank】' }, 1],
    [{ op: 'a\nb' }, 1],
    [{ op: '】【Bank' }, 1],
    [{ sign: 'Unknown' }, 600],
    [{ template: 'none' }, 604],
    [{ smsType: 'voice', mobilePhoneNumber: '+14155552671' }, 1],
  ])('refuses %j with code %i', async (body, code) => {
    const app = await api.createApp();
    const reply = await request(app, body);
    expect(reply.body).toEqual({ code, error: expect.any(String) });
    expect(reply.status).toBe(400);
    expect(await outbox(app)).toEqual([]);
  });

  test('refuses an unrepresentable JSON number with 111', async () => {
    const app = await api.createApp();
    const body = '{"mobilePhoneNumber":"+8613800138000","level":1e999}';
    const reply = await api.request('POST', '/1.1/requestSmsCode', { app, body });
    expect([reply.status, reply.body.code]).toEqual([400, 111]);
  });

  test('returns 119 if the service is disabled, and so does the verification', async () => {
    const app = await api.createApp({ generalSms: false });
    const reply = await request(app);
    expect([reply.status, reply.body.code]).toEqual([400, 119]);
    expect((await verify(app, '123456')).body.code).toBe(119);
  });

  test('refuses voice outside the home edition', async () => {
    const app = await api.services.apps.create({ name: 'Abroad', edition: 'international' });
    expect((await request(app, { smsType: 'voice' })).body.code).toBe(1);
    await accepted(app);
    expect((await outbox(app))[0].text).toMatch(/^【Abroad】/);
  });

  test('sends a code of six digits, signed with the name of the app', async () => {
    const app = await api.createApp();
    await accepted(app, { mobilePhoneNumber: '138 0013 8000' });
    const [message] = await outbox(app);
    expect(message).toEqual({
      kind: 'sms',
      to: phone,
      type: 'general',
      text: expect.stringContaining(message.code),
      code: expect.stringMatching(/^\d{6}$/),
      createdAt: expect.any(String),
    });
    expect(message.text).toMatch(/^【Test app】Test app：您的验证码是 \d{6}，10 分钟内有效/);
  });

  test('contains name, operation and validity, in English for foreign numbers', async () => {
    const app = await api.createApp();
    await accepted(app, { name: 'Shop', op: '付款', ttl: 5 });
    expect((await outbox(app))[0].text).toMatch(
      /^【Test app】您正在Shop进行付款，验证码是 \d{6}，5 分钟/,
    );
    const abroad = '+14155552671';
    await accepted(app, { mobilePhoneNumber: abroad, op: 'paying' });
    const text = (await outbox(app, abroad))[0].text;
    expect(text).toMatch(
      /^\[Test app\] Your Test app code for paying is \d{6}\. It is valid for 10 minutes/,
    );
  });

  test('accepts numbers and full stops in names, and normalizes characters', async () => {
    const app = await api.createApp();
    await accepted(app, { name: 'Ｓｈｏｐ', op: '付款３．５元。请勿转告' });
    expect((await outbox(app))[0].text).toContain('您正在Shop进行付款3.5元。请勿转告，');
  });

  test("accepts a dot in the app's own name", async () => {
    const app = await api.services.apps.create({ name: 'Shop.com', edition: 'international' });
    await accepted(app);
    expect((await outbox(app))[0].text).toContain('Shop.com');
  });

  test('sends only the six digits by voice', async () => {
    const app = await api.createApp();
    await accepted(app, { smsType: 'voice' });
    const [message] = await outbox(app);
    expect(message).toMatchObject({ type: 'voice', text: message.code });
    expect((await verify(app, message.code)).status).toBe(200);
  });

  test('are found in the outbox by any spelling of the number', async () => {
    const app = await api.createApp();
    await accepted(app);
    expect(await outbox(app, '13800138000')).toHaveLength(1);
    expect(await outbox(app, '+14155552671')).toHaveLength(0);
  });
});

describe('POST /1.1/verifySmsCode/:code', () => {
  test.each([
    [{}, 212],
    [{ mobilePhoneNumber: { $ne: 1 } }, 127],
    [{ mobilePhoneNumber: 'x' }, 127],
  ])('refuses the number of %j with code %i', async (body, code) => {
    const app = await api.createApp();
    expect((await verify(app, '123456', body)).body.code).toBe(code);
  });

  test('accepts the code once', async () => {
    const app = await api.createApp();
    await accepted(app);
    const code = await codeFor(app);
    expect((await verify(app, code, { mobilePhoneNumber: '138-0013-8000' })).body).toEqual({});
    expect((await verify(app, code)).body).toEqual({ code: 603, error: 'Invalid SMS code.' });
  });

  test("returns 603 for wrong, malformed, expired, used and other apps' codes", async () => {
    const app = await api.createApp();
    const other = await api.createApp();
    // Digits in a text are accepted too, because a sample of LeanCloud sends them so.
    await accepted(app, { ttl: '1' });
    await accepted(other, { mobilePhoneNumber: numberOf(1) });
    const code = await codeFor(app);
    const replies = [
      await verify(app, another(code)),
      await verify(app, '12345'),
      await verify(app, '%7B%22$ne%22:1%7D'),
      await verify(app, code, { mobilePhoneNumber: numberOf(1) }),
      await verify(other, code),
    ];
    clock.moveMs(minute);
    replies.push(await verify(app, code));
    for (const reply of replies) {
      expect(reply.body).toEqual({ code: 603, error: 'Invalid SMS code.' });
      expect(reply.status).toBe(400);
    }
  });

  test('invalidates a code after five wrong tries', async () => {
    const app = await api.createApp();
    await accepted(app);
    const code = await codeFor(app);
    for (let i = 0; i < 5; i += 1) expect((await verify(app, another(code))).body.code).toBe(603);
    expect((await verify(app, code)).body.code).toBe(603);
  });

  test('accepts only the last code', async () => {
    const app = await api.createApp();
    await accepted(app);
    const first = await codeFor(app);
    clock.moveMs(minute);
    await accepted(app);
    const second = await codeFor(app);
    if (first !== second) expect((await verify(app, first)).body.code).toBe(603);
    expect((await verify(app, second)).status).toBe(200);
  });

  test('succeeds exactly once among 50 concurrent calls, over two processes', async () => {
    const app = await api.createApp();
    await accepted(app);
    const code = await codeFor(app);
    const body = { mobilePhoneNumber: phone };
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 ? api : secondApi).request('POST', `/1.1/verifySmsCode/${code}`, { app, body }),
      ),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ body }) => body.code === 603)).toHaveLength(49);
  });

  test('stores no code in plain text', async () => {
    const app = await api.createApp();
    await accepted(app);
    const code = await codeFor(app);
    const { rows } = await api.db.query<{ digest: string }>(
      'SELECT digest FROM verification_code WHERE app_id = $1',
      [app.appId],
    );
    expect(rows[0]?.digest).toHaveLength(43);
    expect(rows[0]?.digest).not.toContain(code);
  });
});

describe('the limits of a number', () => {
  test('allow one message in 10 seconds (code 1) and one per minute (601)', async () => {
    const app = await api.createApp();
    await accepted(app);
    const soon = await request(app);
    expect(soon.body).toEqual({ code: 1, error: 'SMS request too fast(1 request per 10s).' });
    expect(soon.headers.get('retry-after')).toBe('10');
    clock.moveMs(10 * second);
    const later = await request(app, { mobilePhoneNumber: '13800138000' });
    expect(later.body).toEqual({ code: 601, error: "Can't send SMS too frequently." });
    clock.moveMs(50 * second);
    await accepted(app);
    expect(await outbox(app)).toHaveLength(2);
  });

  test('allow ten codes in any 24 hours', async () => {
    const app = await api.createApp();
    for (let i = 0; i < 10; i += 1) {
      await accepted(app);
      clock.moveMs(hour);
    }
    expect((await request(app)).body.code).toBe(601);
    clock.moveMs(14 * hour);
    await accepted(app);
    expect((await request(app)).body.code).toBe(1);
  });

  test('are counted per signature', async () => {
    const app = await api.createApp();
    const path = `/console/api/apps/${app.appId}/sms-signatures/Second`;
    await api.request('PUT', path, { admin: true, body: {} });
    await api.request('POST', `${path}/approve`, { admin: true });
    await accepted(app);
    clock.moveMs(10 * second);
    await accepted(app, { sign: 'Second' });
    expect((await outbox(app))[0].text).toMatch(/^【Second】/);
  });

  test('for voice calls allow one in 30 seconds, three per hour and five per day', async () => {
    const app = await api.createApp();
    const voice = { smsType: 'voice' };
    await accepted(app, voice);
    clock.moveMs(29 * second);
    expect((await request(app, voice)).body.code).toBe(601);
    for (let i = 0; i < 2; i += 1) {
      clock.moveMs(30 * second);
      await accepted(app, voice);
    }
    clock.moveMs(30 * second);
    expect((await request(app, voice)).body.code).toBe(601);
    clock.moveMs(hour);
    await accepted(app, voice);
    clock.moveMs(hour);
    await accepted(app, voice);
    clock.moveMs(2 * hour);
    expect((await request(app, voice)).body.code).toBe(601);
    clock.moveMs(24 * hour);
    await accepted(app, voice);
  });

  test('apply to 50 concurrent requests over two processes', async () => {
    const app = await api.createApp();
    const body = { mobilePhoneNumber: phone };
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 ? api : secondApi).request('POST', '/1.1/requestSmsCode', { app, body }),
      ),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ body }) => body.code === 1)).toHaveLength(49);
    expect(await outbox(app)).toHaveLength(1);
  });
});

describe('the spending limits', () => {
  /**
   * Makes twenty calls at a time. With a hundred at once, the last calls would wait too long for a
   * connection and get 503.
   */
  const many = async (app: App, from: number, to: number, more: object = {}) => {
    const replies: TestResponse[] = [];
    for (let next = from; next < to; next += 20) {
      const wave = Array.from({ length: Math.min(20, to - next) }, (_, i) =>
        request(app, { mobilePhoneNumber: numberOf(next + i) }, more),
      );
      replies.push(...(await Promise.all(wave)));
    }
    return replies;
  };
  const codes = (replies: { status: number; body: { code?: number } }[]) => {
    const counts: Record<string, number> = {};
    for (const { body } of replies) counts[body.code ?? 200] = (counts[body.code ?? 200] ?? 0) + 1;
    return counts;
  };
  const appWith = (options: AppOptionsPatch) => api.createApp(options);

  test('per address refuse the next number with 154, except with the master key', async () => {
    const app = await appWith({ smsPerAddressPerHour: 5 });
    expect(codes(await many(app, 0, 20))).toEqual({ 200: 5, 154: 15 });
    expect(codes(await many(app, 20, 22, { master: true }))).toEqual({ 200: 2 });
    clock.moveMs(hour);
    expect(codes(await many(app, 30, 31))).toEqual({ 200: 1 });
  });

  test("per address ignore a caller's X-Forwarded-For", async () => {
    const app = await appWith({ smsPerAddressPerHour: 1 });
    const from = (n: number, list: string, of: TestApi = api) =>
      of.request('POST', '/1.1/requestSmsCode', {
        app,
        body: { mobilePhoneNumber: numberOf(n) },
        headers: { 'X-Forwarded-For': list },
      });
    expect((await from(0, '192.0.2.1')).status).toBe(200);
    expect((await from(1, '192.0.2.2')).body.code).toBe(154);
    // With one proxy, the last address is the client's. An IPv6 host owns a whole network.
    const env = { TRUSTED_PROXIES: '1' };
    const behind = await startTestApi({ databaseUrl: api.databaseUrl, clock, env });
    try {
      expect((await from(2, '192.0.2.9, 192.0.2.1', behind)).status).toBe(200);
      expect((await from(3, '192.0.2.8, 192.0.2.1', behind)).body.code).toBe(154);
      expect((await from(4, '192.0.2.1, 192.0.2.2', behind)).status).toBe(200);
      expect((await from(5, '2001:db8:1:2::1', behind)).status).toBe(200);
      expect((await from(6, '2001:0db8:1:2:ffff::9', behind)).body.code).toBe(154);
      expect((await from(7, '2001:db8:1:3::1', behind)).status).toBe(200);
    } finally {
      await behind.close();
    }
  });

  test('per app and day', async () => {
    const app = await appWith({ smsPerAppPerDay: 3 });
    expect(codes(await many(app, 0, 10))).toEqual({ 200: 3, 154: 7 });
    clock.moveMs(24 * hour);
    expect(codes(await many(app, 0, 1))).toEqual({ 200: 1 });
  });

  test('of zero allow no message', async () => {
    expect(codes(await many(await appWith({ smsPerAppPerDay: 0 }), 0, 2))).toEqual({ 154: 2 });
    expect(codes(await many(await appWith({ smsPerAddressPerHour: 0 }), 0, 2))).toEqual({ 154: 2 });
  });

  test('by balance do not exist for an app without a balance', async () => {
    const app = await appWith({});
    expect(codes(await many(app, 0, 110))).toEqual({ 200: 110 });
    const path = `/console/api/apps/${app.appId}`;
    const { body } = await api.request('GET', path, { admin: true });
    expect(body.options.smsBalance).toBeNull();
    const state = await api.request('GET', `${path}/sms-state`, { admin: true });
    expect(state.body).toMatchObject({ balance: null, free: { used: 0 } });
    const limit = (smsBalance: number | null) =>
      api.request('PATCH', path, { admin: true, body: { options: { smsBalance } } });
    await limit(0);
    expect((await request(app, { mobilePhoneNumber: '+14155552671' })).body.code).toBe(160);
    await limit(null);
    expect((await request(app, { mobilePhoneNumber: '+14155552671' })).status).toBe(200);
  });

  test('by balance allow a hundred free domestic messages, then return 160', async () => {
    const app = await appWith({ smsBalance: 0 });
    expect(codes(await many(app, 0, 110))).toEqual({ 200: 100, 160: 10 });
    expect((await request(app, { mobilePhoneNumber: '+14155552671' })).body).toEqual({
      code: 160,
      error: 'Insufficient balance.',
    });
  });

  test('by balance charge messages, and never go below zero', async () => {
    const app = await appWith({ smsBalance: 1.2 });
    const abroad = Array.from({ length: 5 }, (_, i) =>
      request(app, { mobilePhoneNumber: `+1415555267${i}` }),
    );
    expect(codes(await Promise.all(abroad))).toEqual({ 200: 2, 160: 3 });
    const { body } = await api.request('GET', `/console/api/apps/${app.appId}`, { admin: true });
    expect(body.options.smsBalance).toBe(0.2);
    const path = `/console/api/apps/${app.appId}`;
    await api.request('PATCH', path, { admin: true, body: { options: { smsBalance: 1 } } });
    expect((await request(app, { mobilePhoneNumber: '+14155552679' })).status).toBe(200);
  });

  test('against pumping suspend sending if few codes are used, with a metric', async () => {
    const app = await appWith({});
    expect(codes(await many(app, 0, 100))).toEqual({ 200: 100 });
    clock.moveMs(11 * minute);
    const refused = await request(app, { mobilePhoneNumber: numberOf(200) });
    expect(refused.body.code).toBe(154);
    expect(Number(refused.headers.get('retry-after'))).toBe(3600);
    const scrape = async () => String((await secondApi.request('GET', '/metrics')).body);
    expect(await scrape()).toContain(
      `carillon_sms_breaker_open{app="${app.appId}",prefix="+86"} 1`,
    );
    const trips = String((await api.request('GET', '/metrics')).body);
    expect(trips).toContain(`carillon_sms_breaker_trips_total{app="${app.appId}",prefix="+86"} 1`);
    // Another country and another app are not affected.
    expect((await request(app, { mobilePhoneNumber: '+14155552671' })).status).toBe(200);
    expect((await request(await appWith({}))).status).toBe(200);
    clock.moveMs(hour);
    expect((await request(app, { mobilePhoneNumber: numberOf(200) })).status).toBe(200);
    expect(await scrape()).not.toContain(`carillon_sms_breaker_open{app="${app.appId}"`);
  });

  test('do not affect an app whose codes are used', async () => {
    const app = await appWith({});
    expect(codes(await many(app, 0, 100))).toEqual({ 200: 100 });
    for (let i = 0; i < 10; i += 1) {
      const to = numberOf(i);
      expect((await verify(app, await codeFor(app, to), { mobilePhoneNumber: to })).status).toBe(
        200,
      );
    }
    clock.moveMs(11 * minute);
    expect((await request(app, { mobilePhoneNumber: numberOf(200) })).status).toBe(200);
  });

  test('put no number, address or code into the metrics', async () => {
    const app = await appWith({});
    await accepted(app, { mobilePhoneNumber: numberOf(77) });
    await request(app, { mobilePhoneNumber: numberOf(77) });
    const text = String((await api.request('GET', '/metrics')).body);
    expect(text).toContain(
      `carillon_sms_requests_total{app="${app.appId}",type="general",outcome="accepted"} 1`,
    );
    expect(text).toContain('outcome="invalidParameter"');
    expect(text).not.toContain(numberOf(77).slice(3));
    expect(text).not.toContain('127.0.0.1');
  });
});
