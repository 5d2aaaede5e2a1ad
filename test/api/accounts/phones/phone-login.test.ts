import { describe, expect, test } from 'vitest';
import { newName, newPhone, refusalOf, refused, signUp } from '../../../support/users.ts';
import { another, minute, numberOf, successes, usePhones } from './phone-fixture.ts';

const phones = usePhones();
const { clock, post, messages, ask, newUser, fifty } = phones;

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

  test('signs up with a verified number and the default name', async () => {
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
    expect(reply.headers.get('location')).toBe(
      `http://carillon.test/1.1/users/${reply.body.objectId}`,
    );
    // An account without a password cannot log in with a password.
    expect((await post('login', { mobilePhoneNumber, password: 'a password' })).body.code).toBe(
      210,
    );
  });

  test('accepts name and password, and a taken name does not use up the code', async () => {
    const taken = await signUp(phones.api, phones.app);
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const loginByCode = (username: string) =>
      post('usersByMobilePhone', { mobilePhoneNumber, smsCode, username, password: 'secret' });
    expect((await loginByCode(taken.body.username)).body.code).toBe(202);
    const username = newName();
    expect((await loginByCode(username)).status).toBe(201);
    expect((await post('login', { username, password: 'secret' })).status).toBe(200);
  });

  test('logs a known user in and ignores the password', async () => {
    const user = await newUser();
    const mobilePhoneNumber = numberOf(user);
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone', {
      mobilePhoneNumber,
      smsCode,
      password: 'other',
    });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ objectId: user.id, sessionToken: user.token });
    expect((await post('login', { mobilePhoneNumber, password: 'other' })).body.code).toBe(210);
  });

  test('refuses an unknown number with failOnNotExist', async () => {
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone?failOnNotExist=true', {
      mobilePhoneNumber,
      smsCode,
    });
    expect(reply.body.code).toBe(211);
  });

  test('refuses protected members', async () => {
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone', {
      mobilePhoneNumber,
      smsCode,
      sessionToken: 'x',
    });
    expect(reply.body.code).toBe(117);
  });

  test('creates one user for 50 concurrent calls', async () => {
    const mobilePhoneNumber = newPhone();
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const replies = await fifty((one) =>
      one.request('POST', '/1.1/usersByMobilePhone', {
        app: phones.app,
        body: { mobilePhoneNumber, smsCode },
      }),
    );
    expect(successes(replies)).toBe(1);
  });
});

