import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App, AppOptionsPatch } from '../../../../shared/domain/apps/app.ts';
import {
  answerWith,
  startFunctionHost,
  type TestFunctionHost,
} from '../../../support/servers/function-host.ts';
import { useTestApi } from '../../../support/test-api.ts';
import {
  enterWith,
  newName,
  newPhone,
  newUid,
  refusalOf,
  refused,
  signUp,
  TestUser,
} from '../../../support/users.ts';

/**
 * Tests the options of phone numbers and the hook that runs when a number is verified
 * (protocol/users.md#phone-verification).
 */
const api = useTestApi();

const post = (app: App, path: string, body: object, token?: string) =>
  api.request('POST', `/1.1/${path}`, {
    app,
    body,
    headers: token ? { 'X-LC-Session': token } : {},
  });
const messages = async (app: App, to: string) => {
  const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(to)}`;
  return (await api.request('GET', path, { admin: true })).body.results;
};
const codeTo = async (app: App, to: string) => (await messages(app, to))[0].code;

describe('phoneVerification', () => {
  const appWith = (more: AppOptionsPatch = {}) =>
    api.createApp({ phoneVerification: true, ...more });

  test('sends a code at a sign-up with a number, which verifies the number', async () => {
    const app = await appWith();
    const mobilePhoneNumber = newPhone();
    const user = await signUp(api, app, { mobilePhoneNumber });
    const [message, ...others] = await messages(app, mobilePhoneNumber);
    expect([message.type, others]).toEqual(['verifyPhone', []]);
    const verified = await post(
      app,
      `verifyMobilePhone/${message.code}`,
      { mobilePhoneNumber },
      user.token,
    );
    expect(verified.status).toBe(200);
    expect(await user.me()).toMatchObject({ mobilePhoneVerified: true });
  });

  test('sends a code for third-party sign-ups, and for a number that is set later', async () => {
    const app = await appWith();
    const [first, second] = [newPhone(), newPhone()];
    const authData = { github: { uid: newUid(), access_token: 'token' } };
    const reply = await post(app, 'users', { authData, mobilePhoneNumber: first });
    expect(await messages(app, first)).toHaveLength(1);
    const user = new TestUser(api, app, reply.body);
    await user.put({ mobilePhoneNumber: second });
    expect(await messages(app, second)).toHaveLength(1);
    await user.put({ city: 'Chengdu', mobilePhoneNumber: second });
    expect(await messages(app, second)).toHaveLength(1);
  });

  test('is off by default, and sends nothing if a number is verified or missing', async () => {
    const off = await api.createApp();
    const phone = newPhone();
    await signUp(api, off, { mobilePhoneNumber: phone });
    expect(await messages(off, phone)).toEqual([]);
    const app = await appWith();
    await signUp(api, app);
    await post(app, 'requestSmsCode', { mobilePhoneNumber: phone });
    const smsCode = await codeTo(app, phone);
    expect(
      (await post(app, 'usersByMobilePhone', { mobilePhoneNumber: phone, smsCode })).status,
    ).toBe(201);
    expect(await messages(app, phone)).toHaveLength(1);
  });

  test('never refuses a sign-up: above a limit, it only sends no code', async () => {
    for (const more of [
      { smsPerAddressPerHour: 0 },
      { captchaForSms: true },
      { smsCountries: ['US'] },
    ]) {
      const app = await appWith(more);
      const mobilePhoneNumber = newPhone();
      await signUp(api, app, { mobilePhoneNumber });
      expect(await messages(app, mobilePhoneNumber)).toEqual([]);
    }
  });
});

describe('forbidUnverifiedPhoneLogin', () => {
  test('refuses every login until the number is verified: 215', async () => {
    const app = await api.createApp({ forbidUnverifiedPhoneLogin: true });
    const mobilePhoneNumber = newPhone();
    const authData = { github: { uid: newUid(), access_token: 'token' } };
    const user = await signUp(api, app, { password: 'secret', mobilePhoneNumber });
    expect((await user.put({ authData })).status).toBe(200);
    const logins = [
      () => post(app, 'login', { username: user.body.username, password: 'secret' }),
      () => post(app, 'login', { mobilePhoneNumber, password: 'secret' }),
      () => post(app, 'users', { authData }),
    ];
    for (const login of logins) expect(refusalOf(await login())).toEqual(refused(215));
    const wrong = await post(app, 'login', { username: user.body.username, password: 'wrong' });
    expect(refusalOf(wrong)).toEqual(refused(210));
    await post(app, 'requestMobilePhoneVerify', { mobilePhoneNumber });
    const code = await codeTo(app, mobilePhoneNumber);
    await post(app, `verifyMobilePhone/${code}`, { mobilePhoneNumber }, user.token);
    for (const login of logins) expect((await login()).status).toBe(200);
  });

  test('allows users without a number, and a login by code verifies the number', async () => {
    const app = await api.createApp({ forbidUnverifiedPhoneLogin: true });
    const { body } = await signUp(api, app, { password: 'secret' });
    expect((await post(app, 'login', { username: body.username, password: 'secret' })).status).toBe(
      200,
    );
    await enterWith(api, app, { github: { uid: newUid(), access_token: 'token' } });
    const mobilePhoneNumber = newPhone();
    await signUp(api, app, { mobilePhoneNumber });
    await post(app, 'requestSmsCode', { mobilePhoneNumber });
    const smsCode = await codeTo(app, mobilePhoneNumber);
    expect((await post(app, 'usersByMobilePhone', { mobilePhoneNumber, smsCode })).status).toBe(
      200,
    );
  });
});

describe('smsCountries', () => {
  test('allows only messages to these countries, for every kind of message', async () => {
    const app = await api.createApp({ smsCountries: ['CN', 'CA'] });
    const [home, canada, america, hongKong] = [
      newPhone(),
      '+14165550123',
      '+12015550123',
      '+85261234567',
    ];
    for (const mobilePhoneNumber of [home, canada])
      expect((await post(app, 'requestSmsCode', { mobilePhoneNumber })).status).toBe(200);
    for (const mobilePhoneNumber of [america, hongKong]) {
      const user = await signUp(api, app, { mobilePhoneNumber });
      const body = { mobilePhoneNumber };
      const refusals = [
        await post(app, 'requestSmsCode', body),
        await post(app, 'requestMobilePhoneVerify', body),
        await post(app, 'requestChangePhoneNumber', body, user.token),
      ];
      for (const reply of refusals) {
        expect(refusalOf(reply)).toEqual(refused(1));
        expect(reply.body.error).toContain('smsCountries');
        expect(reply.body.error).not.toContain(mobilePhoneNumber);
      }
      expect(await messages(app, mobilePhoneNumber)).toEqual([]);
    }
  });

  test('is a list of countries, or null', async () => {
    const app = await api.createApp();
    const set = (smsCountries: unknown) =>
      api.request('PATCH', `/console/api/apps/${app.appId}`, {
        admin: true,
        body: { options: { smsCountries } },
      });
    for (const value of [[], ['cn'], ['XX'], ['+86'], 'CN', [86], ['CN', '']])
      expect((await set(value)).status, JSON.stringify(value)).toBe(400);
    for (const value of [['CN'], ['CN', 'HK', 'US'], null])
      expect((await set(value)).body.options.smsCountries).toEqual(value);
  });
});

describe('the hook onVerified', () => {
  let app: App;
  let host: TestFunctionHost;
  const proven: { object: { objectId: string }; user: unknown }[] = [];

  beforeAll(async () => {
    host = await startFunctionHost();
    const names = { result: ['__on_verified_sms', '__on_verified_email'] };
    host.answers.set('/1.1/functions/_ops/metadatas', answerWith(200, names));
    for (const kind of ['sms', 'email'])
      host.answers.set(`/1.1/functions/onVerified/${kind}`, (request, response) => {
        let text = '';
        request.on('data', (chunk) => {
          text += chunk;
        });
        request.once('end', () => {
          proven.push({ ...JSON.parse(text), kind });
          response.end('{"result":"ok"}');
        });
      });
    app = await api.createApp({ functionsUrl: host.url, emailVerification: true });
  });
  afterAll(() => host.close());

  const runs = (user: TestUser) => proven.filter(({ object }) => object.objectId === user.id);
  const onlyRun = async (user: TestUser) => {
    await expect.poll(() => runs(user).length).toBe(1);
    return runs(user)[0];
  };

  test('runs when a change verifies a number', async () => {
    const user = await signUp(api, app);
    const mobilePhoneNumber = newPhone();
    await post(app, 'requestChangePhoneNumber', { mobilePhoneNumber }, user.token);
    const code = await codeTo(app, mobilePhoneNumber);
    expect(
      (await post(app, 'changePhoneNumber', { mobilePhoneNumber, code }, user.token)).status,
    ).toBe(200);
    expect(await onlyRun(user)).toMatchObject({
      kind: 'sms',
      object: { mobilePhoneNumber, mobilePhoneVerified: true },
      user: { objectId: user.id },
    });
  });

  test('runs once when a login verifies a number or a reset verifies a contact', async () => {
    const mobilePhoneNumber = newPhone();
    const user = await signUp(api, app, { mobilePhoneNumber });
    await api.services.apps.change(app.appId, { options: { trustUnverifiedNumbers: true } });
    const loginByCode = async () => {
      await api.db.query('DELETE FROM sms_send WHERE app_id = $1', [app.appId]);
      await post(app, 'requestSmsCode', { mobilePhoneNumber });
      const smsCode = await codeTo(app, mobilePhoneNumber);
      expect((await post(app, 'usersByMobilePhone', { mobilePhoneNumber, smsCode })).status).toBe(
        200,
      );
    };
    await loginByCode();
    expect(await onlyRun(user)).toMatchObject({
      kind: 'sms',
      object: { mobilePhoneVerified: true },
      user: null,
    });
    await loginByCode();
    const email = `${newName()}@example.com`;
    const other = await signUp(api, app, { email });
    await post(app, 'requestPasswordReset', { email });
    const [mail] = await messages(app, email);
    const form = { password: 'new secret', repeat: 'new secret' };
    const reset = await api.request('POST', new URL(mail.link).pathname, { body: form });
    expect(reset.status).toBe(200);
    expect(await onlyRun(other)).toMatchObject({ kind: 'email', object: { emailVerified: true } });
    expect(runs(user)).toHaveLength(1);
  });
});
