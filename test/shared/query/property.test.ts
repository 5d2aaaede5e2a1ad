import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import { canonicalVendor } from '../../../shared/domain/labels.ts';
import { parseWhere } from '../../../shared/query/parse/where.ts';
import { installationClass } from '../../../shared/query/schema.ts';
import { Params } from '../../../shared/query/sql/params.ts';
import { compileWhere } from '../../../shared/query/sql/where.ts';
import { masterViewer } from '../../../shared/query/viewer.ts';
import { openTestDatabase } from '../../support/database.ts';
import { matches } from './where-evaluator.ts';

const reader = masterViewer('app');
/** Few names and values, so that conditions often match documents. */
const names = ['a', 'b', 'c', 'constructor', 'toString'];
const texts = [
  '',
  'x',
  'X',
  'xy',
  'y\nx',
  'é',
  '中',
  '😀',
  '"',
  '\\',
  "'",
  '$',
  '%',
  '@',
  'null',
  '\u0001',
];
const dates = ['2020-01-01T00:00:00.000Z', '2021-06-01T12:00:00.500Z', '1999-12-31T23:59:59.999Z'];
const text = fc.oneof(
  fc.constantFrom(...texts),
  fc.string({ unit: 'binary', maxLength: 3 }).map(storable),
);
const number = fc.oneof(
  fc.integer({ min: -2, max: 3 }),
  fc.constantFrom(0.5, -1.25, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 9_007_199_254_740_992),
);
const date = fc.constantFrom(...dates).map((iso): Json => ({ __type: 'Date', iso }));
const pointer = fc
  .constantFrom('p1', 'p2', 'i1')
  .map((objectId): Json => ({ __type: 'Pointer', className: '_User', objectId }));
const bytes = fc.constantFrom('AA==', '/+8=').map((base64): Json => ({ __type: 'Bytes', base64 }));
/** Points that are so far apart that no distance equals a limit. */
const point = fc
  .constantFrom([0, 0], [0, 179.5], [10, -179.5], [89, 10], [-45, 100])
  .map(([latitude = 0, longitude = 0]): Json => ({ __type: 'GeoPoint', latitude, longitude }));
const scalar: fc.Arbitrary<Json> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  number,
  text,
  date,
  pointer,
  bytes,
  point,
);
const { value } = fc.letrec<{ value: Json; list: Json[]; object: JsonObject }>((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, { arbitrary: scalar, weight: 5 }, tie('list'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 3 }),
  object: fc
    .dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 3 })
    .map((o) => ({ ...o })),
}));

/** Removes NUL, which PostgreSQL cannot store and the parser refuses. */
function storable(given: string): string {
  return given.replaceAll('\0', '').toWellFormed();
}

const member = fc.constantFrom(...names, 'a.b', 'b.c', 'a.b.c', 'c.constructor');
const scalarOrder = fc.oneof(number, text, fc.boolean(), date);
const pattern = fc.constantFrom(
  'x',
  '^x',
  'y$',
  '^.x',
  'x.',
  '[^x]',
  '\\Q$\\E',
  '\\\\',
  'x|é',
  '^\\Qx\\E$',
  '(?:x|y){2}',
  '[\\s\\S]x',
  '\\bx',
  '^$',
);
const geoTests: Record<string, fc.Arbitrary<Json>> = {
  $nearSphere: fc.record(
    {
      $nearSphere: point,
      $maxDistanceInKilometers: fc.constantFrom(50, 2500, 12_000),
      $minDistance: fc.constantFrom(0.3, 2.2),
    },
    { requiredKeys: ['$nearSphere'] },
  ),
  $within: fc.record({ $within: fc.record({ $box: fc.tuple(point, point) }) }),
};
const selectedKey = fc.constantFrom(
  // `a` and `username` occur several times, because most values have these names.
  'a',
  'username',
  'username',
  'a',
  'b',
  'a.b',
  'username',
  'createdAt',
  'emailVerified',
);
/** Conditions of sub-queries. Some contain another sub-query. */
const innerWhere: fc.Arbitrary<Json> = fc.oneof(
  { arbitrary: fc.constant({}), weight: 4 },
  fc.record({ a: value }),
  fc.record({ username: fc.constantFrom('u1', 'u3') }),
  fc.record({ b: fc.record({ $exists: fc.boolean() }) }),
  fc.record({
    c: fc.record({
      $inQuery: fc.record({ where: fc.record({ b: fc.record({ $exists: fc.boolean() }) }) }),
    }),
  }),
);
const query = fc
  .record(
    {
      className: fc.constantFrom('_User', '_Installation'),
      where: innerWhere,
      limit: fc.integer({ min: 1, max: 3 }),
      skip: fc.integer({ min: 0, max: 2 }),
      order: fc.constantFrom('username', '-username'),
    },
    { requiredKeys: ['where'] },
  )
  // Installations have no username to sort by.
  .map(({ order, ...rest }) =>
    order && rest.className !== '_Installation' ? { ...rest, order } : rest,
  );
