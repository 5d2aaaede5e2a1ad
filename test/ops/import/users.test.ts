import { randomBytes } from 'node:crypto';
import { hash as bcrypt } from 'bcryptjs';
import { describe, expect, test } from 'vitest';
import { aUser, publicHash, useImports } from '../../support/import/imports.ts';
import { readUser } from '../../support/tables.ts';
import { enterWith, newName, newPhone, newUid, signUp } from '../../support/users.ts';

const fixture = useImports();
const { imported, importedByCommand, exportFile, countOf, asMaster } = fixture;

describe('users', () => {
  test('keep all their data, and can log in with passwords and accounts', async () => {
    const [salt, openid, phone] = [randomBytes(24).toString('hex'), newUid(), newPhone()];
    const custom = {
      email: `${newName()}@example.com`,
      nickname: '小明',
      born: { __type: 'Date', iso: '1990-01-01T00:00:00.000Z' },
    };
    const salted = aUser({
      ...custom,
      emailVerified: true,
      mobilePhoneNumber: phone.slice(3),
      mobilePhoneVerified: true,
      password: publicHash('open sesame', salt),
      salt,
      ACL: { '*': { read: true, write: false }, 'role:admin': { write: true } },
      authData: {
        weixin: {
          openid,
          access_token: 'SESAME',
          _sealed: 'SESAME',
          expires_in: 7200,
          unionid: 'u1',
          platform: 'weixin',
        },
        _weixin_unionid: { uid: 'u1' },
        qq: null,
      },
    });
    const bcrypted = aUser({ password: await bcrypt('another one', 4) });
    const path = await exportFile('_User.0.jsonl', [salted, bcrypted], '_User');
    expect(await imported(path)).toMatchObject({ code: 0, classes: { _User: { imported: 2 } } });

    const { body } = await asMaster(`/users/${salted.objectId}`);
    expect(body).toMatchObject({
      objectId: salted.objectId,
      createdAt: salted.createdAt,
      updatedAt: salted.updatedAt,
      username: salted.username,
      ...custom,
      emailVerified: true,
      mobilePhoneNumber: phone,
      mobilePhoneVerified: true,
    });
    for (const name of ['password', 'salt', 'sessionToken']) expect(body).not.toHaveProperty(name);
    expect(body.authData.weixin).toEqual({
      openid,
      access_token: 'SESAME',
      expires_in: 7200,
      unionid: 'u1',
      platform: 'weixin',
      // LeanCloud found the user by this UnionID.
      main_account: true,
    });
    const { rows: sealed } = await fixture.db.query(
      'SELECT 1 FROM app_user u WHERE u.object_id = $1 AND u::text LIKE $2',
      [salted.objectId, '%SESAME%'],
    );
    expect(sealed).toEqual([]);
    const login = (username: string, password: string) =>
      fixture.api.request('POST', '/1.1/login', { app: fixture.app, body: { username, password } });
    expect((await login(salted.username, 'wrong')).status).toBe(400);
    for (const [user, password] of [
      [salted, 'open sesame'],
      [bcrypted, 'another one'],
    ] as const) {
      expect((await login(user.username, password)).body.objectId).toBe(user.objectId);
      const { passwordHash } = await readUser(fixture.db, fixture.app, user.objectId);
      expect(passwordHash).toMatch(/^\$argon2id\$/);
      expect((await login(user.username, password)).status).toBe(200);
    }
    const byWeixin = await enterWith(fixture.api, fixture.app, {
      weixin: { openid, access_token: 'new' },
    });
    expect(byWeixin.id).toBe(salted.objectId);
    const byUnion = await enterWith(fixture.api, fixture.app, {
      weixin_mini: { uid: newUid(), access_token: 'new', unionid: 'u1', platform: 'weixin' },
    });
    expect(byUnion.id).toBe(salted.objectId);
  });

  test('are kept with any phone number', async () => {
    const numbers: [string, string | null][] = [
      ['14612345678', '+8614612345678'],
      ['+8614812345678', '+8614812345678'],
      ['149 1234 5678', '+8614912345678'],
      ['+86-12345', '+8612345'],
      ['99912345678901', '99912345678901'],
      ['12', null],
      ['none', null],
      ['+', null],
    ];
    const users = numbers.map(([mobilePhoneNumber]) =>
      aUser({ mobilePhoneNumber, mobilePhoneVerified: true }),
    );
    expect(await imported(await exportFile('_User.jsonl', users))).toMatchObject({
      code: 0,
      classes: { _User: { imported: numbers.length } },
    });
    for (const [i, [sent, stored]] of numbers.entries()) {
      const { body } = await asMaster(`/users/${users[i]?.objectId}`);
      const seen = [sent, body.mobilePhoneNumber ?? null, body.mobilePhoneVerified];
      expect(seen).toEqual([sent, stored, stored !== null]);
    }
  });

  test('with one UnionID enter the main account from another app, wherever it is', async () => {
    for (const isFirst of [true, false]) {
      const entry = (main_account: boolean) => ({
        uid: newUid(),
        access_token: 't',
        unionid: `u-${isFirst}`,
        platform: 'weixin',
        main_account,
      });
      const [main, other] = [
        aUser({ authData: { weixin_1: entry(true) } }),
        aUser({ authData: { weixin_2: entry(false) } }),
      ];
      await imported(await exportFile('_User.jsonl', isFirst ? [main, other] : [other, main]));
      const third = await enterWith(fixture.api, fixture.app, { weixin_3: entry(false) });
      expect(third.id).toBe(main.objectId);
    }
  });

  test('with bcrypt can log in, and get a new hash if bcrypt compared it all', async () => {
    interface Expected {
      isReplaced: boolean;
      /** Shorter password that bcrypt accepts too. */
      cut?: string;
      isRefused?: boolean;
    }
    const bytes = (count: number, letter = 'a') => letter.repeat(count / Buffer.byteLength(letter));
    const own = async (password: string, more: Expected, prefix = '$2b$') => ({
      ...more,
      password,
      user: aUser({ password: (await bcrypt(password, 4)).replace('$2b$', prefix) }),
    });
    const accounts = [
      await own(bytes(71), { isReplaced: true }),
      await own(bytes(72), { isReplaced: false }),
      await own(bytes(100), { isReplaced: false, cut: bytes(72) }),
      await own(bytes(90, '密'), { isReplaced: false, cut: bytes(72, '密') }),
      await own('short', { isReplaced: true }, '$2a$'),
      await own('short', { isReplaced: true }, '$2y$'),
      await own('short', { isReplaced: true }, '$2x$'),
      await own('密码', { isReplaced: false, isRefused: true }, '$2x$'),
    ];
    const users = accounts.map(({ user }) => user);
    expect(await imported(await exportFile('_User.jsonl', users))).toMatchObject({ code: 0 });
    const login = async (username: string, password: string) => {
      const body = { username, password };
      const { status } = await fixture.api.request('POST', '/1.1/login', {
        app: fixture.app,
        body,
      });
      return status;
    };
    // All logins run concurrently, so that a hash which cannot be computed must not end another
    // login.
    const loginAll = () =>
      Promise.all(
        accounts.map(async ({ user, password, cut, isRefused }) => {
          if (cut) await login(user.username, cut);
          const status = await login(user.username, password);
          expect([password.slice(0, 8), status]).toEqual([
            password.slice(0, 8),
            isRefused ? 400 : 200,
          ]);
        }),
      );
    await loginAll();
    await loginAll();
    const hashes = new Map<string, string | null>();
    for (const { objectId } of users)
      hashes.set(objectId, (await readUser(fixture.db, fixture.app, objectId)).passwordHash);
    for (const { user, isReplaced } of accounts)
      expect(hashes.get(user.objectId)?.startsWith('$argon2id$')).toBe(isReplaced);
  });

  test('turn strict queries on for their clients, unless an owner turned them off', async () => {
    const ask = () =>
      fixture.api.request('GET', '/1.1/users/strictlyQuery?limit=1', { app: fixture.app });
    const importOne = async () =>
      imported(await exportFile(`_User.${newUid()}.jsonl`, [aUser({})], '_User'));
    const set = (allowStrictUserQuery: boolean) =>
      fixture.api.services.apps.change(fixture.app.appId, { options: { allowStrictUserQuery } });
    await importOne();
    await expect.poll(async () => (await ask()).status).toBe(200);
    await set(false);
    await importOne();
    expect((await ask()).status).toBe(403);
    await set(true);
  });

  test('keep the session of the export until it is replaced', async () => {
    const token = randomBytes(16).toString('hex').slice(0, 25);
    const salt = 'salt';
    const user = aUser({ sessionToken: token, password: publicHash('a password', salt), salt });
    await imported(await exportFile('_User.jsonl', [user]));
    const me = (session: string) =>
      fixture.api.request('GET', '/1.1/users/me', {
        app: fixture.app,
        headers: { 'X-LC-Session': session },
      });
    expect((await me(token)).body).toMatchObject({ objectId: user.objectId });
    const { username } = user;
    const login = await fixture.api.request('POST', '/1.1/login', {
      app: fixture.app,
      body: { username, password: 'a password' },
    });
    expect(login.body.sessionToken).toBe(token);
    expect((await me(token)).status).toBe(200);
    const { rows } = await fixture.db.query<{ row: string }>(
      'SELECT app_user::text AS row FROM app_user WHERE app_id = $1',
      [fixture.app.appId],
    );
    expect(rows[0]?.row).not.toContain(Buffer.from(token).toString('hex'));
    const refreshed = await fixture.api.request(
      'PUT',
      `/1.1/users/${user.objectId}/refreshSessionToken`,
      {
        app: fixture.app,
        headers: { 'X-LC-Session': token },
      },
    );
    expect(refreshed.status).toBe(200);
    expect(refreshed.body.sessionToken).not.toBe(token);
    expect((await me(token)).status).toBe(400);
    expect((await me(refreshed.body.sessionToken)).status).toBe(200);
  });

  test('are refused with values of another user in app or file, also in a dry run', async () => {
    const uid = newUid();
    const there = await signUp(fixture.api, fixture.app, {
      email: `${newName()}@example.com`,
      mobilePhoneNumber: newPhone(),
    });
    const linked = await enterWith(fixture.api, fixture.app, { weibo: { uid, access_token: 't' } });
    const [fileUid, sessionToken] = [newUid(), randomBytes(20).toString('hex')];
    const first = aUser({ authData: { weibo: { uid: fileUid } }, sessionToken });
    const conflicts: [string, object][] = [
      [`username belongs to ${there.id}`, { username: there.body.username }],
      [`email belongs to ${there.id}`, { email: there.body.email }],
      [
        `mobilePhoneNumber belongs to ${there.id}`,
        { mobilePhoneNumber: there.body.mobilePhoneNumber },
      ],
      [`authData.weibo belongs to ${linked.id}`, { authData: { weibo: { uid } } }],
      [`authData.weibo belongs to ${first.objectId}`, { authData: { weibo: { uid: fileUid } } }],
      [`sessionToken belongs to ${first.objectId}`, { sessionToken }],
    ];
    const path = await exportFile('_User.jsonl', [
      first,
      ...conflicts.map(([, member]) => aUser(member)),
    ]);
    for (const args of [['--dry-run'], []]) {
      const report = await importedByCommand(path, ...args);
      expect(report).toMatchObject({
        code: 1,
        classes: { _User: { imported: 1, refused: conflicts.length } },
      });
      const byLine = new Map(
        report.refusals.map((one: { line: number; error: string }) => [one.line, one.error]),
      );
      conflicts.forEach(([message], i) => {
        expect(byLine.get(i + 2)).toBe(`${message} already.`);
      });
      expect(await countOf('app_user')).toBe(args.length > 0 ? 2 : 3);
    }
    expect(await countOf('user_identity')).toBe(2);
  });

  test('that are refused do not block others with their remaining accounts', async () => {
    const [taken, shared] = [newUid(), newUid()];
    const there = await enterWith(fixture.api, fixture.app, {
      weibo: { uid: taken, access_token: 't' },
    });
    const out = aUser({
      username: 'the same',
      authData: { weibo: { uid: taken }, qq: { openid: shared } },
    });
    const next = aUser({ username: 'the same', authData: { qq: { openid: shared } } });
    const path = await exportFile('_User.jsonl', [out, next]);
    for (const args of [['--dry-run'], []])
      expect(await importedByCommand(path, ...args)).toMatchObject({
        classes: { _User: { imported: 1, refused: 1 } },
        refusals: [{ line: 1, error: `authData.weibo belongs to ${there.id} already.` }],
      });
    expect(
      (await enterWith(fixture.api, fixture.app, { qq: { openid: shared, access_token: 't' } })).id,
    ).toBe(next.objectId);
    expect((await imported(path)).classes._User).toMatchObject({
      imported: 0,
      alreadyThere: 1,
      refused: 1,
    });
  });
});
