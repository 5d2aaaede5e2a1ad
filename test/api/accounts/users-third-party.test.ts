import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { countWaitingForLocks } from '../../support/database.ts';
import { useTestApi } from '../../support/test-api.ts';
import {
  enterWith,
  newName,
  newUid,
  refusalOf,
  refused,
  signUp,
  type TestUser,
  visibleAuthData,
} from '../../support/users.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const post = (authData: unknown, { query = '', more = {} } = {}) =>
  api.request('POST', `/1.1/users${query}`, { app, body: { authData, ...more } });

const github = (uid = newUid()) => ({ github: { uid, access_token: 'a token' } });
const weixin = (openid = newUid()) => ({
  weixin: { openid, access_token: 'a token', expires_in: 7200 },
});
const anonymous = (id: string = randomUUID()) => ({ anonymous: { id } });

describe('POST /1.1/users with authData refuses', () => {
  const entries: [string, unknown, number][] = [
    ['an empty one', {}, 250],
    ['a list', [], 111],
    ['a text', 'weixin', 111],
    ['a platform that is null', { weixin: null }, 250],
    ['a platform that is a text', { weixin: 'openid' }, 250],
    ['a platform that is a list', { weixin: [] }, 250],
    ['a platform that is empty', { weixin: {} }, 250],
    ['a platform that is taken away', { weixin: { __op: 'Delete' } }, 250],
    ['a platform with a bad name', { 'wei-xin': { uid: 'u', access_token: 't' } }, 105],
    ['a platform with a dotted name', { 'weixin.openid': { uid: 'u', access_token: 't' } }, 105],
    ['an empty id', { github: { uid: '', access_token: 't' } }, 250],
    ['a blank id', { github: { uid: ' ', access_token: 't' } }, 250],
    ['an id that is null', { github: { uid: null, access_token: 't' } }, 250],
    ['an operator as id', { github: { uid: { $ne: null }, access_token: 't' } }, 121],
    ['a dictionary as id', { github: { uid: { a: 1 }, access_token: 't' } }, 111],
    ['a list as id', { github: { uid: ['u'], access_token: 't' } }, 111],
    ['a number as id', { github: { uid: 5, access_token: 't' } }, 111],
    ['true as id', { github: { uid: true, access_token: 't' } }, 111],
    ['an id with NUL', { github: { uid: 'u\u0000', access_token: 't' } }, 111],
    ['an endless id', { github: { uid: 'u'.repeat(300), access_token: 't' } }, 250],
    ['a missing token', { github: { uid: 'u' } }, 251],
    ['a missing token of weibo', { weibo: { uid: 'u' } }, 251],
    ['a missing token of weixin', { weixin: { openid: 'o' } }, 252],
    ['an operator as token', { github: { uid: 'u', access_token: { $ne: 1 } } }, 121],
    ['a number as token', { github: { uid: 'u', access_token: 5 } }, 111],
    ['an anonymous id that can be guessed', { anonymous: { id: '1' } }, 250],
    ['an invalid anonymous id', { anonymous: { uid: randomUUID() } }, 250],
    ['one good and one bad', { ...github(), weibo: { uid: '' } }, 250],
    [
      'a UnionID that is not a text',
      { wx: { uid: 'u', access_token: 't', unionid: 5, platform: 'weixin' } },
      111,
    ],
    [
      'a UnionID of no platform',
      { wx: { uid: 'u', access_token: 't', unionid: 'n', platform: 'a.b' } },
      111,
    ],
    [
      'a main account that is neither',
      { wx: { uid: 'u', access_token: 't', main_account: 'maybe' } },
      111,
    ],
    ['a huge entry', { github: { uid: 'u', access_token: 't', more: 'x'.repeat(20_000) } }, 116],
    [
      'too many platforms',
      Object.fromEntries(
        Array.from({ length: 21 }, (_, i) => [`p${i}`, { uid: 'u', access_token: 't' }]),
      ),
      116,
    ],
  ];
  test.each(entries)('%s', async (_name, authData, code) => {
    expect(refusalOf(await post(authData))).toEqual(refused(code));
  });

  test('an unknown account with failOnNotExist, and creates no user', async () => {
    const authData = github();
    const reply = await post(authData, { query: '?failOnNotExist=true' });
    expect([reply.status, reply.body]).toEqual([400, { code: 211, error: 'Could not find user.' }]);
    const user = await enterWith(api, app, authData);
    expect((await post(authData, { query: '?failOnNotExist=true' })).body.objectId).toBe(user.id);
  });

  test('platforms of two users', async () => {
    const [one, two] = [github(), weixin()];
    await enterWith(api, app, one);
    await enterWith(api, app, two);
    expect(refusalOf(await post({ ...one, ...two }))).toEqual(refused(208));
  });
});

