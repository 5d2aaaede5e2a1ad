import { randomUUID } from 'node:crypto';
import AV from 'leancloud-storage';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import { freePort } from '../../../ops/local/ports.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { newName, newPhone, newUid } from '../../support/users.ts';

declare module 'leancloud-storage' {
  interface User {
    // The types of the SDK do not declare this method.
    updatePassword(oldPassword: string, newPassword: string): Promise<unknown>;
  }
}

/**
 * Tests the unmodified JavaScript SDK. Only its server URL differs. It signs its requests, sends
 * the current user's session with all of them and calls `/classes/_User`
 * (protocol/clients.md#calls-of-the-javascript-sdk).
 */
let database: TestDatabase;
let api: TestApi;
let app: App;
const clock = movableClock(Date.now());

beforeAll(async () => {
  database = await createTestDatabase();
  // The test opens links and images by their URLs, which are built from PUBLIC_URL.
  const port = await freePort();
  const env = { PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}` };
  api = await startTestApi({ databaseUrl: database.url, clock, env });
  app = await api.createApp({ emailVerification: true });
  const { appId, appKey, masterKey } = app;
  AV.init({ appId, appKey, masterKey, serverURL: api.url });
});
beforeEach(() => AV.User.logOut());
afterAll(async () => {
  // The SDK keeps its user in the process, which later runs other test files.
  await AV.User.logOut();
  await api.close();
  await database.drop();
});

/** Returns the messages to a phone number or email address, newest first. */
async function messagesTo(to: string): Promise<{ code: string; link: string }[]> {
  const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(to)}`;
  return (await api.request('GET', path, { admin: true })).body.results;
}

/**
 * Returns the code that a call sends. Moves the clock first, to stay below the limits of a number.
 */
async function codeSentBy(phone: string, ask: () => Promise<unknown>): Promise<string> {
  clock.moveMs(60_000);
  await ask();
  return (await messagesTo(phone))[0]?.code ?? '';
}

const signUp = (more: object = {}) => AV.User.signUp(newName(), 'a password', more);

/** Registers by phone, which verifies the number. */
async function signUpByPhone(attributes: object = {}): Promise<{ user: AV.User; phone: string }> {
  const phone = newPhone();
  const code = await codeSentBy(phone, () => AV.Cloud.requestSmsCode(phone));
  return { user: await AV.User.signUpOrlogInWithMobilePhone(phone, code, attributes), phone };
}

/** Reads a user from the server, bypassing the cache of the SDK. */
const stored = (user: AV.User) =>
  new AV.Query<AV.User>('_User')
    .get(user.id ?? '', { useMasterKey: true })
    .then((found) => found.toJSON());

const code = (expected: number) => expect.objectContaining({ code: expected });

describe('registration and login with a password', () => {
  test('signs up and becomes the current user', async () => {
    const user = await signUp({
      email: `${newName()}@example.com`,
      nick: 'Tom',
      born: new Date(0),
    });
    expect(user.getSessionToken()).toMatch(/^[a-z0-9]{25}$/);
    expect(AV.User.current()?.id).toBe(user.id);
    expect(user.toJSON()).toMatchObject({
      nick: 'Tom',
      emailVerified: false,
      mobilePhoneVerified: false,
    });
    expect(user.get('born')).toEqual(new Date(0));
    expect(user.createdAt).toBeInstanceOf(Date);
    expect(await user.isAuthenticated()).toBe(true);
  });

  test('gets the text and code of LeanCloud for a taken name', async () => {
    const user = await signUp();
    const again = AV.User.signUp(user.getUsername(), 'another');
    await expect(again).rejects.toMatchObject({
      code: 202,
      message: /Username has already been taken\./,
    });
  });

  test('logs in by name, address and number, and gets one token', async () => {
    const email = `${newName()}@example.com`;
    const phone = newPhone();
    const user = await signUp({ email, mobilePhoneNumber: phone });
    const tokens = [
      await AV.User.logIn(user.getUsername(), 'a password'),
      await AV.User.loginWithEmail(email, 'a password'),
      await AV.User.logInWithMobilePhone(phone, 'a password'),
    ].map((user) => [user.id, user.getSessionToken()]);
    expect(new Set(tokens.map(String))).toEqual(
      new Set([String([user.id, user.getSessionToken()])]),
    );
  });

  test('gets a refusal for a wrong password, and finally for a locked account', async () => {
    const user = await signUp();
    const wrong = () => AV.User.logIn(user.getUsername(), 'wrong');
    for (let i = 0; i < 6; i += 1)
      await expect(wrong()).rejects.toMatchObject({
        code: 210,
        message: /The username and password mismatch\./,
      });
    await expect(wrong()).rejects.toEqual(code(219));
    await expect(AV.User.logIn(user.getUsername(), 'a password')).rejects.toEqual(code(219));
  });

  test('becomes a user by its token', async () => {
    const user = await signUp({ nick: 'Tom' });
    const token = user.getSessionToken();
    await AV.User.logOut();
    const same = await AV.User.become(token);
    expect([same.id, same.get('nick'), same.getSessionToken()]).toEqual([user.id, 'Tom', token]);
    await expect(AV.User.become('x'.repeat(25))).rejects.toEqual(code(211));
  });
});

describe('the current user', () => {
  test('saves and fetches itself, with every kind of operation', async () => {
    const user = await signUp({ visits: 1, tags: ['a'] });
    user.increment('visits', 2);
    user.addUnique('tags', 'b');
    user.set('place', { city: 'Berlin' });
    user.unset('nick');
    await user.save();
    const other = AV.Object.createWithoutData('_User', user.id ?? '');
    await other.fetch();
    expect(other.toJSON()).toMatchObject({
      visits: 3,
      tags: ['a', 'b'],
      place: { city: 'Berlin' },
    });
    await user.save({ nick: 'Tim' }, { fetchWhenSave: true });
    expect(user.get('nick')).toBe('Tim');
    const visited = (times: number) => new AV.Query<AV.User>('_User').equalTo('visits', times);
    await user.save({ nick: 'Tam' }, { query: visited(3) });
    await expect(user.save({ nick: 'Tum' }, { query: visited(1) })).rejects.toEqual(code(305));
    expect((await stored(user)).nick).toBe('Tam');
  });

  test('contains a file, and is saved with it again', async () => {
    const user = await signUp({ avatar: AV.File.createWithoutData('5d831ac89c9235000886c691') });
    await user.fetch();
    expect(user.get('avatar').id).toBe('5d831ac89c9235000886c691');
    await user.save({ nick: 'Tom' });
    user.set('avatar', user.get('avatar'));
    await user.save();
    expect((await stored(user)).nick).toBe('Tom');
  });

  test('unlinks an account by null, like other SDKs', async () => {
    const user = await AV.User.loginWithAuthData({ uid: newUid(), access_token: 't' }, 'github');
    await user.save({ authData: { github: null } });
    expect((await stored(user)).authData ?? {}).toEqual({});
  });

  test('cannot change another user', async () => {
    const target = await signUp();
    await signUp();
    const other = AV.Object.createWithoutData('_User', target.id ?? '');
    await expect(other.save({ nick: 'x' })).rejects.toMatchObject({ code: 206 });
    await expect(other.destroy()).rejects.toMatchObject({ code: 206 });
  });

  test('denies others by an ACL', async () => {
    const user = await signUp();
    const acl = new AV.ACL(user);
    user.setACL(acl);
    await user.save();
    await signUp();
    const other = AV.Object.createWithoutData('_User', user.id ?? '');
    await expect(other.fetch()).rejects.toEqual(code(403));
    const fetched = await AV.Object.createWithoutData('_User', user.id ?? '').fetch(
      { includeACL: true },
      { useMasterKey: true },
    );
    expect(fetched.getACL()?.toJSON()).toEqual(acl.toJSON());
  });

  test('renews its session: the old token is invalid', async () => {
    const user = await signUp();
    const old = user.getSessionToken();
    await user.refreshSessionToken();
    expect(user.getSessionToken()).not.toBe(old);
    expect(await user.isAuthenticated()).toBe(true);
    await expect(AV.User.become(old)).rejects.toEqual(code(211));
    await expect(user.save({ a: 1 }, { sessionToken: old })).rejects.toEqual(code(206));
  });

  test('changes its password, and continues with the new token', async () => {
    const user = await signUp();
    const old = user.getSessionToken();
    await expect(user.updatePassword('wrong', 'new')).rejects.toEqual(code(210));
    await user.updatePassword('a password', 'new password');
    expect(user.getSessionToken()).not.toBe(old);
    await user.save({ a: 1 });
    await expect(AV.User.logIn(user.getUsername(), 'a password')).rejects.toEqual(code(210));
    expect((await AV.User.logIn(user.getUsername(), 'new password')).id).toBe(user.id);
  });

  test('deletes itself, and its stale token does not prevent a sign-up', async () => {
    const user = await signUp();
    const name = user.getUsername();
    await user.destroy();
    expect(await user.isAuthenticated()).toBe(false);
    // The SDK still sends the token of the deleted user.
    const next = await AV.User.signUp(name, 'a password');
    expect(next.id).not.toBe(user.id);
  });
});

describe('queries', () => {
  test('need the master key, and show neither password nor token', async () => {
    const user = await signUp({ level: 7 });
    const query = () =>
      new AV.Query<AV.User>('_User').equalTo('level', 7).equalTo('objectId', user.id);
    await expect(query().find()).rejects.toEqual(code(403));
    const found = await query().find({ useMasterKey: true });
    expect(found.map(({ id }) => id)).toEqual([user.id]);
    expect(Object.keys(found[0]?.toJSON() ?? {})).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/password|sessionToken/i)]),
    );
    expect(await query().count({ useMasterKey: true })).toBe(1);
    expect(
      await query().lessThan('createdAt', new Date(0)).first({ useMasterKey: true }),
    ).toBeUndefined();
  });
});

