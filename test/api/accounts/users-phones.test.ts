import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi, type TestResponse } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { newName, newPhone, newUid, refusalOf, refused, signUp, TestUser } from '../../support/users.ts';

let database: TestDatabase;
let api: TestApi;
let secondApi: TestApi;
let app: App;
const clock = movableClock(Date.now());
const minute = 60_000;

beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url, clock });
  secondApi = await startTestApi({ databaseUrl: database.url, clock });
  app = await api.createApp();
});

afterAll(async () => {
  await Promise.all([api.close(), secondApi.close()]);
  await database.drop();
});

const post = (path: string, body: object, of = app) => api.request('POST', `/1.1/${path}`, { app: of, body });

async function messages(to: string, of = app) {
  const path = `/console/api/apps/${of.appId}/outbox?to=${encodeURIComponent(to)}`;
  return (await api.request('GET', path, { admin: true })).body.results;
}

const codeTo = async (to: string): Promise<string> => (await messages(to))[0].code;
const another = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

/** Asks for a code as a person would: no sooner than a minute after the last one. */
async function ask(path: string, body: { mobilePhoneNumber: string } & object): Promise<string> {
  clock.moveMs(minute);
  const reply = await post(path, body);
  expect([reply.status, reply.body]).toEqual([200, {}]);
  return codeTo(body.mobilePhoneNumber);
}

/** Registers by phone. */
async function newUser(mobilePhoneNumber = newPhone(), more: object = {}): Promise<TestUser> {
  const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
  const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode, ...more });
  expect(reply.status, JSON.stringify(reply.body)).toBe(201);
  return new TestUser(api, app, reply.body);
}

const numberOf = (user: TestUser) => String(user.body.mobilePhoneNumber);

const fifty = (call: (api: TestApi) => Promise<TestResponse>) =>
  Promise.all(Array.from({ length: 50 }, (_, i) => call(i % 2 ? api : secondApi)));

const wonBy = (replies: TestResponse[]) => replies.filter(({ status }) => status < 300).length;

describe('POST /1.1/usersByMobilePhone', () => {
  test.each([
    [{ smsCode: '123456' }, 212],
    [{ mobilePhoneNumber: '', smsCode: '123456' }, 212],
    [{ mobilePhoneNumber: '12', smsCode: '123456' }, 127],
    [{ mobilePhoneNumber: { $ne: 1 }, smsCode: '123456' }, 127],
    [{ mobilePhoneNumber: '+8613800001234' }, 603],
    [{ mobilePhoneNumber: '+8613800001234', smsCode: '123456' }, 603],
    [{ mobilePhoneNumber: '+8613800001234', smsCode: 123456 }, 603],
    [{ mobilePhoneNumber: '+8613800001234', smsCode: { $ne: '' } }, 603],
    [{ mobilePhoneNumber: '+8613800001235', smsCode: ['123456'] }, 603],
  ])('refuses %j with code %i', async (body, code) => {
    expect(refusalOf(await post('usersByMobilePhone', body))).toEqual(refused(code));
  });

  test('registers: the number is verified, and the name by default', async () => {
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone', {
      mobilePhoneNumber: mobilePhoneNumber.slice(3),
      smsCode,
      nick: 'Tom',
    });
    expect(reply.status).toBe(201);
    expect(reply.body).toEqual({
      objectId: expect.stringMatching(/^[0-9a-f]{24}$/),
      username: mobilePhoneNumber,
      mobilePhoneNumber,
      mobilePhone: mobilePhoneNumber,
      mobilePhoneVerified: true,
      emailVerified: null,
      nick: 'Tom',
      sessionToken: expect.stringMatching(/^[a-z0-9]{25}$/),
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(reply.headers.get('location')).toBe(`http://carillon.test/1.1/users/${reply.body.objectId}`);
    // Without a password there is no login with one.
    expect((await post('login', { mobilePhoneNumber, password: 'a password' })).body.code).toBe(210);
  });

  test('takes name and password along, and refuses a name that is taken without using up the code', async () => {
    const taken = await signUp(api, app);
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const enter = (username: string) =>
      post('usersByMobilePhone', { mobilePhoneNumber, smsCode, username, password: 'secret' });
    expect((await enter(taken.body.username)).body.code).toBe(202);
    const username = newName();
    expect((await enter(username)).status).toBe(201);
    expect((await post('login', { username, password: 'secret' })).status).toBe(200);
  });

  test('logs in whom it knows, ignoring the password', async () => {
    const user = await newUser();
    const mobilePhoneNumber = numberOf(user);
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode, password: 'other' });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ objectId: user.id, sessionToken: user.token });
    expect((await post('login', { mobilePhoneNumber, password: 'other' })).body.code).toBe(210);
  });

  test('knows no one with failOnNotExist', async () => {
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone?failOnNotExist=true', { mobilePhoneNumber, smsCode });
    expect(reply.body.code).toBe(211);
  });

  test('takes no protected members', async () => {
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode, sessionToken: 'x' });
    expect(reply.body.code).toBe(117);
  });

  test('makes one user of 50 calls at once', async () => {
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const replies = await fifty((one) =>
      one.request('POST', '/1.1/usersByMobilePhone', { app, body: { mobilePhoneNumber, smsCode } }),
    );
    expect(wonBy(replies)).toBe(1);
  });
});

