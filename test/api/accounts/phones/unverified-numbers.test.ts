import { describe, expect, test } from 'vitest';
import { newName, newPhone, newUid, signUp, TestUser } from '../../../support/users.ts';
import { minute, usePhones } from './phone-fixture.ts';

const phones = usePhones();
const { clock, post, messages, codeTo } = phones;

describe('a number that was never verified', () => {
  const github = () => ({ github: { uid: newUid(), access_token: 't' } });

  /** An account with somebody else's number, and every way in that its maker may have. */
  async function hijacked(of = phones.app) {
    const [mobilePhoneNumber, email, authData] = [newPhone(), `${newName()}@example.com`, github()];
    const vendor = await signUp(phones.api, of, { mobilePhoneNumber, email });
    expect((await vendor.put({ authData })).status).toBe(200);
    return { maker: vendor, mobilePhoneNumber, email, authData };
  }

  async function codeFor(path: string, mobilePhoneNumber: string, of = phones.app): Promise<string> {
    clock.moveMs(minute);
    expect((await post(path, { mobilePhoneNumber }, of)).status).toBe(200);
    const found = await messages(mobilePhoneNumber, of);
    return found[0].code;
  }

  async function expectShutOut({
    maker: vendor,
    mobilePhoneNumber,
    email,
    authData,
  }: Awaited<ReturnType<typeof hijacked>>) {
    expect((await vendor.put({ a: 1 })).status).toBe(403);
    for (const claim of [{ username: vendor.body.username }, { mobilePhoneNumber }, { email }])
      expect([210, 211]).toContain((await post('login', { ...claim, password: 'a password' })).body.code);
    const entered = await post('users', { authData });
    expect([entered.status, entered.body.objectId === vendor.id]).toEqual([201, false]);
    // The address of the maker would get a link for a new password.
    const before = (await messages(email)).length;
    expect((await post('requestPasswordReset', { email })).body.code).toBe(205);
    expect(await messages(email)).toHaveLength(before);
  }

  test('voids what was set before when its holder logs in by code: session, password, accounts, address', async () => {
    const account = await hijacked();
    const { maker: vendor, mobilePhoneNumber } = account;
    // A code that would give the account another number later.
    const own = newPhone();
    clock.moveMs(minute);
    await vendor.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber: own });
    const waiting = await codeTo(own);
    const smsCode = await codeFor('requestSmsCode', mobilePhoneNumber);
    const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ objectId: vendor.id, mobilePhoneNumber, mobilePhoneVerified: true });
    expect(reply.body.sessionToken).not.toBe(vendor.token);
    expect(reply.body.authData).toEqual({});
    expect(reply.body).not.toHaveProperty('email');
    await expectShutOut(account);
    const change = { mobilePhoneNumber: own, code: waiting };
    expect((await post('changePhoneNumber', change)).body.code).toBe(603);
    const holder = new TestUser(phones.api, phones.app, reply.body);
    expect((await holder.put({ password: 'of the holder' })).status).toBe(200);
    // From now on the number is the account's: nothing is void any more.
    const again = await codeFor('requestSmsCode', mobilePhoneNumber);
    const next = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode: again });
    expect(next.body.sessionToken).toBe(holder.token);
    expect((await post('login', { mobilePhoneNumber, password: 'of the holder' })).status).toBe(200);
  });

  test.each([
    ['nobody', false],
    ['another user', true],
  ])('voids it too when the code comes with the session of %s', async (_who, hasSession) => {
    const account = await hijacked();
    const { maker: vendor, mobilePhoneNumber } = account;
    const code = await codeFor('requestMobilePhoneVerify', mobilePhoneNumber);
    const path = `verifyMobilePhone/${code}`;
    const other = await signUp(phones.api, phones.app);
    const reply = hasSession
      ? await other.request('POST', `/1.1/${path}`, { mobilePhoneNumber })
      : await post(path, { mobilePhoneNumber });
    expect(reply.body).toEqual({ objectId: vendor.id, updatedAt: expect.any(String) });
    await expectShutOut(account);
    expect((await other.put({ a: 1 })).status).toBe(200);
  });

  test('keeps all of it when the code comes with the session of the account', async () => {
    for (const path of ['verifyMobilePhone', 'usersByMobilePhone']) {
      const { maker: vendor, mobilePhoneNumber, email } = await hijacked();
      const isVerification = path === 'verifyMobilePhone';
      const asked = isVerification ? 'requestMobilePhoneVerify' : 'requestSmsCode';
      const code = await codeFor(asked, mobilePhoneNumber);
      const reply = isVerification
        ? await vendor.request('POST', `/1.1/${path}/${code}`, { mobilePhoneNumber })
        : await vendor.request('POST', `/1.1/${path}`, { mobilePhoneNumber, smsCode: code });
      expect(reply.status).toBe(200);
      expect(await vendor.me()).toMatchObject({ email, mobilePhoneVerified: true });
      expect((await vendor.me()).authData).toHaveProperty('github');
      expect((await post('login', { mobilePhoneNumber, password: 'a password' })).status).toBe(200);
    }
  });

  test('keeps all of it where the app trusts such numbers', async () => {
    const trusting = await phones.api.createApp({ trustUnverifiedNumbers: true });
    const { maker: vendor, mobilePhoneNumber, email } = await hijacked(trusting);
    const smsCode = await codeFor('requestSmsCode', mobilePhoneNumber, trusting);
    const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode }, trusting);
    expect(reply.body).toMatchObject({ sessionToken: vendor.token, email, mobilePhoneVerified: true });
    const login = await post('login', { mobilePhoneNumber, password: 'a password' }, trusting);
    expect(login.status).toBe(200);
  });

  test('lets no call of the old session through that waits while it ends', async () => {
    const { maker: vendor, mobilePhoneNumber } = await hijacked();
    const smsCode = await codeFor('requestSmsCode', mobilePhoneNumber);
    const authData = github();
    const calls = Array.from({ length: 10 }, () => [
      vendor.put({ authData }),
      vendor.request('PUT', `/1.1/users/${vendor.id}/refreshSessionToken`),
    ]).flat();
    const [reply, ...others] = await Promise.all([
      post('usersByMobilePhone', { mobilePhoneNumber, smsCode }),
      ...calls,
    ]);
    expect(reply.status).toBe(200);
    const path = `/1.1/users/${vendor.id}`;
    const { body } = await phones.api.request('GET', path, { app: phones.app, master: true });
    expect(body.authData).toEqual({});
    const tokens = [vendor.token, ...others.flatMap(({ body: one }) => one.sessionToken ?? [])];
    for (const token of tokens) {
      const headers = { 'X-LC-Session': token };
      expect(
        (await phones.api.request('PUT', path, { app: phones.app, headers, body: { a: 1 } })).status,
      ).toBe(403);
    }
  });
});
