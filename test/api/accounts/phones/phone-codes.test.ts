import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { newPhone, refusalOf, refused, signUp, type TestUser } from '../../../support/users.ts';
import { another, minute, numberOf, successes, usePhones } from './phone-fixture.ts';

const phones = usePhones();
const { clock, post, codeTo, ask, newUser, fifty } = phones;

describe('verification of a number', () => {
  async function unverified() {
    const user = await signUp(phones.api, phones.app, { mobilePhoneNumber: newPhone() });
    return { user, mobilePhoneNumber: numberOf(user) };
  }

  test('sets the flag, by number or by session', async () => {
    const { user, mobilePhoneNumber } = await unverified();
    expect(user.body.mobilePhoneVerified).toBe(false);
    const code = await ask('requestMobilePhoneVerify', { mobilePhoneNumber });
    expect(
      (await post(`verifyMobilePhone/${another(code)}`, { mobilePhoneNumber })).body.code,
    ).toBe(603);
    expect((await post(`verifyMobilePhone/${another(code)}`, {})).body.code).toBe(603);
    const reply = await user.request('POST', `/1.1/verifyMobilePhone/${code}`, {
      mobilePhoneNumber,
    });
    expect(reply.body).toEqual({ objectId: user.id, updatedAt: expect.any(String) });
    expect((await user.me()).mobilePhoneVerified).toBe(true);
    expect((await post(`verifyMobilePhone/${code}`, { mobilePhoneNumber })).body.code).toBe(603);

    const other = await unverified();
    const own = await ask('requestMobilePhoneVerify', {
      mobilePhoneNumber: other.mobilePhoneNumber,
    });
    expect((await other.user.request('POST', `/1.1/verifyMobilePhone/${own}`, {})).status).toBe(
      200,
    );
    expect((await other.user.me()).mobilePhoneVerified).toBe(true);
  });

  test('of a verified number can be requested again, even after another code', async () => {
    const mobilePhoneNumber = numberOf(await newUser());
    for (let i = 0; i < 3; i += 1)
      expect(await post('requestMobilePhoneVerify', { mobilePhoneNumber })).toMatchObject({
        status: 200,
        body: {},
      });
    const login = await ask('requestLoginSmsCode', { mobilePhoneNumber });
    expect((await post('requestMobilePhoneVerify', { mobilePhoneNumber })).status).toBe(200);
    expect((await post('login', { mobilePhoneNumber, smsCode: login })).status).toBe(200);
  });

  test('refuses codes of the general service and of another number', async () => {
    const { user, mobilePhoneNumber } = await unverified();
    const general = await ask('requestSmsCode', { mobilePhoneNumber });
    expect((await post(`verifyMobilePhone/${general}`, { mobilePhoneNumber })).body.code).toBe(603);
    const other = await unverified();
    const foreign = await ask('requestMobilePhoneVerify', {
      mobilePhoneNumber: other.mobilePhoneNumber,
    });
    expect((await post(`verifyMobilePhone/${foreign}`, { mobilePhoneNumber })).body.code).toBe(603);
    expect((await user.me()).mobilePhoneVerified).toBe(false);
  });

  test('cannot be set by PUT, and is lost with a new number', async () => {
    const user = await newUser();
    expect((await user.put({ mobilePhoneVerified: false })).body.code).toBe(117);
    expect((await user.put({ mobilePhoneNumber: newPhone() })).status).toBe(200);
    expect((await user.me()).mobilePhoneVerified).toBe(false);
  });
});