test('wrong codes lock usersByMobilePhone with the login', async () => {
  const mobilePhoneNumber = numberOf(await newUser(newPhone(), { password: 'a password' }));
  const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
  const codes: number[] = [];
  for (let i = 0; i < 7; i += 1)
    codes.push(
      (await post('usersByMobilePhone', { mobilePhoneNumber, smsCode: another(smsCode) })).body.code,
    );
  expect(codes).toEqual([603, 603, 603, 603, 603, 603, 219]);
  expect((await post('usersByMobilePhone', { mobilePhoneNumber, smsCode })).body.code).toBe(219);
  expect((await post('login', { mobilePhoneNumber, password: 'a password' })).body.code).toBe(219);
});

describe('login with a code', () => {
  test.each([
    [{ smsCode: '123456' }, 212],
    [{ mobilePhoneNumber: { $ne: 1 }, smsCode: '123456' }, 127],
    [{ mobilePhoneNumber: '+8613800001236', smsCode: { $ne: '' } }, 603],
    [{ mobilePhoneNumber: '+8613800001236', smsCode: '123456' }, 603],
  ])('refuses %j with code %i', async (body, code) => {
    expect(refusalOf(await post('login', body))).toEqual(refused(code));
  });

  test('works once, for the code that was asked for it', async () => {
    const user = await newUser();
    const mobilePhoneNumber = numberOf(user);
    const smsCode = await ask('requestLoginSmsCode', { mobilePhoneNumber });
    expect((await messages(mobilePhoneNumber))[0]).toMatchObject({ type: 'login' });
    expect((await post(`verifySmsCode/${smsCode}`, { mobilePhoneNumber })).body.code).toBe(603);
    expect((await post('login', { mobilePhoneNumber, smsCode: another(smsCode) })).body.code).toBe(603);
    const reply = await post('login', { mobilePhoneNumber, smsCode });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({
      objectId: user.id,
      sessionToken: user.token,
      mobilePhone: mobilePhoneNumber,
    });
    expect((await post('login', { mobilePhoneNumber, smsCode })).body.code).toBe(603);
  });

  test('has one winner among 50 at once', async () => {
    const mobilePhoneNumber = numberOf(await newUser());
    const smsCode = await ask('requestLoginSmsCode', { mobilePhoneNumber });
    const replies = await fifty((one) =>
      one.request('POST', '/1.1/login', { app, body: { mobilePhoneNumber, smsCode } }),
    );
    expect(wonBy(replies)).toBe(1);
    expect(replies.every(({ body }) => [undefined, 603, 219].includes(body.code))).toBe(true);
  });

  test('locks after more than six wrong ones, known or not, and takes the right one no more', async () => {
    const known = numberOf(await newUser());
    const unknown = newPhone();
    const smsCode = await ask('requestLoginSmsCode', { mobilePhoneNumber: known });
    for (const mobilePhoneNumber of [known, unknown]) {
      const codes = [];
      for (let i = 0; i < 8; i += 1)
        codes.push((await post('login', { mobilePhoneNumber, smsCode: another(smsCode) })).body.code);
      expect(codes.slice(0, 6)).toEqual(Array(6).fill(603));
      expect(codes[7]).toBe(219);
    }
    expect((await post('login', { mobilePhoneNumber: known, smsCode })).body.code).toBe(219);
  });
});