describe('third-party accounts', () => {
  const weixin = (openid = newUid()) => ({ openid, access_token: 'a token', expires_in: 7200 });

  test('register, and log in again', async () => {
    const authData = weixin();
    const user = await AV.User.loginWithAuthData(authData, 'weixin');
    expect(user.getUsername()).toMatch(/^[a-z0-9]{25}$/);
    // The reply to the call that contained the token returns it.
    expect(user.get('authData')).toEqual({ weixin: authData });
    await AV.User.logOut();
    const again = await AV.User.loginWithAuthData(authData, 'weixin');
    expect([again.id, again.getSessionToken()]).toEqual([user.id, user.getSessionToken()]);
    const unknown = AV.User.loginWithAuthData(weixin(), 'weixin', { failOnNotExist: true });
    await expect(unknown).rejects.toEqual(code(211));
  });

  test('are linked and unlinked', async () => {
    const user = await signUp();
    const authData = { uid: newUid(), access_token: 'a token' };
    await user.associateWithAuthData(authData, 'github');
    expect((await AV.User.loginWithAuthData(authData, 'github')).id).toBe(user.id);
    await AV.User.become(user.getSessionToken());
    await user.dissociateAuthData('github');
    expect((await stored(user)).authData ?? {}).toEqual({});
    await AV.User.logOut();
    expect((await AV.User.loginWithAuthData(authData, 'github')).id).not.toBe(user.id);
  });

  test('of another user are not linked', async () => {
    const authData = weixin();
    await AV.User.loginWithAuthData(authData, 'weixin');
    const user = await signUp();
    await expect(user.associateWithAuthData(authData, 'weixin')).rejects.toEqual(code(208));
  });

  test('belong to one user by their UnionID', async () => {
    const union = newUid();
    const main = await AV.User.loginWithAuthDataAndUnionId(
      { uid: newUid(), access_token: 'a token', expires_in: 7200 },
      'weixin_app',
      union,
      { unionIdPlatform: 'weixin', asMainAccount: true },
    );
    expect(main.get('authData')._weixin_unionid).toEqual({ uid: union });
    await AV.User.logOut();
    const other = await AV.User.loginWithAuthDataAndUnionId(
      { uid: newUid(), access_token: 'a token', expires_in: 7200 },
      'weixin_mini',
      union,
      { unionIdPlatform: 'weixin', asMainAccount: false },
    );
    expect(other.id).toBe(main.id);
    expect(Object.keys(other.get('authData')).sort()).toEqual([
      '_weixin_unionid',
      'weixin_app',
      'weixin_mini',
    ]);
  });

  test('an anonymous user keeps its id when it gets a name and a password', async () => {
    const user = await AV.User.loginAnonymously();
    expect(user.isAnonymous()).toBe(true);
    const id = user.id;
    user.setUsername(newName());
    user.setPassword('a password');
    await user.signUp();
    expect(user.id).toBe(id);
    expect((await stored(user)).authData ?? {}).toEqual({});
    expect((await AV.User.logIn(user.getUsername(), 'a password')).id).toBe(id);
  });

  test('an anonymous user with a linked account is no longer anonymous', async () => {
    const user = await AV.User.loginAnonymously();
    await user.associateWithAuthData({ uid: randomUUID(), access_token: 'a token' }, 'github');
    expect(user.isAnonymous()).toBe(false);
    expect(Object.keys((await stored(user)).authData)).toEqual(['github']);
  });
});

