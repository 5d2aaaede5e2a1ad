import { beforeAll, describe, expect, test } from 'vitest';
import type { Handle } from '../../../shared/db/pool.ts';
import { compileList, parseListQuery } from '../../../shared/query/list/list.ts';
import { installationClass } from '../../../shared/query/schema.ts';
import { masterViewer } from '../../../shared/query/viewer.ts';
import { openTestDatabase } from '../../support/database.ts';

const reader = masterViewer('app');
const { db } = await openTestDatabase();
const rowCount = 30_000;
beforeAll(async () => {
  await db.query(
    `INSERT INTO installation (app_id, object_id, device_type, device_token, installation_id,
       registration_id, vendor, vendor_name, channels, fields, updated_at)
     SELECT 'app', 'o' || i, CASE WHEN i % 1000 = 0 THEN 'web' ELSE 'android' END, 't' || i,
       'i' || i, 'r' || i, CASE WHEN i % 500 = 0 THEN 'vendor_a' END,
       CASE WHEN i % 500 = 0 THEN 'HMS' END, ARRAY['c' || i % 700],
         jsonb_build_object('uid', i, 'city', 'city' || i % 600, 'user',
       jsonb_build_object('id', 'u' || i), 'owner',
       jsonb_build_object('__type', 'Pointer', 'className', '_User', 'objectId', 'u' || i)),
       now() - i * interval '1 minute'
     FROM generate_series(1, $1::int) AS i`,
    [rowCount],
  );
  await db.query('VACUUM ANALYZE installation');
});

function plan(where: unknown, handle: Handle = db): Promise<string> {
  const selection = compileList(
    parseListQuery({ where }, installationClass, reader),
    installationClass,
    reader,
  );
  return handle
    .query<{ 'QUERY PLAN': string }>(
      `EXPLAIN SELECT id FROM installation WHERE app_id = $1 AND ${selection.condition}`,
      selection.values,
    )
    .then(({ rows }) => rows.map((row) => row['QUERY PLAN']).join('\n'));
}

describe('compileWhere lets PostgreSQL use its index', () => {
  const cases: [string, unknown, string][] = [
    ['a number of a custom member', { uid: 5 }, 'installation_fields'],
    ['a negative number', { uid: -5 }, 'installation_fields'],
    ['a text of a custom member', { city: 'city5' }, 'installation_fields'],
    ['a member within', { 'user.id': 'u5' }, 'installation_fields'],
    ['$in on a custom member', { uid: { $in: [1, 2, 3] } }, 'installation_fields'],
    ['an object', { user: { id: 'u5' } }, 'installation_fields'],
    [
      'a pointer',
      { owner: { __type: 'Pointer', className: '_User', objectId: 'u5' } },
      'installation_fields',
    ],
    ['$all on a custom member', { city: { $all: ['city5'] } }, 'installation_fields'],
    ['either of two', { $or: [{ uid: 5 }, { channels: 'c5' }] }, 'installation_fields'],
    ['a channel', { channels: 'c5' }, 'installation_channels'],
    ['$in of channels', { channels: { $in: ['c5', 'c6'] } }, 'installation_channels'],
    ['$all of channels', { channels: { $all: ['c5', 'c6'] } }, 'installation_channels'],
    ['deviceType', { deviceType: 'web' }, 'installation_device_type'],
    [
      'vendor with deviceType',
      { deviceType: 'android', vendor: 'HMS' },
      'installation_device_type',
    ],
    ['vendor', { vendor: 'HMS' }, 'installation_device_type'],
    ['installationId', { installationId: 'i5' }, 'installation_installation_id'],
    ['deviceToken', { deviceToken: { $in: ['t5', 't6'] } }, 'installation_device_token'],
    ['registrationId', { registrationId: 'r5' }, 'installation_registration_id'],
    ['objectId', { objectId: { $in: ['o5', 'o6'] } }, 'installation_object_id'],
  ];
  test.each(cases)('for %s', async (_name, where, index) => {
    expect(await plan(where)).toContain(index);
  });
});

describe('a sub-query', () => {
  test.each([
    ['$inQuery', { owner: { $inQuery: { where: { city: 'x' } } } }],
    ['$notInQuery', { owner: { $notInQuery: { where: { city: 'x' }, limit: 1000 } } }],
    [
      '$select',
      { city: { $select: { key: 'username', query: { className: '_User', where: {} } } } },
    ],
  ])('%s runs once, with a hash lookup', async (_name, where) => {
    expect(await plan(where)).toContain('hashed SubPlan');
  });
});

describe('compileWhere avoids the index on custom members for conditions without a lookup', () => {
  /** Returns the plan for a table without other indexes and with sequential scans disabled. */
  function eagerPlan(where: unknown): Promise<string> {
    return db.transaction(async (tx) => {
      await tx.query('SET LOCAL enable_seqscan = off');
      await tx.query('CREATE TEMP TABLE installation (LIKE public.installation) ON COMMIT DROP');
      await tx.query('CREATE INDEX only_fields ON installation USING gin (fields jsonb_path_ops)');
      return plan(where, tx);
    });
  }

  test.each([
    ['a comparison of numbers', { uid: { $gt: 5 } }],
    ['a range', { uid: { $gte: 5, $lt: 6 } }],
    ['a comparison of texts', { city: { $lt: 'a' } }],
    ['a member within', { 'user.age': { $gt: 5 } }],
    ['$exists', { nothing: { $exists: true } }],
    ['$exists: false', { uid: { $exists: false } }],
    ['$ne', { uid: { $ne: 5 } }],
    ['$regex', { city: { $regex: '^a' } }],
    ['a comparison or an equality', { $or: [{ uid: { $gt: 5 } }, { uid: 5 }] }],
  ])('for %s', async (_name, where) => {
    expect(await eagerPlan(where)).not.toContain('only_fields');
  });

  test.each([
    ['an equality', { uid: 5 }],
    ['an equality beside a comparison', { uid: { $gt: 3 }, city: 'city5' }],
    // The index can find the rows that have a date in this member.
    [
      'a comparison of dates',
      { seenAt: { $lt: { __type: 'Date', iso: '2030-01-01T00:00:00.000Z' } } },
    ],
  ])('but not for %s', async (_name, where) => {
    expect(await eagerPlan(where)).toContain('only_fields');
  });
});
