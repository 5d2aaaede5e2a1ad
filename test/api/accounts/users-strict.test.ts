import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestApi } from '../../support/test-api.ts';
import {
  newName,
  newPhone,
  refusalOf,
  refused,
  signUp,
  type TestUser,
} from '../../support/users.ts';

/** Tests strict queries (protocol/users.md#strict-queries). */
const clock = movableClock(Date.now());
const api = useTestApi({ clock, env: { TRUSTED_PROXIES: '1' } });
const email = 'strict@example.com';
const mobilePhoneNumber = newPhone();
/**
 * `strict` is an app whose clients may only make strict queries. In `open`, clients may also list
 * users.
 */
let strict: App;
let open: App;
let user: TestUser;

beforeAll(async () => {
  strict = await api.createApp({ allowStrictUserQuery: true });
  open = await api.createApp({ allowUserQuery: true });
  for (const app of [strict, open]) {
    user = await signUp(api, app, { email, mobilePhoneNumber, nickname: 'ann', level: 1 });
    await signUp(api, app, { nickname: 'ann', ACL: {} });
  }
});

interface Question {
  app?: App;
  master?: boolean;
  headers?: Record<string, string>;
  path?: string;
}

function ask(query: Record<string, unknown>, { path = 'strictlyQuery', ...more }: Question = {}) {
  const texts = Object.entries(query).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const search = new URLSearchParams(texts);
  return api.request('GET', `/1.1/users${path === '' ? '' : `/${path}`}?${search}`, {
    app: strict,
    ...more,
  });
}

const sub = { className: '_User', where: { level: 1 } };
/** Queries that break a rule for any caller. */
const refusedAlways: [rule: string, query: Record<string, unknown>][] = [
  ['skip', { skip: 1 }],
  ['skip', { skip: '100', where: { nickname: 'ann' } }],
  ['$inQuery', { where: { friend: { $inQuery: sub } } }],
  ['$notInQuery', { where: { friend: { $notInQuery: sub } } }],
  ['$select', { where: { nickname: { $select: { key: 'nickname', query: sub } } } }],
  ['$dontSelect', { where: { nickname: { $dontSelect: { key: 'nickname', query: sub } } } }],
  ['$regex', { where: { nickname: { $regex: '^a' } } }],
  ['$regex of startsWith', { where: { nickname: { $regex: '^\\Qa\\E' } } }],
  ['$regex with options', { where: { username: { $regex: 'a', $options: 'i' } } }],
  ['a pattern within $or', { where: { $or: [{ level: 1 }, { nickname: { $regex: 'a' } }] } }],
  ['a pattern within a list', { where: [{ level: 1 }, { nickname: { $regex: 'a' } }] }],
  ['a subquery within $and', { where: { $and: [{ friend: { $inQuery: sub } }] } }],
  ['authData', { where: { 'authData.github.uid': 'x' } }],
  ['password', { where: { password: 'x' } }],
  ['sessionToken', { where: { sessionToken: 'x' } }],
  ['ACL', { where: { ACL: { $exists: false } } }],
  ['order by authData', { order: 'authData' }],
  ['order by email', { order: 'email' }],
  ['order by number', { order: '-mobilePhoneNumber' }],
  ...['email', 'mobilePhoneNumber'].flatMap((name) =>
    [{ $regex: 'a' }, { $gt: '' }, { $ne: 'x' }, { $in: [email] }, { $exists: true }, null].map(
      (test): [string, Record<string, unknown>] => [
        `${name} ${JSON.stringify(test)}`,
        { where: { [name]: test } },
      ],
    ),
  ),
];

describe('a strict query', () => {
  test.each(refusedAlways)('is refused with %s', async (_, query) => {
    for (const question of [{}, { app: open }, { app: open, master: true }]) {
      const reply = await ask(query, question);
      expect(reply.status).toBe(400);
      expect([102, 105]).toContain(reply.body.code);
      expect(reply.body.error).toMatch(/\w+/);
    }
  });

  test('is answered with allowStrictUserQuery, but a list is not', async () => {
    const where = { nickname: 'ann' };
    const { status, body } = await ask({ where, count: '1' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ count: 1, results: [{ nickname: 'ann', level: 1 }] });
    expect(JSON.stringify(body)).not.toMatch(/sessionToken|authData|"ACL"/);
    expect(refusalOf(await ask({ where }, { path: '' }))).toEqual(refused(403, 403));
    const neither = await api.createApp();
    expect(refusalOf(await ask({ where }, { app: neither }))).toEqual(refused(403, 403));
    expect((await ask({ where }, { app: neither, master: true })).status).toBe(200);
  });

  test('accepts other tests of other members, an order, a limit, and skip 0', async () => {
    for (const where of [
      {},
      { level: { $gt: 0 } },
      { nickname: { $in: ['ann'] } },
      { level: { $exists: true } },
    ])
      for (const more of [
        {},
        { order: '-createdAt', limit: 10, skip: 0 },
        { skip: '0', keys: 'nickname' },
      ])
        expect((await ask({ where, ...more })).body.results, JSON.stringify(where)).toHaveLength(1);
  });

  test('contains an address or number only as a whole, if clients may list users', async () => {
    for (const where of [{ email }, { mobilePhoneNumber }]) {
      const own = await ask({ where });
      expect(refusalOf(own)).toEqual(refused(102));
      expect(own.body.error).toContain(Object.keys(where)[0]);
      expect((await ask({ where }, { app: open })).body.results).toHaveLength(1);
      expect((await ask({ where }, { master: true })).body.results).toHaveLength(1);
      const nested = { $or: [{ level: 5 }, where] };
      expect(refusalOf(await ask({ where: nested }))).toEqual(refused(102));
    }
    expect(user.id).toBe((await ask({ where: { email } }, { app: open })).body.results[0].objectId);
  });

  test('returns at most 100 rows', async () => {
    const app = await api.createApp({ allowStrictUserQuery: true });
    await api.db.query(
      `INSERT INTO app_user (app_id, object_id, username, session_hash, session_nonce)
       SELECT $1, md5('strict' || n), 'many-' || n, sha256(n::text::bytea), sha256(n::text::bytea)
         FROM generate_series(1, 120) n`,
      [app.appId],
    );
    for (const limit of [100, 101, 1000])
      expect((await ask({ limit }, { app })).body.results).toHaveLength(100);
    expect((await ask({ limit: 5, count: 1 }, { app })).body).toMatchObject({ count: 120 });
  });

  test("is limited per network address and hour, except for the app's servers", async () => {
    const app = await api.createApp({
      allowStrictUserQuery: true,
      strictQueriesPerAddressPerHour: 3,
    });
    const from = (address: string, more: Record<string, string> = {}, master = false) =>
      ask(
        { where: { nickname: newName() } },
        { app, master, headers: { 'X-Forwarded-For': address, ...more } },
      );
    for (let i = 0; i < 3; i += 1) expect((await from('192.0.2.1')).status).toBe(200);
    const refusal = await from('192.0.2.1');
    expect(refusalOf(refusal)).toEqual(refused(429, 429));
    expect(Number(refusal.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await from('192.0.2.2')).status).toBe(200);
    expect((await from('192.0.2.1', { 'X-LC-Hook-Key': app.hookKey })).status).toBe(200);
    expect((await from('192.0.2.1', {}, true)).status).toBe(200);
    clock.moveMs(3_600_000);
    expect((await from('192.0.2.1')).status).toBe(200);
  });
});