describe('change of number', () => {
  test('requires a session', async () => {
    const reply = await post('requestChangePhoneNumber', { mobilePhoneNumber: newPhone() });
    expect(reply.status).toBe(403);
    const user = await newUser();
    const request = (body: object) => user.request('POST', '/1.1/requestChangePhoneNumber', body);
    expect((await request({})).body.code).toBe(212);
    expect((await request({ mobilePhoneNumber: 'x' })).body.code).toBe(127);
    expect((await request({ mobilePhoneNumber: newPhone(), ttl: 31 })).body.code).toBe(1);
    expect((await request({ mobilePhoneNumber: newPhone(), ttl: 'x' })).body.code).toBe(111);
    expect((await request({ mobilePhoneNumber: newPhone(), ttl: '31' })).body.code).toBe(1);
    expect((await request({ mobilePhoneNumber: newPhone(), ttl: '6' })).body).toEqual({});
  });

  test('sets the number that got the code, as verified, within six minutes', async () => {
    const user = await newUser();
    const mobilePhoneNumber = newPhone();
    const request = () =>
      user.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber });
    expect((await request()).body).toEqual({});
    const late = await codeTo(mobilePhoneNumber);
    clock.moveMs(6 * minute);
    const change = (body: object) => user.request('POST', '/1.1/changePhoneNumber', body);
    expect((await change({ mobilePhoneNumber, code: late })).body.code).toBe(603);
    await request();
    const code = await codeTo(mobilePhoneNumber);
    expect((await change({ mobilePhoneNumber: newPhone(), code })).body.code).toBe(603);
    expect((await change({ mobilePhoneNumber, code: { $ne: 1 } })).body.code).toBe(603);
    expect((await change({ mobilePhoneNumber })).body.code).toBe(603);
    expect((await change({ mobilePhoneNumber, code })).body).toEqual({});
    expect(await user.me()).toMatchObject({ mobilePhoneNumber, mobilePhoneVerified: true });
    expect((await change({ mobilePhoneNumber, code })).body.code).toBe(603);
  });

  test('refuses the code of another account', async () => {
    const [user, thief] = [await newUser(), await newUser()];
    const mobilePhoneNumber = newPhone();
    await user.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber });
    const code = await codeTo(mobilePhoneNumber);
    const stolen = await thief.request('POST', '/1.1/changePhoneNumber', {
      mobilePhoneNumber,
      code,
    });
    expect(stolen.body.code).toBe(603);
    // Without a session, the code belongs to the account that requested it.
    expect((await post('changePhoneNumber', { mobilePhoneNumber, code })).body).toEqual({});
    expect((await user.me()).mobilePhoneNumber).toBe(mobilePhoneNumber);
  });

  test('takes the number away from users who claimed but did not verify it', async () => {
    for (const trustUnverifiedNumbers of [false, true]) {
      await phones.api.services.apps.change(phones.app.appId, {
        options: { trustUnverifiedNumbers },
      });
      const mobilePhoneNumber = newPhone();
      const [user, claimer] = [
        await newUser(),
        await signUp(phones.api, phones.app, { mobilePhoneNumber, nick: 'x' }),
      ];
      clock.moveMs(minute);
      await user.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber });
      const body = { mobilePhoneNumber, code: await codeTo(mobilePhoneNumber) };
      expect((await user.request('POST', '/1.1/changePhoneNumber', body)).status).toBe(200);
      expect(await user.me()).toMatchObject({ mobilePhoneNumber, mobilePhoneVerified: true });
      // The other account stays, but without the number.
      const left = await claimer.me();
      expect(left).toMatchObject({ nick: 'x', mobilePhoneVerified: false });
      expect(left).not.toHaveProperty('mobilePhoneNumber');
      const smsCode = await ask('requestLoginSmsCode', { mobilePhoneNumber });
      expect((await post('login', { mobilePhoneNumber, smsCode })).body.objectId).toBe(user.id);
    }
    await phones.api.services.apps.change(phones.app.appId, {
      options: { trustUnverifiedNumbers: false },
    });
  });

  test('refuses with 214 a number that another user has verified', async () => {
    const [user, owner] = [await newUser(), await newUser()];
    clock.moveMs(minute);
    const mobilePhoneNumber = numberOf(owner);
    await user.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber });
    const body = { mobilePhoneNumber, code: await codeTo(mobilePhoneNumber) };
    expect((await user.request('POST', '/1.1/changePhoneNumber', body)).body.code).toBe(214);
    expect((await owner.me()).mobilePhoneNumber).toBe(mobilePhoneNumber);
  });
});

describe('reset of the password by code', () => {
  const reset = (code: string, body: object, of: TestApi = phones.api) =>
    of.request('PUT', `/1.1/resetPasswordBySmsCode/${code}`, { app: phones.app, body });

  test.each([
    [{ password: 'new' }, 603],
    [{ password: 'new', mobilePhoneNumber: '' }, 603],
    [{ mobilePhoneNumber: { $ne: 1 }, password: 'new' }, 127],
    [{ mobilePhoneNumber: '+8613800001237' }, 201],
    [{ mobilePhoneNumber: '+8613800001237', password: '' }, 201],
    [{ mobilePhoneNumber: '+8613800001237', password: ' ' }, 218],
    [{ mobilePhoneNumber: '+8613800001237', password: { $ne: '' } }, 218],
    [{ mobilePhoneNumber: '+8613800001237', password: 'new' }, 603],
  ])('refuses %j with code %i', async (body, code) => {
    expect(refusalOf(await reset('123456', body))).toEqual(refused(code));
  });

  test('accepts POST in addition to PUT', async () => {
    const mobilePhoneNumber = numberOf(await newUser(newPhone(), { password: 'old password' }));
    const code = await ask('requestPasswordResetBySmsCode', { mobilePhoneNumber });
    const body = { mobilePhoneNumber, password: 'by post' };
    expect((await post(`resetPasswordBySmsCode/${another(code)}`, body)).body.code).toBe(603);
    expect(await post(`resetPasswordBySmsCode/${code}`, body)).toMatchObject({
      status: 200,
      body: {},
    });
    expect((await post('login', body)).status).toBe(200);
  });

  test('sets the password and ends the session immediately on every process', async () => {
    const user = await newUser(newPhone(), { password: 'old password' });
    const mobilePhoneNumber = numberOf(user);
    const code = await ask('requestPasswordResetBySmsCode', { mobilePhoneNumber });
    expect((await reset(another(code), { mobilePhoneNumber, password: 'new' })).body.code).toBe(
      603,
    );
    expect((await reset(code, { mobilePhoneNumber, password: 'new' })).body).toEqual({});
    expect((await reset(code, { mobilePhoneNumber, password: 'newer' })).body.code).toBe(603);
    for (const one of [phones.api, phones.secondApi]) {
      const headers = { 'X-LC-Session': user.token };
      const stale = await one.request('PUT', `/1.1/users/${user.id}`, {
        app: phones.app,
        headers,
        body: { a: 1 },
      });
      expect(stale.status).toBe(403);
    }
    expect((await post('login', { mobilePhoneNumber, password: 'old password' })).body.code).toBe(
      210,
    );
    const fresh = await post('login', { mobilePhoneNumber, password: 'new' });
    expect(fresh.status).toBe(200);
    expect(fresh.body.sessionToken).not.toBe(user.token);
  });

  test('does not lift the lock', async () => {
    const mobilePhoneNumber = numberOf(await newUser(newPhone(), { password: 'old password' }));
    for (let i = 0; i < 7; i += 1) await post('login', { mobilePhoneNumber, password: 'wrong' });
    const code = await ask('requestPasswordResetBySmsCode', { mobilePhoneNumber });
    expect((await reset(code, { mobilePhoneNumber, password: 'new' })).body).toEqual({});
    expect((await post('login', { mobilePhoneNumber, password: 'new' })).body.code).toBe(219);
    clock.moveMs(15 * minute);
    expect((await post('login', { mobilePhoneNumber, password: 'new' })).status).toBe(200);
  });

  test('succeeds once among 50 concurrent calls', async () => {
    clock.moveMs(10 * minute);
    const mobilePhoneNumber = numberOf(await newUser());
    const code = await ask('requestPasswordResetBySmsCode', { mobilePhoneNumber });
    const replies = await fifty((one) => reset(code, { mobilePhoneNumber, password: 'new' }, one));
    expect(successes(replies)).toBe(1);
    expect(replies.filter(({ body }) => body.code === 603)).toHaveLength(49);
  });
});

