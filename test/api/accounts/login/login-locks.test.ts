import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { newName, newPhone, refusalOf, refused, signUp } from '../../../support/users.ts';

let app: App;
/** Offset of the service's clock in minutes. */
let ahead = 0;
const clock = { now: () => Date.now() + ahead * 60_000, monotonicMs: () => performance.now() };

const api = useTestApi({ clock });
beforeAll(async () => {
  app = await api.createApp();
});
const login = (body: unknown) => api.request('POST', '/1.1/login', { app, body });

describe('the login lock', () => {
  const wrong = (username: string) => login({ username, password: 'wrong' });
  const right = (username: string) => login({ username, password: 'a password' });
  const codes = async (count: number, attempt: () => Promise<{ body: { code?: number } }>) => {
    const found: (number | undefined)[] = [];
    for (let i = 0; i < count; i += 1) found.push((await attempt()).body.code);
    return found;
  };
  const six = [210, 210, 210, 210, 210, 210];
  const sixUnknown = six.map(() => 211);

  test('starts with the seventh failure, for users and for unknown names', async () => {
    const user = await signUp(api, app);
    const names: [string, number[]][] = [
      [user.body.username, six],
      [newName(), sixUnknown],
      ['x'.repeat(10_000), sixUnknown],
    ];
    for (const [name, failures] of names) {
      expect(await codes(8, () => wrong(name))).toEqual([...failures, 219, 219]);
      expect(refusalOf(await right(name))).toEqual(refused(219));
    }
  });

  test('does not start after six failures, however many correct logins are between', async () => {
    const { username } = (await signUp(api, app)).body;
    expect(await codes(6, () => wrong(username))).toEqual(six);
    expect((await right(username)).status).toBe(200);
    expect(await codes(1, () => wrong(username))).toEqual([219]);
  });

  test('ends 15 minutes after the last failure; refused calls do not extend it', async () => {
    const { username } = (await signUp(api, app)).body;
    await codes(7, () => wrong(username));
    ahead += 14;
    expect(await codes(2, () => wrong(username))).toEqual([219, 219]);
    expect((await right(username)).body.code).toBe(219);
    ahead += 1.1;
    expect((await right(username)).status).toBe(200);
    expect(await codes(6, () => wrong(username))).toEqual(six);
  });

  test('counts the failures of any 15 minutes', async () => {
    const { username } = (await signUp(api, app)).body;
    expect(await codes(4, () => wrong(username))).toEqual(six.slice(2));
    ahead += 10;
    expect(await codes(2, () => wrong(username))).toEqual([210, 210]);
    ahead += 6;
    // The first four failures have expired now.
    expect(await codes(4, () => wrong(username))).toEqual(six.slice(2));
    expect(await codes(1, () => wrong(username))).toEqual([219]);
  });

  test('counts all spellings of a number together, per app', async () => {
    const phone = newPhone();
    await signUp(api, app, { mobilePhoneNumber: phone });
    const spellings = [phone, phone.slice(3), `+86 ${phone.slice(3)}`];
    const attempt = (i: number) =>
      login({ mobilePhoneNumber: spellings[i % 3], password: 'wrong' });
    for (let i = 0; i < 7; i += 1) await attempt(i);
    expect((await login({ mobilePhoneNumber: phone, password: 'a password' })).body.code).toBe(219);
    const other = await api.createApp();
    await signUp(api, other, { mobilePhoneNumber: phone });
    const elsewhere = { app: other, body: { mobilePhoneNumber: phone, password: 'a password' } };
    expect((await api.request('POST', '/1.1/login', elsewhere)).status).toBe(200);
  });

  test('counts seven of fifty concurrent guesses', async () => {
    const { username } = (await signUp(api, app)).body;
    const replies = await Promise.all(Array.from({ length: 50 }, () => wrong(username)));
    const count = (code: number) => replies.filter(({ body }) => body.code === code).length;
    expect([count(210), count(219)]).toEqual([6, 44]);
    const after = await right(username);
    expect(after.body.code).toBe(219);
  });

  test('applies to the master key too, and ends only after its time', async () => {
    const user = await signUp(api, app);
    const { username } = user.body;
    await codes(7, () => wrong(username));
    const asMaster = (method: string, path: string, body: object) =>
      api.request(method, `/1.1/${path}`, { app, master: true, body });
    const credentials = { username, password: 'another one' };
    expect(
      (await asMaster('PUT', `users/${user.id}`, { password: credentials.password })).status,
    ).toBe(200);
    expect((await asMaster('PUT', `users/${user.id}/refreshSessionToken`, {})).status).toBe(200);
    expect(refusalOf(await asMaster('POST', 'login', credentials))).toEqual(refused(219));
    ahead += 15.1;
    expect((await asMaster('POST', 'login', credentials)).status).toBe(200);
  });

  test('does not start with concurrent correct logins', async () => {
    const { username } = (await signUp(api, app)).body;
    const replies = await Promise.all(Array.from({ length: 20 }, () => right(username)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test("counts a user's identifiers together, and each unknown identifier alone", async () => {
    const [email, phone] = [`${newName()}@example.com`, newPhone()];
    const user = await signUp(api, app, { email, mobilePhoneNumber: phone });
    const claims = [{ username: user.body.username }, { email }, { mobilePhoneNumber: phone }];
    const guess = (claim: object) => login({ ...claim, password: 'wrong' });
    const found: (number | undefined)[] = [];
    for (const claim of [...claims, ...claims, ...claims])
      found.push((await guess(claim)).body.code);
    expect(found).toEqual([...six, 219, 219, 219]);
    for (const claim of claims)
      expect((await login({ ...claim, password: 'a password' })).body.code).toBe(219);
    const change = { old_password: 'a password', new_password: 'b' };
    const changed = await user.request('PUT', `/1.1/users/${user.id}/updatePassword`, change);
    expect(changed.body.code).toBe(219);
    const name = newName();
    expect(await codes(6, () => wrong(name))).toEqual(sixUnknown);
    expect(await codes(1, () => login({ email: name, password: 'wrong' }))).toEqual([211]);
    expect(await codes(1, () => wrong(`${name.toUpperCase()} `))).toEqual([219]);
  });

  test('counts seven of twenty concurrent guesses by all identifiers of a user', async () => {
    const [email, phone] = [`${newName()}@example.com`, newPhone()];
    const { username } = (await signUp(api, app, { email, mobilePhoneNumber: phone })).body;
    const claims = [
      { username },
      { email },
      { mobilePhoneNumber: phone },
      { mobilePhoneNumber: phone },
    ];
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) => login({ ...claims[i % 4], password: 'wrong' })),
    );
    const count = (code: number) => replies.filter(({ body }) => body.code === code).length;
    expect([count(210), count(219)]).toEqual([6, 14]);
  });

  test('protects the old password as well', async () => {
    const user = await signUp(api, app);
    const guess = (old_password: string) =>
      user.request('PUT', `/1.1/users/${user.id}/updatePassword`, {
        old_password,
        new_password: 'b',
      });
    expect(await codes(7, () => guess('wrong'))).toEqual([...six, 219]);
    expect((await guess('a password')).body.code).toBe(219);
  });

  test('stores no name, address or number', async () => {
    await wrong('SESAME-of-the-lock');
    const { rows } = await api.db.query<{ text: string }>(
      'SELECT login_lock::text AS text FROM login_lock',
    );
    expect(rows.map(({ text }) => text).join()).not.toMatch(/SESAME/);
  });
});