const select = fc.record({
  key: selectedKey,
  query: query.map((one) => ({ className: '_User', ...one })),
});
const subqueries: Record<string, fc.Arbitrary<Json>> = {
  $inQuery: query.map((one): Json => ({ $inQuery: one })),
  $notInQuery: query.map((one): Json => ({ $notInQuery: one })),
  $select: select.map((one): Json => ({ $select: one })),
  $dontSelect: select.map((one): Json => ({ $dontSelect: one })),
};
const memberTest: fc.Arbitrary<Json> = fc.oneof(
  ...Object.values(geoTests),
  ...Object.values(subqueries),
  value,
  fc.record({ $ne: value }),
  fc.record({ $in: fc.array(value, { maxLength: 3 }) }),
  fc.record({ $nin: fc.array(value, { maxLength: 3 }) }),
  fc.record({ $all: fc.array(value, { maxLength: 2 }) }),
  fc.record({ $size: fc.integer({ min: 0, max: 3 }) }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $regex: pattern, $options: fc.constantFrom('', 'i', 'm', 's', 'im') }),
  fc
    .record({ $gte: scalarOrder, $lt: scalarOrder }, { requiredKeys: [] })
    .filter((o) => Object.keys(o).length > 0),
  fc.record({ $gt: scalarOrder }),
  fc.record({ $lte: scalarOrder, $ne: value }),
);

const customMember = fc.tuple(member, memberTest);
const vendorName = fc.constantFrom('HMS', 'hms', 'vendor_a', 'mi', 'MI', 'oppo');
const columnText = fc.constantFrom('ios', 'android', 'x', 'IOS', '', 'X\ny');
const channel = fc.constantFrom('', 'news', 'sport', '中');
const someOf = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Document with columns and custom members, as LeanCloud returns it. */
const document = fc.record({
  deviceType: columnText,
  timeZone: someOf(columnText),
  channels: someOf(fc.uniqueArray(channel, { maxLength: 3 })),
  valid: fc.boolean(),
  badge: someOf(fc.integer({ min: -1, max: 3 })),
  updatedAt: fc.constantFrom(...dates),
  fields: fc
    .dictionary(fc.constantFrom(...names), value, { maxKeys: 4 })
    .map((o): JsonObject => ({ ...o })),
});

const operators = <T>(one: fc.Arbitrary<T>) =>
  fc.oneof(
    one,
    fc.record({ $ne: one }),
    fc.record({ $in: fc.array(one, { maxLength: 3 }) }),
    fc.record({ $nin: fc.array(one, { maxLength: 3 }) }),
    fc.record({ $all: fc.array(one, { maxLength: 2 }) }),
    fc.record({ $exists: fc.boolean() }),
    fc.record({ $size: fc.integer({ min: 0, max: 2 }) }),
  );
const ordered = <T>(one: fc.Arbitrary<T>) =>
  fc.oneof(fc.record({ $gte: one }), fc.record({ $lt: one }));
const nullOr = <T>(one: fc.Arbitrary<T>) =>
  fc.oneof(
    one,
    fc.constant(null),
    scalar.filter((v) => v === null || typeof v !== 'object'),
  );
const columnMember: fc.Arbitrary<[string, unknown]> = fc.oneof(
  fc.tuple(
    fc.constantFrom('deviceType', 'timeZone'),
    fc.oneof(
      operators(nullOr(columnText)),
      ordered(fc.oneof(columnText, fc.integer())),
      fc.record({ $regex: pattern }),
    ),
  ),
  fc.tuple(
    fc.constant('channels'),
    fc.oneof(
      operators(fc.oneof(nullOr(channel), fc.array(channel, { maxLength: 2 }))),
      ordered(channel),
      fc.record({ $regex: fc.constantFrom('^n', 'o', '中') }),
    ),
  ),
  fc.tuple(fc.constant('valid'), operators(nullOr(fc.boolean()))),
  fc.tuple(fc.constant('badge'), fc.oneof(operators(nullOr(number)), ordered(number))),
  fc.tuple(fc.constant('updatedAt'), fc.oneof(operators(date), ordered(date))),
);

const condition = fc.letrec<{ part: unknown; all: unknown }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 2 },
    fc
      .array(fc.oneof(customMember, columnMember), { maxLength: 3 })
      .map((members) => Object.fromEntries(members)),
    fc.record({ $or: fc.array(tie('part'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ $and: fc.array(tie('part'), { minLength: 1, maxLength: 3 }) }),
  ),
  all: fc.oneof(tie('part'), fc.array(tie('part'), { maxLength: 2 })),
})).all;