describe('asking for a code of an account', () => {
  const paths = ['requestLoginSmsCode', 'requestMobilePhoneVerify', 'requestPasswordResetBySmsCode'];

  test.each(
    paths.flatMap((path) => [
      [path, {}, 212] as const,
      [path, { mobilePhoneNumber: { $ne: 1 } }, 127] as const,
    ]),
  )('%s refuses %j with code %i', async (path, body, code) => {
    expect(refusalOf(await post(path, body))).toEqual(refused(code));
  });

  test.each(paths)('%s tells that nobody has a number, and spends nothing of its limits', async (path) => {
    const mobilePhoneNumber = newPhone();
    for (let i = 0; i < 2; i += 1)
      expect(refusalOf(await post(path, { mobilePhoneNumber }))).toEqual(refused(213));
    expect(await messages(mobilePhoneNumber)).toEqual([]);
    expect((await post('requestSmsCode', { mobilePhoneNumber })).status).toBe(200);
  });

  test.each(paths)(
    '%s gives the same replies and limits for a number that nobody has, and sends nothing, where users are concealed',
    async (path) => {
      const discreet = await api.createApp({ concealUsers: true });
      const known = newPhone();
      const holder = await signUp(api, discreet, { mobilePhoneNumber: known });
      if (path !== 'requestMobilePhoneVerify')
        await api.request('PUT', `/1.1/users/${holder.id}`, {
          app: discreet,
          master: true,
          body: { mobilePhoneVerified: true },
        });
      clock.moveMs(minute);
      const unknown = newPhone();
      const of = async (mobilePhoneNumber: string) => {
        const replies = [];
        for (const pauseMs of [0, 10_000, 50_000]) {
          clock.moveMs(pauseMs);
          const { status, body, headers } = await post(path, { mobilePhoneNumber }, discreet);
          replies.push({ status, body, names: [...headers.keys()].sort() });
        }
        return replies;
      };
      expect(await of(unknown)).toEqual(await of(known));
      expect(await messages(known, discreet)).toHaveLength(2);
      expect(await messages(unknown, discreet)).toEqual([]);
    },
  );

  test.each([
    ['requestLoginSmsCode', false],
    ['requestPasswordResetBySmsCode', false],
    ['requestMobilePhoneVerify', true],
  ])('%s sends nothing to a number whose flag is not fit, and tells so', async (path, isVerified) => {
    const mobilePhoneNumber = newPhone();
    if (isVerified) await newUser(mobilePhoneNumber);
    else await signUp(api, app, { mobilePhoneNumber });
    const ask = async () => {
      clock.moveMs(minute);
      const { status, body } = await post(path, { mobilePhoneNumber });
      return [status, body];
    };
    const before = (await messages(mobilePhoneNumber)).length;
    const unverified = { code: 215, error: "Mobile phone number isn't verified." };
    expect(await ask()).toEqual(isVerified ? [200, {}] : [400, unverified]);
    await api.services.apps.change(app.appId, { options: { concealUsers: true } });
    expect(await ask()).toEqual([200, {}]);
    await api.services.apps.change(app.appId, { options: { concealUsers: false } });
    expect(await messages(mobilePhoneNumber)).toHaveLength(before);
  });

  test('costs the same, known or not, where users are concealed: nothing that an empty balance could tell', async () => {
    const poor = await api.createApp({ smsBalance: 0, concealUsers: true });
    const known = '+14155552671';
    await signUp(api, poor, { mobilePhoneNumber: known });
    for (const mobilePhoneNumber of [known, '+14155552672'])
      expect((await post('requestMobilePhoneVerify', { mobilePhoneNumber }, poor)).body.code).toBe(160);
    const rich = await api.createApp({ smsBalance: 10, concealUsers: true });
    expect((await post('requestMobilePhoneVerify', { mobilePhoneNumber: known }, rich)).body).toEqual({});
    const { body } = await api.request('GET', `/console/api/apps/${rich.appId}`, { admin: true });
    expect(body.options.smsBalance).toBe(10);
  });

  test('needs a captcha where the app wants one, known or not', async () => {
    const guarded = await api.createApp({ captchaForSms: true });
    const known = newPhone();
    await signUp(api, guarded, { mobilePhoneNumber: known });
    for (const mobilePhoneNumber of [known, newPhone()])
      for (const path of paths)
        expect((await post(path, { mobilePhoneNumber }, guarded)).body.code).toBe(608);
  });
});

