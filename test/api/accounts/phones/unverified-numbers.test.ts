import { describe, expect, test } from 'vitest';
import { newName, newPhone, newUid, signUp, TestUser } from '../../../support/users.ts';
import { minute, usePhones } from './phone-fixture.ts';

const phones = usePhones();
const { clock, post, messages, codeTo } = phones;

describe('a number that was never verified', () => {
  const github = () => ({ github: { uid: newUid(), access_token: 't' } });

  /**
   * Creates an account with another person's number and every kind of access that its creator may
   * have.
   */
  async function hijacked(of = phones.app) {
    const [mobilePhoneNumber, email, authData] = [newPhone(), `${newName()}@example.com`, github()];
    const creator = await signUp(phones.api, of, { mobilePhoneNumber, email });
    expect((await creator.put({ authData })).status).toBe(200);
    return { creator, mobilePhoneNumber, email, authData };
  }

  async function codeFor(
    path: string,
    mobilePhoneNumber: string,
    of = phones.app,
  ): Promise<string> {
    clock.moveMs(minute);
    expect((await post(path, { mobilePhoneNumber }, of)).status).toBe(200);
    const found = await messages(mobilePhoneNumber, of);
    return found[0].code;
  }

  async function expectShutOut({
    creator,
    mobilePhoneNumber,
    email,
    authData,
  }: Awaited<ReturnType<typeof hijacked>>) {
    expect((await creator.put({ a: 1 })).status).toBe(403);
    for (const claim of [{ username: creator.body.username }, { mobilePhoneNumber }, { email }])
      expect([210, 211]).toContain(
        (await post('login', { ...claim, password: 'a password' })).body.code,
      );
    const entered = await post('users', { authData });
    expect([entered.status, entered.body.objectId === creator.id]).toEqual([201, false]);
    // A reset link must not be sent to the address of the creator.
    const before = (await messages(email)).length;
    expect((await post('requestPasswordReset', { email })).body.code).toBe(205);
    expect(await messages(email)).toHaveLength(before);
  }

  test('revokes session, password, accounts and address at a login by code', async () => {
    const account = await hijacked();
    const { creator, mobilePhoneNumber } = account;
    // This code could change the number later.
    const own = newPhone();
    clock.moveMs(minute);
    await creator.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber: own });
    const waiting = await codeTo(own);
    const smsCode = await codeFor('requestSmsCode', mobilePhoneNumber);
    const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({
      objectId: creator.id,
      mobilePhoneNumber,
      mobilePhoneVerified: true,
    });
    expect(reply.body.sessionToken).not.toBe(creator.token);
    expect(reply.body.authData).toEqual({});
    expect(reply.body).not.toHaveProperty('email');
    await expectShutOut(account);
    const change = { mobilePhoneNumber: own, code: waiting };
    expect((await post('changePhoneNumber', change)).body.code).toBe(603);
    const holder = new TestUser(phones.api, phones.app, reply.body);
    expect((await holder.put({ password: 'of the holder' })).status).toBe(200);
    // The number is verified now, so another login revokes nothing.
    const again = await codeFor('requestSmsCode', mobilePhoneNumber);
    const next = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode: again });
    expect(next.body.sessionToken).toBe(holder.token);
    expect((await post('login', { mobilePhoneNumber, password: 'of the holder' })).status).toBe(
      200,
    );
  });

  test.each([
    ['no user', false],
    ['another user', true],
  ])('revokes access too if the code comes with the session of %s', async (_who, hasSession) => {
    const account = await hijacked();
    const { creator, mobilePhoneNumber } = account;
    const code = await codeFor('requestMobilePhoneVerify', mobilePhoneNumber);
    const path = `verifyMobilePhone/${code}`;
    const other = await signUp(phones.api, phones.app);
    const reply = hasSession
      ? await other.request('POST', `/1.1/${path}`, { mobilePhoneNumber })
      : await post(path, { mobilePhoneNumber });
    expect(reply.body).toEqual({ objectId: creator.id, updatedAt: expect.any(String) });
    await expectShutOut(account);
    expect((await other.put({ a: 1 })).status).toBe(200);
  });

  test('revokes nothing if the code comes with the session of the account', async () => {
    for (const path of ['verifyMobilePhone', 'usersByMobilePhone']) {
      const { creator, mobilePhoneNumber, email } = await hijacked();
      const isVerification = path === 'verifyMobilePhone';
      const call = isVerification ? 'requestMobilePhoneVerify' : 'requestSmsCode';
      const code = await codeFor(call, mobilePhoneNumber);
      const reply = isVerification
        ? await creator.request('POST', `/1.1/${path}/${code}`, { mobilePhoneNumber })
        : await creator.request('POST', `/1.1/${path}`, { mobilePhoneNumber, smsCode: code });
      expect(reply.status).toBe(200);
      expect(await creator.me()).toMatchObject({ email, mobilePhoneVerified: true });
      expect((await creator.me()).authData).toHaveProperty('github');
      expect((await post('login', { mobilePhoneNumber, password: 'a password' })).status).toBe(200);
    }
  });

  test('revokes nothing if the app trusts such numbers', async () => {
    const trusting = await phones.api.createApp({ trustUnverifiedNumbers: true });
    const { creator, mobilePhoneNumber, email } = await hijacked(trusting);
    const smsCode = await codeFor('requestSmsCode', mobilePhoneNumber, trusting);
    const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode }, trusting);
    expect(reply.body).toMatchObject({
      sessionToken: creator.token,
      email,
      mobilePhoneVerified: true,
    });
    const login = await post('login', { mobilePhoneNumber, password: 'a password' }, trusting);
    expect(login.status).toBe(200);
  });

  test('refuses a waiting call of the old session', async () => {
    const { creator, mobilePhoneNumber } = await hijacked();
    const smsCode = await codeFor('requestSmsCode', mobilePhoneNumber);
    const authData = github();
    const calls = Array.from({ length: 10 }, () => [
      creator.put({ authData }),
      creator.request('PUT', `/1.1/users/${creator.id}/refreshSessionToken`),
    ]).flat();
    const [reply, ...others] = await Promise.all([
      post('usersByMobilePhone', { mobilePhoneNumber, smsCode }),
      ...calls,
    ]);
    expect(reply.status).toBe(200);
    const path = `/1.1/users/${creator.id}`;
    const { body } = await phones.api.request('GET', path, { app: phones.app, master: true });
    expect(body.authData).toEqual({});
    const tokens = [creator.token, ...others.flatMap(({ body: one }) => one.sessionToken ?? [])];
    for (const token of tokens) {
      const headers = { 'X-LC-Session': token };
      expect(
        (await phones.api.request('PUT', path, { app: phones.app, headers, body: { a: 1 } }))
          .status,
      ).toBe(403);
    }
  });
});
