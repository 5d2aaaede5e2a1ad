import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../shared/db/pool.ts';
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import { canonicalVendor } from '../../shared/domain/labels.ts';
import { installationClass } from '../../shared/query/classes.ts';
import { compileWhere } from '../../shared/query/compile.ts';
import { Params } from '../../shared/query/params.ts';
import { parseWhere } from '../../shared/query/parse.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { matches } from '../support/where-evaluator.ts';

/** Few names and values, so that documents and conditions meet often. */
const names = ['a', 'b', 'c', 'constructor', 'toString'];
const texts = ['', 'x', 'X', 'xy', 'y\nx', 'é', '中', '😀', '"', '\\', "'", '$', '%', '@', 'null', '\u0001'];
const dates = ['2020-01-01T00:00:00.000Z', '2021-06-01T12:00:00.500Z', '1999-12-31T23:59:59.999Z'];
const text = fc.oneof(fc.constantFrom(...texts), fc.string({ unit: 'binary', maxLength: 3 }).map(storable));
const number = fc.oneof(
  fc.integer({ min: -2, max: 3 }),
  fc.constantFrom(0.5, -1.25, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 9_007_199_254_740_992),
);
const date = fc.constantFrom(...dates).map((iso): Json => ({ __type: 'Date', iso }));
const pointer = fc
  .constantFrom('p1', 'p2')
  .map((objectId): Json => ({ __type: 'Pointer', className: '_User', objectId }));
const scalar: fc.Arbitrary<Json> = fc.oneof(fc.constant(null), fc.boolean(), number, text, date, pointer);
const { value } = fc.letrec<{ value: Json; list: Json[]; object: JsonObject }>((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, { arbitrary: scalar, weight: 5 }, tie('list'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 3 }),
  object: fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 3 }).map((o) => ({ ...o })),
}));

/** NUL cannot be stored, and is refused before it gets here. */
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
const test1: fc.Arbitrary<Json> = fc.oneof(
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

const customMember = fc.tuple(member, test1);
const vendorName = fc.constantFrom('HMS', 'hms', 'vendor_a', 'mi', 'MI', 'oppo');
const columnText = fc.constantFrom('ios', 'android', 'x', 'IOS', '', 'X\ny');
const channel = fc.constantFrom('', 'news', 'sport', '中');
const someOf = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** A document with columns as the public service shows it, beside custom members. */
const document = fc.record({
  deviceType: columnText,
  timeZone: someOf(columnText),
  channels: someOf(fc.uniqueArray(channel, { maxLength: 3 })),
  valid: fc.boolean(),
  badge: someOf(fc.integer({ min: -1, max: 3 })),
  updatedAt: fc.constantFrom(...dates),
  fields: fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 4 }).map((o): JsonObject => ({ ...o })),
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
const ordered = <T>(one: fc.Arbitrary<T>) => fc.oneof(fc.record({ $gte: one }), fc.record({ $lt: one }));
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

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = new Database({ url: database.url, applicationName: 'test' });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

type Document = typeof document extends fc.Arbitrary<infer D> ? D : never;

/** The document as a client sees it: absent members are absent. */
function shown({ fields, updatedAt, ...columns }: Document): JsonObject {
  const whole = { ...fields, ...columns, updatedAt: { __type: 'Date', iso: updatedAt } };
  return JSON.parse(JSON.stringify(whole));
}

/** One statement per document and condition: a row that exists nowhere but in this query. */
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
  const sql = compileWhere(parseWhere(where, installationClass), installationClass, params);
  const { rows } = await db.query<{ is_match: boolean }>(
    `SELECT (${sql}) IS TRUE AS is_match FROM (SELECT $1::text AS device_type, $2::text AS time_zone,
      $3::text[] AS channels, $4::boolean AS valid, $5::integer AS badge, $6::timestamptz AS updated_at,
      $7::jsonb AS fields) AS installation`,
    params.values,
  );
  return rows[0]?.is_match ?? false;
}

describe('compileWhere', () => {
  test('finds what the plain evaluator finds, on random documents and conditions', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(document, { minLength: 1, maxLength: 4 }), condition, async (docs, where) => {
        const json: Json = JSON.parse(JSON.stringify(where));
        const found = await Promise.all(docs.map((doc) => sqlMatches(doc, json)));
        expect(found).toEqual(docs.map((doc) => matches(shown(doc), json)));
      }),
      { numRuns: 1500 },
    );
  }, 120_000);

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
        compileWhere(parseWhere({ vendor: spelling }, installationClass), installationClass, params);
        expect(params.values).toEqual([canonicalVendor(spelling)]);
      }),
    );
  });
});