describe('verification of a number', () => {
  async function unverified() {
    const user = await signUp(api, app, { mobilePhoneNumber: newPhone() });
    return { user, mobilePhoneNumber: numberOf(user) };
  }

  test('sets the flag, by number or by session', async () => {
    const { user, mobilePhoneNumber } = await unverified();
    expect(user.body.mobilePhoneVerified).toBe(false);
    const code = await ask('requestMobilePhoneVerify', { mobilePhoneNumber });
    expect((await post(`verifyMobilePhone/${another(code)}`, { mobilePhoneNumber })).body.code).toBe(603);
    expect((await post(`verifyMobilePhone/${another(code)}`, {})).body.code).toBe(603);
    const reply = await user.request('POST', `/1.1/verifyMobilePhone/${code}`, { mobilePhoneNumber });
    expect(reply.body).toEqual({ objectId: user.id, updatedAt: expect.any(String) });
    expect((await user.me()).mobilePhoneVerified).toBe(true);
    expect((await post(`verifyMobilePhone/${code}`, { mobilePhoneNumber })).body.code).toBe(603);

    const other = await unverified();
    const own = await ask('requestMobilePhoneVerify', { mobilePhoneNumber: other.mobilePhoneNumber });
    expect((await other.user.request('POST', `/1.1/verifyMobilePhone/${own}`, {})).status).toBe(200);
    expect((await other.user.me()).mobilePhoneVerified).toBe(true);
  });

  test('takes no other code: not that of the general service, nor that of another number', async () => {
    const { user, mobilePhoneNumber } = await unverified();
    const general = await ask('requestSmsCode', { mobilePhoneNumber });
    expect((await post(`verifyMobilePhone/${general}`, { mobilePhoneNumber })).body.code).toBe(603);
    const other = await unverified();
    const foreign = await ask('requestMobilePhoneVerify', { mobilePhoneNumber: other.mobilePhoneNumber });
    expect((await post(`verifyMobilePhone/${foreign}`, { mobilePhoneNumber })).body.code).toBe(603);
    expect((await user.me()).mobilePhoneVerified).toBe(false);
  });

  test('is not to be had by PUT, and is lost with a new number', async () => {
    const user = await newUser();
    expect((await user.put({ mobilePhoneVerified: false })).body.code).toBe(117);
    expect((await user.put({ mobilePhoneNumber: newPhone() })).status).toBe(200);
    expect((await user.me()).mobilePhoneVerified).toBe(false);
  });
});