describe('a code without its number, as the JavaScript SDK sends it', () => {
  const reset = (code: string, of: TestApi, address: string) =>
    of.request('PUT', `/1.1/resetPasswordBySmsCode/${code}`, {
      app: phones.app,
      body: { password: 'new' },
      headers: { 'X-Forwarded-For': address },
    });
  let proxied: TestApi;

  beforeAll(async () => {
    proxied = await startTestApi({
      databaseUrl: phones.databaseUrl,
      clock,
      env: { TRUSTED_PROXIES: '1' },
    });
  });
  afterAll(() => proxied.close());

  async function codeOf(user: TestUser, address: string): Promise<string> {
    clock.moveMs(minute);
    const mobilePhoneNumber = numberOf(user);
    const reply = await proxied.request('POST', '/1.1/requestPasswordResetBySmsCode', {
      app: phones.app,
      body: { mobilePhoneNumber },
      headers: { 'X-Forwarded-For': address },
    });
    expect(reply.body).toEqual({});
    return codeTo(mobilePhoneNumber);
  }

  test('is valid once, from the address that requested it', async () => {
    const [one, two] = [await newUser(), await newUser()];
    const [ofOne, ofTwo] = [await codeOf(one, '192.0.2.1'), await codeOf(two, '192.0.2.1')];
    expect((await reset(ofOne, proxied, '192.0.2.2')).body.code).toBe(603);
    expect((await reset(ofOne, proxied, '192.0.2.1')).body).toEqual({});
    expect((await reset(ofOne, proxied, '192.0.2.1')).body.code).toBe(603);
    expect((await one.put({ a: 1 })).status).toBe(403);
    expect((await two.put({ a: 1 })).status).toBe(200);
    expect((await reset(ofTwo, proxied, '192.0.2.1')).body).toEqual({});
  });

  test('allows ten tries per address in ten minutes, with or without requests', async () => {
    const user = await newUser();
    const code = await codeOf(user, '192.0.2.3');
    for (const address of ['192.0.2.3', '192.0.2.4']) {
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => reset(another(code), proxied, address)),
      );
      expect(replies.map(refusalOf)).toEqual(Array(10).fill(refused(603)));
    }
    expect((await reset(code, proxied, '192.0.2.3')).body.code).toBe(603);
    // With its number the code is still valid, because the tries of the address did not count
    // against it.
    const body = { password: 'new', mobilePhoneNumber: numberOf(user) };
    const named = await phones.api.request('PUT', `/1.1/resetPasswordBySmsCode/${code}`, {
      app: phones.app,
      body,
    });
    expect(named.body).toEqual({});
    clock.moveMs(10 * minute);
    const later = await codeOf(user, '192.0.2.3');
    expect((await reset(later, proxied, '192.0.2.3')).body).toEqual({});
  });

  test('verifies a number too, but is not a code of the general service', async () => {
    const user = await signUp(phones.api, phones.app, { mobilePhoneNumber: newPhone() });
    const code = await ask('requestMobilePhoneVerify', { mobilePhoneNumber: numberOf(user) });
    expect((await post(`verifyMobilePhone/${code}`, {})).body.objectId).toBe(user.id);
    const general = await ask('requestSmsCode', { mobilePhoneNumber: newPhone() });
    expect((await post(`verifySmsCode/${general}`, {})).body.code).toBe(212);
  });
});
