import { beforeAll, describe, expect, test } from 'vitest';
import { compileList, parseListQuery } from '../../../shared/query/list/list.ts';
import { type ClassSchema, roleClass, userClass } from '../../../shared/query/schema.ts';
import { openTestDatabase } from '../../support/database.ts';
import { pointerTo } from '../../support/roles.ts';

/** Checks query plans of conditions on roles, with many roles of two apps. */
const { db } = await openTestDatabase();
beforeAll(async () => {
  await db.query(
    `INSERT INTO app (app_id, name, edition, plan, secrets)
     SELECT name, name, 'home', 'commercial', '' FROM unnest(ARRAY['app', 'other']) AS name`,
  );
  await db.query(
    `INSERT INTO role (app_id, object_id, name, acl)
     SELECT app_id, 'r' || i, 'r' || i, jsonb_build_object('role:x' || i % 50,
       jsonb_build_object('read', true))
       FROM app, generate_series(1, 2000) AS i`,
  );
  await db.query(
    `INSERT INTO app_user (app_id, object_id, username, session_nonce, session_hash)
     SELECT app_id, 'u' || i, 'u' || i, decode(md5(i::text), 'hex'), decode(md5(i::text), 'hex')
       FROM app, generate_series(1, 5000) AS i`,
  );
  await db.query(
    `INSERT INTO role_user SELECT r.app_id, r.id, u.id FROM role r JOIN app_user u USING (app_id)
      WHERE (r.id + u.id) % 250 = 0`,
  );
  for (const table of ['role', 'role_user', 'app_user']) await db.query(`VACUUM ANALYZE ${table}`);
});

function sqlOf(where: object, { cls, subjects }: { cls: ClassSchema; subjects?: string[] }) {
  const reader = { appId: 'app', classes: new Set(['_User', '_Role']), subjects };
  const { condition, values } = compileList(parseListQuery({ where }, cls, reader), cls, reader);
  return { text: `SELECT id FROM ${cls.table} WHERE app_id = $1 AND ${condition}`, values };
}

async function planOf(where: object, cls: ClassSchema): Promise<string> {
  const { text, values } = sqlOf(where, { cls });
  const { rows } = await db.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, values);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

describe('PostgreSQL uses indexes, and reads rows of one app only,', () => {
  const user = pointerTo('_User', 'u77');
  const related = { object: pointerTo('_Role', 'r5'), key: 'users' };
  const cases: [string, object, ClassSchema, string[]][] = [
    [
      'for the roles of a user',
      { users: user },
      roleClass,
      ['app_user_object_id', 'role_user_user'],
    ],
    [
      'for them or other roles',
      { $or: [{ users: user }, { name: 'r1' }] },
      roleClass,
      ['app_user_object_id', 'role_user'],
    ],
    [
      'for the members of a role',
      { $relatedTo: related },
      userClass,
      ['role_object_id', 'role_user_pkey'],
    ],
  ];
  test.each(cases)('%s', async (_name, where, cls, indexes) => {
    const plan = await planOf(where, cls);
    for (const index of indexes) expect(plan).toContain(index);
    expect(plan).not.toMatch(/Seq Scan on (role_user|app_user)/);
    const conditions = plan.split('\n').filter((line) => line.includes('Index Cond'));
    const ofPairs = conditions.filter((line) => !/role_id = |user_id = /.test(line));
    for (const condition of ofPairs) expect(condition).toContain("app_id = 'app'");
  });
});

test('a user with a thousand roles sees the objects of one of them', async () => {
  const roles = Array.from({ length: 999 }, (_, i) => `role:y${i}`);
  const { text, values } = sqlOf(
    {},
    { cls: roleClass, subjects: ['me', '*', ...roles, 'role:x7'] },
  );
  expect((await db.query(text, values)).rows).toHaveLength(40);
});