describe('a number that was never verified', () => {
  const github = () => ({ github: { uid: newUid(), access_token: 't' } });

  /** An account with somebody else's number, and every way in that its maker may have. */
  async function hijacked(of = app) {
    const [mobilePhoneNumber, email, authData] = [newPhone(), `${newName()}@example.com`, github()];
    const vendor = await signUp(api, of, { mobilePhoneNumber, email });
    expect((await vendor.put({ authData })).status).toBe(200);
    return { maker: vendor, mobilePhoneNumber, email, authData };
  }

  async function codeFor(path: string, mobilePhoneNumber: string, of = app): Promise<string> {
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
    const holder = new TestUser(api, app, reply.body);
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
    const other = await signUp(api, app);
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
    const trusting = await api.createApp({ trustUnverifiedNumbers: true });
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
    const { body } = await api.request('GET', path, { app, master: true });
    expect(body.authData).toEqual({});
    const tokens = [vendor.token, ...others.flatMap(({ body: one }) => one.sessionToken ?? [])];
    for (const token of tokens) {
      const headers = { 'X-LC-Session': token };
      expect((await api.request('PUT', path, { app, headers, body: { a: 1 } })).status).toBe(403);
    }
  });
});

describe('change of number', () => {
  test('needs a session to be asked for', async () => {
    const reply = await post('requestChangePhoneNumber', { mobilePhoneNumber: newPhone() });
    expect(reply.status).toBe(403);
    const user = await newUser();
    const request = (body: object) => user.request('POST', '/1.1/requestChangePhoneNumber', body);
    expect((await request({})).body.code).toBe(212);
    expect((await request({ mobilePhoneNumber: 'x' })).body.code).toBe(127);
    expect((await request({ mobilePhoneNumber: newPhone(), ttl: 31 })).body.code).toBe(1);
    expect((await request({ mobilePhoneNumber: newPhone(), ttl: '6' })).body.code).toBe(111);
  });

  test('gives the account the number that got the code, verified, within six minutes', async () => {
    const user = await newUser();
    const mobilePhoneNumber = newPhone();
    const request = () => user.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber });
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

  test("takes nobody else's code", async () => {
    const [user, thief] = [await newUser(), await newUser()];
    const mobilePhoneNumber = newPhone();
    await user.request('POST', '/1.1/requestChangePhoneNumber', { mobilePhoneNumber });
    const code = await codeTo(mobilePhoneNumber);
    const stolen = await thief.request('POST', '/1.1/changePhoneNumber', { mobilePhoneNumber, code });
    expect(stolen.body.code).toBe(603);
    // The specification's call carries no session: the account is the one that asked.
    expect((await post('changePhoneNumber', { mobilePhoneNumber, code })).body).toEqual({});
    expect((await user.me()).mobilePhoneNumber).toBe(mobilePhoneNumber);
  });

  test('refuses a number that another user has with 214', async () => {
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
  const reset = (code: string, body: object, of: TestApi = api) =>
    of.request('PUT', `/1.1/resetPasswordBySmsCode/${code}`, { app, body });

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

  test('sets the password and ends the session at once, on every process', async () => {
    const user = await newUser(newPhone(), { password: 'old password' });
    const mobilePhoneNumber = numberOf(user);
    const code = await ask('requestPasswordResetBySmsCode', { mobilePhoneNumber });
    expect((await reset(another(code), { mobilePhoneNumber, password: 'new' })).body.code).toBe(603);
    expect((await reset(code, { mobilePhoneNumber, password: 'new' })).body).toEqual({});
    expect((await reset(code, { mobilePhoneNumber, password: 'newer' })).body.code).toBe(603);
    for (const one of [api, secondApi]) {
      const headers = { 'X-LC-Session': user.token };
      const stale = await one.request('PUT', `/1.1/users/${user.id}`, { app, headers, body: { a: 1 } });
      expect(stale.status).toBe(403);
    }
    expect((await post('login', { mobilePhoneNumber, password: 'old password' })).body.code).toBe(210);
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

  test('has one winner among 50 at once', async () => {
    clock.moveMs(10 * minute);
    const mobilePhoneNumber = numberOf(await newUser());
    const code = await ask('requestPasswordResetBySmsCode', { mobilePhoneNumber });
    const replies = await fifty((one) => reset(code, { mobilePhoneNumber, password: 'new' }, one));
    expect(wonBy(replies)).toBe(1);
    expect(replies.filter(({ body }) => body.code === 603)).toHaveLength(49);
  });
});

describe('a code that comes without its number, as the JavaScript SDK sends it', () => {
  const reset = (code: string, of: TestApi, address: string) =>
    of.request('PUT', `/1.1/resetPasswordBySmsCode/${code}`, {
      app,
      body: { password: 'new' },
      headers: { 'X-Forwarded-For': address },
    });
  let proxied: TestApi;

  beforeAll(async () => {
    proxied = await startTestApi({ databaseUrl: database.url, clock, env: { TRUSTED_PROXIES: '1' } });
  });
  afterAll(() => proxied.close());

  async function codeOf(user: TestUser, address: string): Promise<string> {
    clock.moveMs(minute);
    const mobilePhoneNumber = numberOf(user);
    const reply = await proxied.request('POST', '/1.1/requestPasswordResetBySmsCode', {
      app,
      body: { mobilePhoneNumber },
      headers: { 'X-Forwarded-For': address },
    });
    expect(reply.body).toEqual({});
    return codeTo(mobilePhoneNumber);
  }

  test('is known where it was asked for, once, and nowhere else', async () => {
    const [one, two] = [await newUser(), await newUser()];
    const [ofOne, ofTwo] = [await codeOf(one, '192.0.2.1'), await codeOf(two, '192.0.2.1')];
    expect((await reset(ofOne, proxied, '192.0.2.2')).body.code).toBe(603);
    expect((await reset(ofOne, proxied, '192.0.2.1')).body).toEqual({});
    expect((await reset(ofOne, proxied, '192.0.2.1')).body.code).toBe(603);
    expect((await one.put({ a: 1 })).status).toBe(403);
    expect((await two.put({ a: 1 })).status).toBe(200);
    expect((await reset(ofTwo, proxied, '192.0.2.1')).body).toEqual({});
  });

  test('is not guessed: ten tries of an address in ten minutes, alike whether codes were asked for or not', async () => {
    const user = await newUser();
    const code = await codeOf(user, '192.0.2.3');
    for (const address of ['192.0.2.3', '192.0.2.4']) {
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => reset(another(code), proxied, address)),
      );
      expect(replies.map(refusalOf)).toEqual(Array(10).fill(refused(603)));
    }
    expect((await reset(code, proxied, '192.0.2.3')).body.code).toBe(603);
    // With its number it is still good: nobody at the address has spoilt it.
    const body = { password: 'new', mobilePhoneNumber: numberOf(user) };
    const named = await api.request('PUT', `/1.1/resetPasswordBySmsCode/${code}`, { app, body });
    expect(named.body).toEqual({});
    clock.moveMs(10 * minute);
    const later = await codeOf(user, '192.0.2.3');
    expect((await reset(later, proxied, '192.0.2.3')).body).toEqual({});
  });

  test('verifies a number too, but is no code of the general service', async () => {
    const user = await signUp(api, app, { mobilePhoneNumber: newPhone() });
    const code = await ask('requestMobilePhoneVerify', { mobilePhoneNumber: numberOf(user) });
    expect((await post(`verifyMobilePhone/${code}`, {})).body.objectId).toBe(user.id);
    const general = await ask('requestSmsCode', { mobilePhoneNumber: newPhone() });
    expect((await post(`verifySmsCode/${general}`, {})).body.code).toBe(212);
  });
});