describe('mails', () => {
  const linkTo = async (email: string) => (await messagesTo(email))[0]?.link ?? '';

  test('verify an address: the link of the second mail works', async () => {
    const email = `${newName()}@example.com`;
    const user = await signUp({ email });
    await AV.User.requestEmailVerify(email);
    const page = await fetch(await linkTo(email));
    expect(page.status).toBe(200);
    await user.fetch();
    expect(user.get('emailVerified')).toBe(true);
  });

  test('reset a password on a page', async () => {
    const email = `${newName()}@example.com`;
    const user = await signUp({ email });
    await AV.User.requestPasswordReset(email);
    const link = await linkTo(email);
    expect(await (await fetch(link)).text()).toMatch(/<form method="post">/);
    const form = new URLSearchParams({ password: 'new password', repeat: 'new password' });
    expect((await fetch(link, { method: 'POST', body: form })).status).toBe(200);
    await expect(user.save({ a: 1 })).rejects.toEqual(code(206));
    expect((await AV.User.loginWithEmail(email, 'new password')).id).toBe(user.id);
  });
});

describe('phones', () => {
  test('register and log in', async () => {
    const { user, phone } = await signUpByPhone({ nick: 'Tom', password: 'a password' });
    expect(user.toJSON()).toMatchObject({
      username: phone,
      mobilePhoneNumber: phone,
      mobilePhoneVerified: true,
      nick: 'Tom',
    });
    const again = await codeSentBy(phone, () => AV.Cloud.requestSmsCode(phone));
    expect((await AV.User.signUpOrlogInWithMobilePhone(phone, again)).id).toBe(user.id);
    const login = await codeSentBy(phone, () => AV.User.requestLoginSmsCode(phone));
    expect((await AV.User.logInWithMobilePhoneSmsCode(phone, login)).id).toBe(user.id);
    await expect(AV.User.logInWithMobilePhoneSmsCode(phone, login)).rejects.toEqual(code(603));
  });

  test('are verified, by the session of the current user and without a session', async () => {
    for (const isLoggedIn of [true, false]) {
      const phone = newPhone();
      const user = await signUp({ mobilePhoneNumber: phone });
      const sent = await codeSentBy(phone, () => AV.User.requestMobilePhoneVerify(phone));
      if (!isLoggedIn) await AV.User.logOut();
      await AV.User.verifyMobilePhone(sent);
      expect((await stored(user)).mobilePhoneVerified).toBe(true);
    }
  });

  test('change their number', async () => {
    const { user } = await signUpByPhone();
    const phone = newPhone();
    const sent = await codeSentBy(phone, () => AV.User.requestChangePhoneNumber(phone));
    await AV.User.changePhoneNumber(phone, sent);
    expect(await stored(user)).toMatchObject({
      mobilePhoneNumber: phone,
      mobilePhoneVerified: true,
    });
  });

  test('reset a password, although the SDK does not send the number', async () => {
    const { user, phone } = await signUpByPhone({ password: 'a password' });
    await AV.User.logOut();
    const sent = await codeSentBy(phone, () => AV.User.requestPasswordResetBySmsCode(phone));
    await AV.User.resetPasswordBySmsCode(sent, 'new password');
    await expect(AV.User.logInWithMobilePhone(phone, 'a password')).rejects.toEqual(code(210));
    expect((await AV.User.logInWithMobilePhone(phone, 'new password')).id).toBe(user.id);
  });
});