const iso = (text: string): Json => ({ __type: 'Date', iso: text });
const pointerTo = (className: string, objectId: string): Json => ({
  __type: 'Pointer',
  className,
  objectId,
});

/** Rows for sub-queries, in order of creation. */
const users: JsonObject[] = [
  { objectId: 'p1', username: 'u3', a: 'x', b: [1, 'x'], c: pointerTo('_User', 'p2') },
  { objectId: 'p2', username: 'u1', a: null, b: { c: 2 }, emailVerified: true },
  {
    objectId: 'p3',
    username: 'u5',
    a: 1,
    c: [pointerTo('_User', 'p1'), pointerTo('_Installation', 'i1')],
  },
  { objectId: 'p4', username: 'u2', a: { b: 'xy' }, emailVerified: false },
];
const installations: JsonObject[] = [
  { objectId: 'i1', a: [1, 2], b: pointerTo('_User', 'p1') },
  { objectId: 'i2', a: { b: 0.5 }, username: 'x' },
];
const rowsByClass = Object.fromEntries(
  Object.entries({ _User: users, _Installation: installations }).map(([name, rows]) => [
    name,
    rows.map((row) => ({ ...row, createdAt: iso(dates[1] ?? '') })),
  ]),
);

const { db } = await openTestDatabase();
beforeAll(async () => {
  await db.query('ALTER TABLE app_user DROP CONSTRAINT app_user_app_id_fkey');
  for (const { objectId, username, emailVerified, ...fields } of users)
    await addUser('app', { objectId, username, emailVerified, fields });
  // No query may return rows of another app, even if the ids are the same.
  await addUser('other', {
    objectId: 'p1',
    username: 'u1',
    emailVerified: true,
    fields: { a: 2, b: 3 },
  });
  for (const { objectId, ...fields } of installations)
    await db.query(
      `INSERT INTO installation (app_id, object_id, device_type, fields, created_at)
        VALUES ('app', $1, 'web', $2, $3)`,
      [objectId, JSON.stringify(fields), dates[1]],
    );
});

interface UserRow {
  objectId: Json | undefined;
  username: Json | undefined;
  emailVerified: Json | undefined;
  fields: JsonObject;
}

function addUser(
  appId: string,
  { objectId, username, emailVerified, fields }: UserRow,
): Promise<unknown> {
  return db.query(
    `INSERT INTO app_user (app_id, object_id, username, email_verified, fields, created_at,
      session_nonce, session_hash)
     VALUES ($1, $2, $3, $4, $5, $6, '', $7)`,
    [
      appId,
      objectId,
      username,
      emailVerified ?? null,
      JSON.stringify(fields),
      dates[1],
      Buffer.from(`${appId}${objectId}`),
    ],
  );
}

/** Columns of a document that no condition uses. */
const plain: Omit<Document, 'fields'> = {
  deviceType: 'x',
  timeZone: undefined,
  channels: undefined,
  valid: true,
  badge: undefined,
  updatedAt: dates[0] ?? '',
};

type Document = typeof document extends fc.Arbitrary<infer D> ? D : never;

/** Returns the document as a client gets it, without missing members. */
function asClientSees({ fields, updatedAt, ...columns }: Document): JsonObject {
  const whole = { ...fields, ...columns, updatedAt: { __type: 'Date', iso: updatedAt } };
  return JSON.parse(JSON.stringify(whole));
}

/** Evaluates a condition in SQL on a row that exists only in this statement. */
async function sqlMatches(doc: Document, where: unknown): Promise<boolean> {
  const params = new Params([
    doc.deviceType,
    doc.timeZone ?? null,
    doc.channels ?? null,
    doc.valid,
    doc.badge ?? null,
    doc.updatedAt,
    JSON.stringify(doc.fields),
  ]);
  const sql = compileWhere(parseWhere(where, installationClass, reader), installationClass, params);
  const { rows } = await db.query<{ is_match: boolean }>(
    `SELECT (${sql}) IS TRUE AS is_match FROM (SELECT $1::text AS device_type,
      $2::text AS time_zone, $3::text[] AS channels, $4::boolean AS valid, $5::integer AS badge,
      $6::timestamptz AS updated_at, $7::jsonb AS fields) AS installation`,
    params.values,
  );
  return rows[0]?.is_match ?? false;
}

