import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { Vault } from '../../../shared/crypto.ts';
import { sealAuthDataOfOldRows } from '../../../shared/db/tables/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { visibleMembers } from '../../../shared/domain/users/auth-data.ts';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';
import { enterWith, newName, newUid, refusalOf, refused } from '../../support/users.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const weixin = (openid = newUid()) => ({
  weixin: { openid, access_token: 'a token', expires_in: 7200 },
});
const pointerTo = (objectId: string) => ({ __type: 'Pointer', className: '_User', objectId });

test('the documentation lists the members that are shown', async () => {
  const page = await readFile(
    new URL('../../../docs/reference/protocol/users.md', import.meta.url),
    'utf8',
  );
  const [, section = ''] = page.split('## Members that are shown');
  const [table = ''] = section.split('\n1. ').map((part) => part.slice(part.indexOf('\n|')));
  expect([...table.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(visibleMembers);
});

describe('tokens of platforms', () => {
  const secrets = {
    access_token: 'SESAME-access',
    refresh_token: 'SESAME-refresh',
    code: 'SESAME-code',
    id_token: 'SESAME-id',
    session_key: 'SESAME-session',
    openid_secret: 'SESAME-secret',
    nested: { deep: [{ accessToken: 'SESAME-deep' }] },
    // Member names of real platforms that do not look like secrets.
    mac_key: 'SESAME-mac',
    kid: 'SESAME-kid',
    serverAuthCode: 'SESAME-server',
    signature: 'SESAME-signature',
    encryptedData: 'SESAME-encrypted',
    iv: 'SESAME-iv',
    ticket: 'SESAME-ticket',
    'x-pin': 'SESAME-pin',
    jwt: 'SESAME-jwt',
    authResponse: { sig: 'SESAME-sig' },
    list: ['SESAME-list'],
    number: 5_551_234_567,
    // A harmless name does not make the members inside harmless.
    name: { first: 'SESAME-name' },
    avatar: [{ url: 'SESAME-avatar' }],
  };
  const open = (uid: string) => ({
    uid,
    expires_in: 7200,
    expiresAt: '2030-01-01',
    scope: ['read', 'write'],
    nick: 'x',
    avatarUrl: 'https://example.com/x.png',
  });
  const full = (uid: string) => ({ github: { ...open(uid), ...secrets } });
  const stored = async (id: string) =>
    (
      await api.db.query<{ row: string }>(
        'SELECT u::text AS row FROM app_user u WHERE object_id = $1',
        [id],
      )
    ).rows[0]?.row ?? '';

  test("appear in no client's reads, only in reads with the master key", async () => {
    const own = await api.createApp({ allowUserQuery: true });
    const uid = newUid();
    const body = { authData: full(uid), username: newName(), password: 'a password' };
    const created = await api.request('POST', '/1.1/users', { app: own, body });
    const headers = { 'X-LC-Session': String(created.body.sessionToken) };
    const call = (method: string, path: string, more?: unknown) =>
      api.request(method, `/1.1/${path}`, { app: own, headers, ...(more ? { body: more } : {}) });
    const path = `users/${created.body.objectId}`;
    const install = {
      deviceType: 'android',
      installationId: newUid(),
      owner: pointerTo(created.body.objectId),
    };
    await call('POST', 'installations', install);
    const carrying = [
      created,
      await call('POST', 'users', { authData: full(uid) }),
      await call('PUT', `${path}?new=true`, { authData: { gitlab: { uid, ...secrets } } }),
    ];
    const calls = [
      await call('POST', 'login', { username: body.username, password: 'a password' }),
      await call('GET', 'users/me'),
      await call('GET', path),
      await call('GET', `${path}?keys=authData`),
      await call('GET', 'users'),
      await call('GET', `cloudQuery?cql=${encodeURIComponent('select * from _User')}`),
      await call('PUT', `${path}?new=true`, { authData: { huawei: null } }),
      await call('PUT', `${path}/refreshSessionToken`, {}),
    ];
    headers['X-LC-Session'] = String(calls.at(-1)?.body.sessionToken);
    calls.push(
      await call('POST', 'batch', { requests: [{ method: 'GET', path: `/1.1/${path}` }] }),
    );
    for (const { status, body: shownBody } of calls) {
      expect(status, JSON.stringify(shownBody)).toBeLessThan(300);
      expect(JSON.stringify(shownBody)).not.toMatch(/SESAME|_sealed/);
    }
    const replies = carrying.map(({ body: { authData } }) => authData);
    expect(replies).toEqual([
      full(uid),
      full(uid),
      { github: open(uid), gitlab: { uid, ...secrets } },
    ]);
    expect((await call('GET', 'users/me')).body.authData).toEqual({
      github: open(uid),
      gitlab: { uid },
    });
    const master = { app: own, master: true };
    const reads = [
      (await api.request('GET', `/1.1/${path}`, master)).body,
      (await api.request('GET', '/1.1/users', master)).body.results[0],
      (await api.request('GET', '/1.1/scan/classes/_User', master)).body.results[0],
    ];
    for (const read of reads)
      expect(read.authData).toEqual({ ...full(uid), gitlab: { uid, ...secrets } });
  });

  test('are encrypted in the database; rows of older versions when they are written', async () => {
    const uid = newUid();
    const user = await enterWith(api, app, full(uid));
    expect(await stored(user.id)).not.toMatch(/SESAME/);
    await api.db.query(
      'UPDATE app_user SET auth_data = $2, auth_sealed = false WHERE object_id = $1',
      [user.id, JSON.stringify(full(uid))],
    );
    expect((await user.me()).authData).toEqual({ github: open(uid) });
    expect((await enterWith(api, app, { github: { uid, access_token: 'another' } })).id).toBe(
      user.id,
    );
    expect(await stored(user.id)).not.toMatch(/SESAME|5551234567|another/);
    const { body } = await api.request('GET', `/1.1/users/${user.id}`, { app, master: true });
    expect(body.authData).toEqual({ github: { ...full(uid).github, access_token: 'another' } });
  });

  test('cannot be decrypted in another row, nor written by clients encrypted', async () => {
    const [one, two] = [
      await enterWith(api, app, full(newUid())),
      await enterWith(api, app, full(newUid())),
    ];
    await api.db.query(
      `UPDATE app_user SET auth_data = jsonb_set(auth_data, '{github,_sealed}',
         (SELECT auth_data #> '{github,_sealed}' FROM app_user WHERE object_id = $1))
           WHERE object_id = $2`,
      [one.id, two.id],
    );
    const read = await api.request('GET', `/1.1/users/${two.id}`, { app, master: true });
    expect([read.status, JSON.stringify(read.body)]).toEqual([
      200,
      expect.not.stringMatching(/SESAME/),
    ]);
    const uid = newUid();
    const planted = { github: { uid, access_token: 't', _sealed: 'PLANTED' } };
    const user = await enterWith(api, app, planted);
    expect(await stored(user.id)).not.toMatch(/PLANTED/);
    await user.put({ 'authData.gitlab': planted.github });
    expect(await stored(user.id)).not.toMatch(/PLANTED/);
  });

  test('need not be sent back: an entry as it was read changes nothing', async () => {
    const uid = newUid();
    const user = await enterWith(api, app, full(uid));
    const { authData } = await user.me();
    const more = { ...(authData as object), ...weixin() };
    expect((await user.put({ authData: more })).status).toBe(200);
    const { body } = await api.request('GET', `/1.1/users/${user.id}`, { app, master: true });
    expect(body.authData.github).toEqual(full(uid).github);
    expect(refusalOf(await user.put({ authData: { github: { uid: newUid() } } }))).toEqual(
      refused(251),
    );
  });

  test('in older rows are encrypted by a background job, and still match by id', async () => {
    const user = await enterWith(api, app, full('old-row'));
    // Row of an older version: `auth_sealed` is true, and members that the version did not know are
    // in plain text.
    await api.db.query(
      'UPDATE app_user SET auth_data = $2, auth_sealed_whole = false WHERE object_id = $1',
      [user.id, JSON.stringify(full('old-row'))],
    );
    const { secrets: keys } = testConfig(api.databaseUrl);
    const vault = new Vault(keys);
    expect(await sealAuthDataOfOldRows(api.db, vault, 500)).toBe(1);
    expect(await sealAuthDataOfOldRows(api.db, vault, 500)).toBe(0);
    expect(await stored(user.id)).not.toMatch(/SESAME/);
    const { body } = await api.request('GET', `/1.1/users/${user.id}`, { app, master: true });
    expect(body.authData).toEqual(full('old-row'));
    expect((await enterWith(api, app, { github: { uid: 'old-row', access_token: 't' } })).id).toBe(
      user.id,
    );
  });
});