describe('the general code service', () => {
  test('sends and checks codes', async () => {
    const phone = newPhone();
    // The types of the SDK do not declare some of these members.
    const request = { mobilePhoneNumber: phone, name: 'Shop', op: 'pay', ttl: 5 };
    const sent = await codeSentBy(phone, () => AV.Cloud.requestSmsCode(request));
    const wrong = String((Number(sent) + 1) % 1_000_000).padStart(6, '0');
    await expect(AV.Cloud.verifySmsCode(wrong, phone)).rejects.toEqual(code(603));
    await AV.Cloud.verifySmsCode(sent, phone);
    await expect(AV.Cloud.verifySmsCode(sent, phone)).rejects.toEqual(code(603));
  });

  test('requires a captcha if the app does', async () => {
    await api.services.apps.change(app.appId, { options: { captchaForSms: true } });
    const phone = newPhone();
    await expect(AV.Cloud.requestSmsCode(phone)).rejects.toEqual(code(608));
    const captcha = await AV.Captcha.request({ width: 100, height: 50 });
    const image = await fetch(captcha.url);
    expect(image.headers.get('content-type')).toBe('image/png');
    const path = `/console/api/apps/${app.appId}/captchas/${captcha.captchaToken}`;
    const { body } = await api.request('GET', path, { admin: true });
    const validateToken = await captcha.verify(body.code);
    const sent = await codeSentBy(phone, () => AV.Cloud.requestSmsCode(phone, { validateToken }));
    await AV.Cloud.verifySmsCode(sent, phone);
    await api.services.apps.change(app.appId, { options: { captchaForSms: false } });
  });

  test('returns the time of the server', async () => {
    expect(await AV.Cloud.getServerDate()).toBeInstanceOf(Date);
  });
});

testTableRow({
  name: 'JavaScript (`leancloud-storage`, npm)',
  version: npmVersion('leancloud-storage'),
  topics: [
    'sign-up',
    'login',
    'become',
    'codes by SMS',
    'mail',
    'third-party accounts',
    'captcha',
    'errors',
  ],
});