describe('POST /1.1/users with authData', () => {
  test('signs up, then logs in: 201 and 200, Location, the whole user', async () => {
    const authData = weixin();
    const first = await post(authData);
    expect(first.status).toBe(201);
    expect(first.body).toEqual({
      username: expect.stringMatching(/^[a-z0-9]{25}$/),
      emailVerified: null,
      mobilePhoneVerified: false,
      authData,
      objectId: expect.stringMatching(/^[0-9a-f]{24}$/),
      sessionToken: expect.stringMatching(/^[a-z0-9]{25}$/),
      createdAt: expect.any(String),
      updatedAt: first.body.createdAt,
    });
    const again = { weixin: { ...authData.weixin, access_token: 'another', refresh_token: 'r' } };
    const second = await post(again, { more: { username: newName(), level: 9 } });
    expect(second.status).toBe(200);
    expect(second.body).toEqual({ ...first.body, authData: again, updatedAt: expect.any(String) });
    for (const { headers } of [first, second])
      expect(headers.get('location')).toBe(`http://carillon.test/1.1/users/${first.body.objectId}`);
  });

  const shapes: [string, Record<string, object>][] = [
    ['weibo', { weibo: { uid: newUid(), access_token: 't', expiration_in: '36000' } }],
    ['qq', { qq: { openid: newUid(), access_token: 't', expires_in: 7200 } }],
    [
      'a platform of its own',
      { wxleanoffice: { uid: newUid(), access_token: 't', more: { a: [1] } } },
    ],
    ['one that names its id openid', { wxleanoffice: { openid: newUid(), access_token: 't' } }],
    ['one with a dangerous name', { constructor: { uid: newUid(), access_token: 't' } }],
    ['anonymous', anonymous()],
    ['anonymous without dashes', anonymous(newUid())],
  ];
  test.each(shapes)('recognizes %s', async (_name, authData) => {
    const user = await enterWith(api, app, authData);
    const again = await post(authData);
    expect([again.status, again.body.objectId, again.body.sessionToken]).toEqual([
      200,
      user.id,
      user.token,
    ]);
    expect(again.body.authData).toEqual(authData);
  });

  test('scopes an id to its platform and app', async () => {
    const uid = newUid();
    const users = [
      await enterWith(api, app, { github: { uid, access_token: 't' } }),
      await enterWith(api, app, { gitlab: { uid, access_token: 't' } }),
      await enterWith(api, await api.createApp(), { github: { uid, access_token: 't' } }),
    ];
    expect(new Set(users.map(({ id }) => id)).size).toBe(3);
  });

  test('accepts a name and a password for a new user', async () => {
    const username = newName();
    const { status, body } = await post(github(), { more: { username, password: 'p', nick: 'x' } });
    expect([status, body.username, body.nick]).toEqual([201, username, 'x']);
    const entered = await api.request('POST', '/1.1/login', {
      app,
      body: { username, password: 'p' },
    });
    expect(entered.body.objectId).toBe(body.objectId);
    expect(refusalOf(await post(github(), { more: { username } }))).toEqual(refused(202));
  });

  test('accepts several platforms; any of them finds the user', async () => {
    const [one, two, three] = [github(), weixin(), { weibo: { uid: newUid(), access_token: 't' } }];
    const user = await enterWith(api, app, { ...one, ...two });
    for (const authData of [one, two, { ...two, ...three }, three])
      expect((await enterWith(api, app, authData)).id).toBe(user.id);
    expect((await user.me()).authData).toEqual(visibleAuthData({ ...one, ...two, ...three }));
  });

  test('cannot log in with a password that was never set', async () => {
    const user = await enterWith(api, app, github());
    for (const password of ['null', 'undefined', 'a token']) {
      const body = { username: user.body.username, password };
      expect(refusalOf(await api.request('POST', '/1.1/login', { app, body }))).toEqual(
        refused(210),
      );
    }
  });

  test('creates one user for fifty concurrent calls with one account', async () => {
    const authData = { ...github(), ...weixin() };
    const replies = await Promise.all(
      Array.from({ length: 50 }, () => post(authData, { more: { username: 'one-of-fifty' } })),
    );
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(49);
    expect(new Set(replies.map(({ body }) => `${body.objectId} ${body.sessionToken}`)).size).toBe(
      1,
    );
  });

  test('is visible to the user and the master key only', async () => {
    const user = await enterWith(api, app, { ...github(), ...weixin() });
    const path = `/1.1/users/${user.id}`;
    const other = await signUp(api, app);
    const seen = [
      await api.request('GET', path, { app }),
      await other.request('GET', path),
      await user.request('GET', path),
      await api.request('GET', path, { app, master: true }),
    ].map(({ body }) => Object.hasOwn(body, 'authData'));
    expect(seen).toEqual([false, false, true, true]);
  });
});