test('wrong codes lock usersByMobilePhone and login together', async () => {
  const mobilePhoneNumber = numberOf(await newUser(newPhone(), { password: 'a password' }));
  const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
  const codes: number[] = [];
  for (let i = 0; i < 7; i += 1)
    codes.push(
      (await post('usersByMobilePhone', { mobilePhoneNumber, smsCode: another(smsCode) })).body
        .code,
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

  test('works once, with a code of its purpose', async () => {
    const user = await newUser();
    const mobilePhoneNumber = numberOf(user);
    const smsCode = await ask('requestLoginSmsCode', { mobilePhoneNumber });
    expect((await messages(mobilePhoneNumber))[0]).toMatchObject({ type: 'login' });
    expect((await post(`verifySmsCode/${smsCode}`, { mobilePhoneNumber })).body.code).toBe(603);
    expect((await post('login', { mobilePhoneNumber, smsCode: another(smsCode) })).body.code).toBe(
      603,
    );
    const reply = await post('login', { mobilePhoneNumber, smsCode });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({
      objectId: user.id,
      sessionToken: user.token,
      mobilePhone: mobilePhoneNumber,
    });
    expect((await post('login', { mobilePhoneNumber, smsCode })).body.code).toBe(603);
  });

  test('succeeds once among 50 concurrent calls', async () => {
    const mobilePhoneNumber = numberOf(await newUser());
    const smsCode = await ask('requestLoginSmsCode', { mobilePhoneNumber });
    const replies = await fifty((one) =>
      one.request('POST', '/1.1/login', { app: phones.app, body: { mobilePhoneNumber, smsCode } }),
    );
    expect(successes(replies)).toBe(1);
    expect(replies.every(({ body }) => [undefined, 603, 219].includes(body.code))).toBe(true);
  });

  test('locks after six wrong codes, known or not, and refuses the right code', async () => {
    const known = numberOf(await newUser());
    const unknown = newPhone();
    const smsCode = await ask('requestLoginSmsCode', { mobilePhoneNumber: known });
    for (const mobilePhoneNumber of [known, unknown]) {
      const codes = [];
      for (let i = 0; i < 8; i += 1)
        codes.push(
          (await post('login', { mobilePhoneNumber, smsCode: another(smsCode) })).body.code,
        );
      expect(codes.slice(0, 6)).toEqual(Array(6).fill(603));
      expect(codes[7]).toBe(219);
    }
    expect((await post('login', { mobilePhoneNumber: known, smsCode })).body.code).toBe(219);
  });
});

describe('request for a code of an account', () => {
  const paths = [
    'requestLoginSmsCode',
    'requestMobilePhoneVerify',
    'requestPasswordResetBySmsCode',
  ];

  test.each(
    paths.flatMap((path) => [
      [path, {}, 212] as const,
      [path, { mobilePhoneNumber: { $ne: 1 } }, 127] as const,
    ]),
  )('%s refuses %j with code %i', async (path, body, code) => {
    expect(refusalOf(await post(path, body))).toEqual(refused(code));
  });

  test.each(paths)(
    '%s refuses an unknown number, which does not count towards the limits',
    async (path) => {
      const mobilePhoneNumber = newPhone();
      for (let i = 0; i < 2; i += 1)
        expect(refusalOf(await post(path, { mobilePhoneNumber }))).toEqual(refused(213));
      expect(await messages(mobilePhoneNumber)).toEqual([]);
      expect((await post('requestSmsCode', { mobilePhoneNumber })).status).toBe(200);
    },
  );

  test.each(paths)(
    '%s answers alike for an unknown number, and sends nothing, if users are concealed',
    async (path) => {
      const discreet = await phones.api.createApp({ concealUsers: true });
      const known = newPhone();
      const holder = await signUp(phones.api, discreet, { mobilePhoneNumber: known });
      if (path !== 'requestMobilePhoneVerify')
        await phones.api.request('PUT', `/1.1/users/${holder.id}`, {
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
  ])(
    '%s is refused for a number whose flag does not allow it, and sends nothing',
    async (path, isVerified) => {
      const mobilePhoneNumber = newPhone();
      if (isVerified) await newUser(mobilePhoneNumber);
      else await signUp(phones.api, phones.app, { mobilePhoneNumber });
      const ask = async () => {
        clock.moveMs(minute);
        const { status, body } = await post(path, { mobilePhoneNumber });
        return [status, body];
      };
      const before = (await messages(mobilePhoneNumber)).length;
      const unverified = { code: 215, error: "Mobile phone number isn't verified." };
      expect(await ask()).toEqual(isVerified ? [200, {}] : [400, unverified]);
      await phones.api.services.apps.change(phones.app.appId, { options: { concealUsers: true } });
      expect(await ask()).toEqual([200, {}]);
      await phones.api.services.apps.change(phones.app.appId, { options: { concealUsers: false } });
      expect(await messages(mobilePhoneNumber)).toHaveLength(before);
    },
  );

  test('with concealed users does not reveal known numbers by an empty balance', async () => {
    const poor = await phones.api.createApp({ smsBalance: 0, concealUsers: true });
    const known = '+14155552671';
    await signUp(phones.api, poor, { mobilePhoneNumber: known });
    for (const mobilePhoneNumber of [known, '+14155552672'])
      expect((await post('requestMobilePhoneVerify', { mobilePhoneNumber }, poor)).body.code).toBe(
        160,
      );
    const rich = await phones.api.createApp({ smsBalance: 10, concealUsers: true });
    expect(
      (await post('requestMobilePhoneVerify', { mobilePhoneNumber: known }, rich)).body,
    ).toEqual({});
    const { body } = await phones.api.request('GET', `/console/api/apps/${rich.appId}`, {
      admin: true,
    });
    expect(body.options.smsBalance).toBe(10);
  });

  test('requires a captcha if the app does, for known and unknown numbers', async () => {
    const guarded = await phones.api.createApp({ captchaForSms: true });
    const known = newPhone();
    await signUp(phones.api, guarded, { mobilePhoneNumber: known });
    for (const mobilePhoneNumber of [known, newPhone()])
      for (const path of paths)
        expect((await post(path, { mobilePhoneNumber }, guarded)).body.code).toBe(608);
  });
});
