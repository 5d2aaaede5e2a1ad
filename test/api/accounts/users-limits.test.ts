import { describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestRequest, TestResponse } from '../../support/api.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName, newPhone, newUid, refusalOf, refused, signUp } from '../../support/users.ts';

const clock = movableClock(Date.now());
const minute = 60_000;

const api = useTestApi({ clock, env: { TRUSTED_PROXIES: '1' } });
let hosts = 0;
const newAddress = () => `192.0.2.${++hosts}`;
const byAnonymous = () => ({ authData: { anonymous: { id: newUid() } } });
const byName = () => ({ username: newName(), password: 'a password' });

/** Makes calls from one network address. */
const from =
  (address: string, app: App) =>
  (method: string, path: string, body: unknown, more: TestRequest = {}): Promise<TestResponse> =>
    api.request(method, `/1.1/${path}`, {
      app,
      body,
      ...more,
      headers: { 'X-Forwarded-For': address, ...more.headers },
    });

async function codeTo(app: App, mobilePhoneNumber: string): Promise<string> {
  clock.moveMs(minute);
  await api.request('POST', '/1.1/requestSmsCode', {
    app,
    master: true,
    body: { mobilePhoneNumber },
  });
  const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(mobilePhoneNumber)}`;
  return (await api.request('GET', path, { admin: true })).body.results[0].code;
}

describe('new users from one network address', () => {
  test('are limited per hour for all sign-ups: then 429 with the remaining seconds', async () => {
    const app = await api.createApp({ signUpsPerAddressPerHour: 4 });
    const mobilePhoneNumber = newPhone();
    const smsCode = await codeTo(app, mobilePhoneNumber);
    const call = from(newAddress(), app);
    const inBatch = () => ({
      requests: [{ method: 'POST', path: '/1.1/users', body: byAnonymous() }],
    });
    const known = byAnonymous();
    const created = [
      await call('POST', 'users', known),
      await call('POST', 'classes/_User', byName()),
      await call('POST', 'usersByMobilePhone', { mobilePhoneNumber, smsCode }),
      await call('POST', 'batch', inBatch()),
    ];
    expect(created.map(({ status }) => status)).toEqual([201, 201, 201, 200]);
    expect(created[3]?.body[0].success.objectId).toEqual(expect.any(String));

    const other = newPhone();
    const code = await codeTo(app, other);
    for (const [path, body] of [
      ['users', byAnonymous()],
      ['users', byName()],
      ['users', { authData: { github: { uid: newUid(), access_token: 't' } } }],
      ['usersByMobilePhone', { mobilePhoneNumber: other, smsCode: code }],
    ] as const) {
      const reply = await call('POST', path, body);
      expect([path, refusalOf(reply)]).toEqual([path, refused(429, 429)]);
      const seconds = Number(reply.headers.get('retry-after'));
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(3600);
    }
    expect((await call('POST', 'batch', inBatch())).body[0].error.code).toBe(429);
    // A login creates no user. Other addresses, other apps and servers with the master key are not
    // limited.
    expect((await call('POST', 'users', known)).status).toBe(200);
    expect((await from(newAddress(), app)('POST', 'users', byAnonymous())).status).toBe(201);
    expect((await call('POST', 'users', byAnonymous(), { master: true })).status).toBe(201);
    const another = await api.createApp({ signUpsPerAddressPerHour: 4 });
    expect((await from('192.0.2.1', another)('POST', 'users', byAnonymous())).status).toBe(201);
    clock.moveMs(60 * minute);
    expect((await call('POST', 'users', byAnonymous())).status).toBe(201);
  });

  test('are limited in concurrent calls, and a refused name does not count', async () => {
    const app = await api.createApp({ signUpsPerAddressPerHour: 5 });
    const call = from(newAddress(), app);
    const taken = byName();
    expect((await call('POST', 'users', taken)).status).toBe(201);
    for (let i = 0; i < 5; i += 1) expect((await call('POST', 'users', taken)).body.code).toBe(202);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => call('POST', 'users', byAnonymous())),
    );
    const count = (status: number) => replies.filter((reply) => reply.status === status).length;
    expect([count(201), count(429)]).toEqual([4, 16]);
  });

  test('are limited in bytes per day', async () => {
    const app = await api.createApp({ signUpBytesPerAddressPerDay: 100_000 });
    const call = from(newAddress(), app);
    const large = () => ({ ...byAnonymous(), text: 'x'.repeat(40_000) });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await call('POST', 'users', large())).status);
    expect(statuses).toEqual([201, 201, 429]);
    expect((await call('POST', 'users', byAnonymous())).status).toBe(201);
    clock.moveMs(60 * minute);
    const reply = await call('POST', 'users', large());
    expect(reply.status).toBe(429);
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(3600);
    clock.moveMs(24 * 60 * minute);
    expect((await call('POST', 'users', large())).status).toBe(201);
  });

  test('share a limit within an IPv6 network', async () => {
    const app = await api.createApp({ signUpsPerAddressPerHour: 1 });
    const signUpFrom = (address: string) => from(address, app)('POST', 'users', byAnonymous());
    expect((await signUpFrom('2001:db8::1')).status).toBe(201);
    expect((await signUpFrom('2001:db8::2')).status).toBe(429);
    expect((await signUpFrom('2001:db8:0:1::1')).status).toBe(201);
  });

  test('have a default limit', async () => {
    const { options } = await api.createApp();
    expect(options).toMatchObject({
      signUpsPerAddressPerHour: 500,
      signUpBytesPerAddressPerDay: 33_554_432,
      userBytes: 131_072,
    });
  });
});

describe('a user that is written with an app key', () => {
  const text = 'x'.repeat(130_000);
  const tooMuch = 'x'.repeat(132_000);
  const entries = (bytes: number) =>
    Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [
        `p${i}`,
        { uid: newUid(), access_token: 't', more: 'x'.repeat(bytes / 10) },
      ]),
    );

  test('is limited to 128 KB, at sign-up of every kind and in a batch', async () => {
    const app = await api.createApp();
    const mobilePhoneNumber = newPhone();
    const smsCode = await codeTo(app, mobilePhoneNumber);
    const call = from(newAddress(), app);
    expect((await call('POST', 'users', { ...byAnonymous(), text })).status).toBe(201);
    for (const [path, body] of [
      ['users', { ...byAnonymous(), text: tooMuch }],
      ['users', { ...byName(), text: tooMuch }],
      ['users', { authData: entries(132_000) }],
      [
        'users',
        {
          ...byName(),
          text: tooMuch.slice(70_000),
          more: tooMuch.slice(70_000),
          last: text.slice(120_000),
        },
      ],
      ['usersByMobilePhone', { mobilePhoneNumber, smsCode, text: tooMuch }],
    ] as const)
      expect([path, refusalOf(await call('POST', path, body))]).toEqual([path, refused(116)]);
    const requests = [{ method: 'POST', path: '/1.1/users', body: { ...byName(), text: tooMuch } }];
    expect((await call('POST', 'batch', { requests })).body[0].error.code).toBe(116);
    expect(
      (await call('POST', 'users', { ...byName(), text: tooMuch }, { master: true })).status,
    ).toBe(201);
  });

  test('is limited at PUT, in parts, and with linked accounts', async () => {
    const app = await api.createApp();
    const user = await signUp(api, app, { text: 'x'.repeat(100_000) });
    expect(refusalOf(await user.put({ text: tooMuch }))).toEqual(refused(116));
    expect(refusalOf(await user.put({ more: 'x'.repeat(40_000) }))).toEqual(refused(116));
    expect(refusalOf(await user.put({ authData: entries(40_000) }))).toEqual(refused(116));
    const inner = { method: 'PUT', path: `/1.1/users/${user.id}`, body: { text: tooMuch } };
    const batch = await user.request('POST', '/1.1/batch', { requests: [inner] });
    expect(batch.body[0].error.code).toBe(116);
    const github = { uid: newUid(), access_token: 't' };
    expect((await user.put({ authData: { github } })).status).toBe(200);
    const login = { authData: { github, ...entries(40_000) } };
    expect(refusalOf(await api.request('POST', '/1.1/users', { app, body: login }))).toEqual(
      refused(116),
    );
  });

  test('does not grow if a login or a change sends its tokens again', async () => {
    const app = await api.createApp({ userBytes: 2000 });
    const github = { uid: newUid(), access_token: 't'.repeat(1000) };
    const logIn = (entry: object) =>
      api.request('POST', '/1.1/users', { app, body: { authData: { github: entry } } });
    expect((await logIn(github)).status).toBe(201);
    const { body } = await logIn(github);
    const again = await api.request('PUT', `/1.1/users/${body.objectId}`, {
      app,
      headers: { 'X-LC-Session': body.sessionToken },
      body: { authData: { github } },
    });
    expect(again.status).toBe(200);
    const longer = { ...github, access_token: 't'.repeat(1900) };
    expect(refusalOf(await logIn(longer))).toEqual(refused(116));
  });

  test('may shrink if the master key made it larger; the option changes the limit', async () => {
    const app = await api.createApp({ userBytes: 2000 });
    const user = await signUp(api, app);
    const path = `/1.1/users/${user.id}`;
    const asMaster = (size: number) =>
      api.request('PUT', path, { app, master: true, body: { text: 'x'.repeat(size) } });
    expect(refusalOf(await user.put({ text: 'x'.repeat(3000) }))).toEqual(refused(116));
    expect((await asMaster(5000)).status).toBe(200);
    expect(refusalOf(await user.put({ more: 1 }))).toEqual(refused(116));
    expect((await user.put({ text: 'x'.repeat(4000) })).status).toBe(200);
    expect((await asMaster(1_000_000)).status).toBe(200);
    expect(refusalOf(await asMaster(1_100_000))).toEqual(refused(116));
  });
});