describe('UnionID', () => {
  const wx = (platform: string, unionid: string, main: boolean | string = true) => ({
    [platform]: {
      uid: newUid(),
      access_token: 't',
      expires_in: 1,
      platform: 'weixin',
      unionid,
      main_account: main,
    },
  });

  const uidOf = async (user: TestUser | undefined, platform: string) => {
    const me = (await user?.me()) as { authData?: Record<string, { uid: string }> } | undefined;
    return me?.authData?.[platform]?.uid;
  };

  test('is shown in authData and next to it, and finds the user elsewhere', async () => {
    const unionid = newUid();
    const [one, two] = [wx('weixin_1', unionid), wx('weixin_2', unionid, 'false')];
    const first = await post(one);
    expect(first.status).toBe(201);
    expect(first.body).toMatchObject({
      authData: { ...one, _weixin_unionid: { uid: unionid } },
      _weixin_unionid: { uid: unionid },
      updatedAt: expect.any(String),
      emailVerified: null,
      mobilePhoneVerified: false,
    });
    const second = await post(two);
    expect([second.status, second.body.objectId]).toEqual([200, first.body.objectId]);
    expect(second.body.authData).toEqual({
      ...visibleAuthData(one),
      ...two,
      _weixin_unionid: { uid: unionid },
    });
    // Clients send back the UnionID that they were shown.
    expect((await post({ ...second.body.authData, ...one, ...two })).body.objectId).toBe(
      first.body.objectId,
    );
  });

  test('of two platforms in one request is one UnionID', async () => {
    const unionid = newUid();
    const both = { ...wx('weixin_1', unionid), ...wx('weixin_2', unionid) };
    const user = await enterWith(api, app, both);
    expect((await enterWith(api, app, wx('weixin_3', unionid))).id).toBe(user.id);
  });

  test('stays after a login without it, and is removed with its last platform', async () => {
    const unionid = newUid();
    const one = wx('weixin_1', unionid);
    const user = await enterWith(api, app, one);
    await enterWith(api, app, { weixin_1: { uid: one.weixin_1?.uid, access_token: 'u' } });
    expect((await user.me())._weixin_unionid).toEqual({ uid: unionid });
    await user.put({ 'authData.weixin_1': { __op: 'Delete' } });
    expect((await user.me()).authData).toEqual({});
    expect((await enterWith(api, app, wx('weixin_2', unionid))).id).not.toBe(user.id);
  });

  test.each([[false], ['false'], [undefined]])(
    'finds only the main account: main_account %s searches but claims nothing',
    async (main) => {
      const unionid = newUid();
      const other = (platform: string) => {
        const [entry] = Object.values(wx(platform, unionid));
        return { [platform]: { ...entry, main_account: main } };
      };
      const first = await enterWith(api, app, other('weixin_1'));
      expect(first.body).not.toHaveProperty('_weixin_unionid');
      const second = await enterWith(api, app, other('weixin_2'));
      expect(second.id).not.toBe(first.id);
      const owner = await enterWith(api, app, wx('weixin_3', unionid));
      expect([first.id, second.id]).not.toContain(owner.id);
      for (const platform of ['weixin_4', 'weixin_5'])
        expect((await enterWith(api, app, other(platform))).id).toBe(owner.id);
      // The platform's own ids take precedence.
      const uid = await uidOf(first, 'weixin_1');
      const again = { weixin_1: { ...other('weixin_1').weixin_1, uid } };
      expect((await enterWith(api, app, again)).id).toBe(first.id);
      // Linking the main account claims the UnionID if it is free.
      await owner.put({ authData: { __op: 'Delete' } });
      await second.put({ authData: wx('weixin_6', unionid) });
      expect((await enterWith(api, app, wx('weixin_7', unionid, true))).id).toBe(second.id);
    },
  );

  test('of earlier versions stays with its holder, unless the entry denies it', async () => {
    const holders = ['undecided', 'false'].map(async (kind) => {
      const unionid = newUid();
      const holder = await enterWith(api, app, wx(`old_${kind}`, unionid));
      const change =
        kind === 'false'
          ? `jsonb_set(auth_data, '{old_false,main_account}', 'false')`
          : `auth_data #- '{old_undecided,main_account}'`;
      await api.db.query(`UPDATE app_user SET auth_data = ${change} WHERE object_id = $1`, [
        holder.id,
      ]);
      const uid = await uidOf(holder, `old_${kind}`);
      const main = await enterWith(api, app, { other: { uid: newUid(), access_token: 't' } });
      // Links the main account and logs its holder in.
      expect((await main.put({ authData: wx('new', unionid) })).status).toBe(200);
      await enterWith(api, app, { [`old_${kind}`]: { uid, access_token: 'u' } });
      return { holder, main, found: await enterWith(api, app, wx('newer', unionid, false)) };
    });
    const [undecided, other] = await Promise.all(holders);
    expect([undecided?.found.id, other?.found.id]).toEqual([undecided?.holder.id, other?.main.id]);
  });

  test('does not move a user to another account', async () => {
    const unionid = newUid();
    const plain = await enterWith(api, app, { weixin_1: { uid: 'plain', access_token: 't' } });
    const owner = await enterWith(api, app, wx('weixin_2', unionid));
    const both = { weixin_1: { uid: 'plain', access_token: 't', unionid, platform: 'weixin' } };
    expect((await enterWith(api, app, both)).id).toBe(plain.id);
    expect((await enterWith(api, app, wx('weixin_3', unionid))).id).toBe(owner.id);
  });

  test('creates one user for many concurrent calls from different platforms', async () => {
    const unionid = newUid();
    const replies = await Promise.all(
      Array.from({ length: 19 }, (_, i) => post(wx(`weixin_${i}`, unionid))),
    );
    expect(new Set(replies.map(({ body }) => body.objectId)).size).toBe(1);
  });
});

