import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { App } from '../../shared/domain/app.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { signUp, type TestUser } from '../support/users.ts';

let database: TestDatabase;
let api: TestApi;
let app: App;
let user: TestUser;
beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
  app = await api.createApp({ allowUserQuery: true });
  user = await signUp(api, app);
});
afterAll(async () => {
  await api.close();
  await database.drop();
});

/** Names that mean something to us, to JavaScript, to SQL or to JSON paths. */
const name = fc.oneof(
  fc.constantFrom(
    ...[
      'username',
      'email',
      'mobilePhoneNumber',
      'authData',
      'authData.github',
      'authData.a.b',
      'ACL',
      'objectId',
    ],
    ...[
      'sessionToken',
      'emailVerified',
      'createdAt',
      'fields',
      'app_id',
      'className',
      '__proto__',
      'constructor',
    ],
    ...[
      'prototype',
      'toString',
      '__op',
      '__type',
      '$where',
      '$or',
      'a.b',
      'a.0',
      'a..b',
      '.',
      '',
      '_session_hash',
    ],
    ...['a"b', "a'b", 'a\\', 'a::text', "x'->>'y", 'a\u0000', '\ud800', 'é', 'a b', 'x'.repeat(300)],
  ),
  fc.string({ maxLength: 8, unit: 'binary' }),
);
const leaf = fc.oneof(
  fc.constantFrom(null, true, '', ' ', '\u0000', '\ud800', "'; --", 'x', 'a@b.cn', 0, -1, 1e308, 2 ** 53, []),
  fc.string({ maxLength: 8, unit: 'binary' }),
  fc.integer(),
);
const operation = fc.record({
  __op: fc.constantFrom(
    'Delete',
    'Increment',
    'Add',
    'AddUnique',
    'Remove',
    'BitOr',
    'Batch',
    'AddRelation',
    5,
  ),
  amount: leaf,
  objects: leaf,
  value: leaf,
  ops: leaf,
});
const typed = fc.record({
  __type: fc.constantFrom('Date', 'Pointer', 'GeoPoint', 'Bytes', 'File', 'Relation', 'constructor', 7),
  iso: leaf,
  className: leaf,
  objectId: leaf,
});
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    operation,
    typed,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 3 }).map(Object.fromEntries),
    fc.record({ $ne: leaf, $regex: leaf, $in: leaf }, { requiredKeys: [] }),
    fc.record({ uid: leaf, access_token: leaf, unionid: leaf, platform: leaf }, { requiredKeys: [] }),
  ),
}));
const members = fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 5 }).map(Object.fromEntries);

test('whatever a client sends, it gets an answer, and never one of ours that broke', async () => {
  const answers = async (body: object) => {
    const text = encodeURIComponent(JSON.stringify(body));
    const [first = ''] = Object.keys(body);
    const calls: [string, string, unknown][] = [
      ['POST', '/1.1/users', body],
      ['POST', '/1.1/users', { authData: body }],
      ['POST', '/1.1/users', { ...body, username: 'x', password: '' }],
      ['POST', '/1.1/login', { ...body, password: [] }],
      ['PUT', `/1.1/users/${user.id}`, body],
      ['PUT', `/1.1/users/${user.id}`, { authData: body }],
      ['PUT', `/1.1/users/${user.id}?where=${text}`, { a: 1 }],
      ['PUT', `/1.1/users/${user.id}/updatePassword`, { ...body, old_password: 5 }],
      ['GET', `/1.1/users?where=${text}`, undefined],
      ['GET', `/1.1/users/strictlyQuery?where=${text}`, undefined],
    ];
    if (first.isWellFormed()) {
      const word = encodeURIComponent(first);
      calls.push(['GET', `/1.1/users?order=${word}&keys=${word}&limit=${word}`, undefined]);
      calls.push(['GET', `/1.1/users/me?session_token=${word}`, undefined]);
    }
    for (const [method, path, sent] of calls) {
      const reply = await user.request(method, path, sent);
      const isSound = reply.status < 400 || typeof reply.body.error === 'string';
      expect([method, path, sent, reply.status, isSound]).toEqual([
        method,
        path,
        sent,
        expect.any(Number),
        true,
      ]);
      expect(reply.status).toBeLessThan(500);
    }
  };
  await fc.assert(fc.asyncProperty(members, answers), { numRuns: 60 });
  expect((await user.request('GET', '/1.1/users/me')).status).toBe(200);
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
});