describe('compileWhere', () => {
  test('finds the same documents as the reference evaluator', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(document, { minLength: 1, maxLength: 4 }),
        condition,
        async (docs, where) => {
          const text = JSON.stringify(where);
          // The parser refuses more than five sub-queries.
          fc.pre((text.match(/Query"|[sS]elect"/g) ?? []).length <= 5);
          const json: Json = JSON.parse(text);
          const found = await Promise.all(docs.map((doc) => sqlMatches(doc, json)));
          expect(found).toEqual(docs.map((doc) => matches(asClientSees(doc), json, rowsByClass)));
        },
      ),
      { numRuns: 1500 },
    );
  }, 120_000);

  /** Returns documents with values of one kind, and a path that usually leads to these values. */
  const docsOf = (one: fc.Arbitrary<Json>): fc.Arbitrary<{ fields: JsonObject; name: string }> =>
    fc.oneof(
      one.map((a) => ({ fields: { a }, name: 'a' })),
      fc.array(one, { maxLength: 3 }).map((a) => ({ fields: { a }, name: 'a' })),
      one.map((b) => ({ fields: { a: { b } }, name: 'a.b' })),
      one.map((b) => ({ fields: { a: [{ b }, 1, { b }] }, name: 'a.b' })),
      fc.constant({ fields: {}, name: 'a' }),
    );
  const pointers = fc.constantFrom('p1', 'p2', 'p3', 'p4').map((id) => pointerTo('_User', id));
  const selectable = fc.constantFrom<Json[]>(
    'u1',
    'u2',
    'u3',
    'u5',
    'x',
    'xy',
    1,
    true,
    iso(dates[1] ?? ''),
  );
  /** Returns the values that documents for an operator contain, in addition to other values. */
  const kindFor = (name: string): fc.Arbitrary<Json> => {
    if (Object.hasOwn(geoTests, name)) return point;
    if (/Query$/.test(name)) return pointers;
    if (/elect$/.test(name)) return selectable;
    if (name === '$regex') return fc.constantFrom('x', 'xy', 'X', '$', 'yy', '');
    return /^\$[lg]te?$/.test(name)
      ? fc.oneof(number, date)
      : fc.constantFrom<Json[]>(0, 1, '', 'x', true, null);
  };
  const operators: Record<string, fc.Arbitrary<Json>> = {
    equality: scalar,
    $ne: fc.record({ $ne: scalar }),
    $in: fc.record({ $in: fc.array(scalar, { maxLength: 4 }) }),
    $nin: fc.record({ $nin: fc.array(scalar, { maxLength: 4 }) }),
    $all: fc.record({ $all: fc.array(scalar, { minLength: 1, maxLength: 2 }) }),
    $size: fc.record({ $size: fc.integer({ min: 0, max: 2 }) }),
    $exists: fc.record({ $exists: fc.boolean() }),
    $regex: fc.record({ $regex: pattern, $options: fc.constantFrom('', 'i', 'm') }),
    $lt: fc.record({ $lt: scalarOrder }),
    $lte: fc.record({ $lte: scalarOrder }),
    $gt: fc.record({ $gt: scalarOrder }),
    $gte: fc.record({ $gte: scalarOrder }),
    ...geoTests,
    ...subqueries,
  };
  test.each(Object.entries(operators))(
    '%s has the result of the reference evaluator, match or no match',
    async (operator, one) => {
      const answers = { yes: 0, no: 0 };
      const docs = docsOf(fc.oneof({ arbitrary: kindFor(operator), weight: 3 }, scalar));
      await fc.assert(
        fc.asyncProperty(docs, one, async ({ fields, name }, operand) => {
          const doc: Document = { ...plain, fields: JSON.parse(JSON.stringify(fields)) };
          const expected = matches(asClientSees(doc), { [name]: operand }, rowsByClass);
          answers[expected ? 'yes' : 'no'] += 1;
          expect(await sqlMatches(doc, { [name]: operand })).toBe(expected);
        }),
        { numRuns: Object.hasOwn(subqueries, operator) ? 700 : 400 },
      );
      expect(Math.min(answers.yes, answers.no)).toBeGreaterThan(0);
    },
  );

  test('finds a document by each of its own members', async () => {
    await fc.assert(
      fc.asyncProperty(document, fc.constantFrom(...names), async (doc, name) => {
        const own = Object.hasOwn(doc.fields, name) ? doc.fields[name] : null;
        expect(await sqlMatches(doc, { [name]: own })).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('finds a vendor under every spelling', () => {
    fc.assert(
      fc.property(vendorName, (spelling) => {
        const params = new Params();
        compileWhere(
          parseWhere({ vendor: spelling }, installationClass, reader),
          installationClass,
          params,
        );
        expect(params.values).toEqual([canonicalVendor(spelling)]);
      }),
    );
  });
});