describe('linking and unlinking', () => {
  test("refuses invalid entries, other users' accounts, and deeper paths", async () => {
    const user = await signUp(api, app);
    const taken = github();
    await enterWith(api, app, taken);
    const cases: [object, number][] = [
      [{ authData: { github: {} } }, 250],
      [{ authData: { github: { uid: 'u' } } }, 251],
      [{ authData: 5 }, 111],
      [{ authData: taken }, 208],
      [{ 'authData.github': taken.github }, 208],
      [{ 'authData.github.uid': 'u' }, 105],
      [{ 'authData.github.uid': { __op: 'Delete' } }, 105],
      [{ 'authData._weixin_unionid': { uid: 'u' } }, 105],
      [{ 'authData.__proto__': { uid: 'u', access_token: 't' } }, 105],
      [{ authData: { __op: 'Add', objects: [] } }, 250],
      [{ 'authData.github': { __op: 'Increment' } }, 250],
    ];
    for (const [body, code] of cases)
      expect([body, refusalOf(await user.put(body))]).toEqual([body, refused(code)]);
    expect(await user.me()).not.toHaveProperty('authData');
  });

  test.each([
    ['null in authData', { authData: { weixin: null } }],
    ['null under its path', { 'authData.weixin': null }],
    ['a deletion in authData', { authData: { weixin: { __op: 'Delete' } } }],
    ['a deletion under its path', { 'authData.weixin': { __op: 'Delete' } }],
  ])('unlinks an account by %s', async (_name, body) => {
    const user = await signUp(api, app);
    const authData = { ...weixin(), ...github() };
    await user.put({ authData });
    expect((await user.put(body)).status).toBe(200);
    expect((await user.me()).authData).toEqual(visibleAuthData({ github: authData.github }));
    expect(
      (await post({ weixin: authData.weixin }, { query: '?failOnNotExist=true' })).body.code,
    ).toBe(211);
    // Unlinking a platform that is not linked succeeds.
    expect((await user.put(body)).status).toBe(200);
  });

  test('a linked account can log in, and an unlinked account no longer', async () => {
    const user = await signUp(api, app);
    const authData = { ...weixin(), ...github() };
    const linked = await user.put({ authData }, '?new=true');
    expect([linked.status, linked.body]).toEqual([
      200,
      { authData, updatedAt: expect.any(String), objectId: user.id },
    ]);
    expect((await enterWith(api, app, { weixin: authData.weixin })).id).toBe(user.id);
    const path = `/1.1/classes/_User/${user.id}`;
    const removed = await user.request('PUT', path, { 'authData.weixin': { __op: 'Delete' } });
    expect([removed.status, Object.keys(removed.body).sort()]).toEqual([
      200,
      ['objectId', 'updatedAt'],
    ]);
    expect(
      (await post({ weixin: authData.weixin }, { query: '?failOnNotExist=true' })).body.code,
    ).toBe(211);
    expect((await enterWith(api, app, { github: authData.github })).id).toBe(user.id);
    // Another user may link the account now.
    expect((await enterWith(api, app, { weixin: authData.weixin })).id).not.toBe(user.id);
  });

  test('unlinking an unknown platform does nothing, and all may be unlinked at once', async () => {
    const user = await enterWith(api, app, { ...github(), ...weixin() });
    expect((await user.put({ 'authData.weibo': { __op: 'Delete' } })).status).toBe(200);
    expect((await user.put({ authData: { __op: 'Delete' } })).status).toBe(200);
    expect((await user.me()).authData).toEqual({});
    const { rows } = await api.db.query(
      `SELECT 1 FROM user_identity i JOIN app_user u ON u.app_id = i.app_id AND u.id = i.user_id
        WHERE u.app_id = $1 AND u.object_id = $2`,
      [app.appId, user.id],
    );
    expect(rows).toEqual([]);
  });

  test('an anonymous user is no longer anonymous after linking another platform', async () => {
    const id = anonymous();
    const user = await enterWith(api, app, id);
    const real = github();
    expect((await user.put({ authData: real }, '?fetchWhenSave=true')).body.authData).toEqual(real);
    expect((await enterWith(api, app, real)).id).toBe(user.id);
    expect((await enterWith(api, app, id)).id).not.toBe(user.id);
  });

  test('or after getting a name and a password', async () => {
    const id = anonymous();
    const user = await enterWith(api, app, id);
    const username = newName();
    expect((await user.put({ username, password: 'p' })).status).toBe(200);
    expect(await user.me()).toMatchObject({ username, authData: {}, sessionToken: user.token });
    const entered = await api.request('POST', '/1.1/login', {
      app,
      body: { username, password: 'p' },
    });
    expect(entered.body.objectId).toBe(user.id);
    expect((await enterWith(api, app, id)).id).not.toBe(user.id);
  });

  test('only one of many users can link one account concurrently', async () => {
    const users = await Promise.all(
      Array.from({ length: 10 }, () => enterWith(api, app, anonymous())),
    );
    const authData = github();
    const replies = await Promise.all([...users, ...users].map((user) => user.put({ authData })));
    const winners = new Set(
      replies.flatMap(({ status }, i) => (status === 200 ? [users[i % 10]?.id] : [])),
    );
    expect(winners.size).toBe(1);
    for (const { status, body } of replies) if (status !== 200) expect(body.code).toBe(208);
    expect(winners).toContain((await enterWith(api, app, authData)).id);
  });

  test('concurrent linking, unlinking and logins leave users and accounts consistent', async () => {
    const authData = github();
    const user = await signUp(api, app);
    const work = Array.from({ length: 50 }, (_, i) => {
      if (i % 3 === 0) return user.put({ authData });
      return i % 3 === 1 ? user.put({ 'authData.github': { __op: 'Delete' } }) : post(authData);
    });
    const replies = await Promise.all(work);
    for (const { status, body } of replies)
      expect([200, 201, 208]).toContain(status === 400 ? body.code : status);
    const { rows } = await api.db.query(
      `SELECT u.object_id FROM app_user u WHERE app_id = $1
        AND (SELECT count(*) FROM jsonb_object_keys(coalesce(auth_data, '{}')))
         <> (SELECT count(*) FROM user_identity i WHERE i.app_id = u.app_id AND i.user_id = u.id
           AND i.platform NOT LIKE '\\_%')`,
      [app.appId],
    );
    expect(rows).toEqual([]);
  });

  test('linking an account that is unlinked concurrently is checked and repeated', async () => {
    const authData = github();
    const user = await signUp(api, app);
    await user.put({ authData });
    const { link } = await api.db.transaction(async (tx) => {
      const key = [app.appId, user.id];
      await tx.query('SELECT FROM app_user WHERE app_id = $1 AND object_id = $2 FOR UPDATE', key);
      const started = user.put({ authData });
      await vi.waitUntil(async () => (await countWaitingForLocks(api.db)) === 1, {
        timeout: 20_000,
      });
      await tx.query(
        'UPDATE app_user SET auth_data = NULL WHERE app_id = $1 AND object_id = $2',
        key,
      );
      await tx.query(
        `DELETE FROM user_identity i USING app_user u
          WHERE i.app_id = $1 AND u.app_id = $1 AND u.object_id = $2 AND i.user_id = u.id`,
        key,
      );
      return { link: started };
    });
    expect((await link).status).toBe(200);
    expect((await post(authData)).body.objectId).toBe(user.id);
  });

  test("concurrent links of each other's accounts end without a deadlock", async () => {
    const account = () => github().github;
    const rounds = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const [one, two] = await Promise.all([signUp(api, app), signUp(api, app)]);
        const [a, z] = [account(), account()];
        await one.put({ authData: { zeta: z } });
        await two.put({ authData: { alpha: a } });
        return { one, two, a, z };
      }),
    );
    const replies = await Promise.all(
      rounds.flatMap(({ one, two, a, z }) => [
        one.put({ 'authData.zeta': { __op: 'Delete' }, 'authData.alpha': a }),
        two.put({ 'authData.alpha': { __op: 'Delete' }, 'authData.zeta': z }),
      ]),
    );
    for (const { status, body } of replies)
      expect([200, 208]).toContain(status === 400 ? body.code : status);
  });
});
