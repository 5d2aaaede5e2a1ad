import fc from 'fast-check';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Database, isInvalidValue } from '../../shared/db/pool.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { parseCql } from '../../shared/query/cql/select.ts';
import { compileList, parseListQuery } from '../../shared/query/list/list.ts';
import { classes, installationClass, roleClass, userClass } from '../../shared/query/schema/classes.ts';
import type { ClassSchema } from '../../shared/query/schema/fields.ts';
import { masterViewer, type Viewer } from '../../shared/query/viewer.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { queryMembers } from './generators/bodies.ts';
import { where } from './generators/conditions.ts';
import { cql, placeholders } from './generators/statements.ts';
import { dictionaryOf } from './generators/values.ts';
import { fuzz } from './runs.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = new Database({ url: database.url, applicationName: 'fuzz', statementTimeoutMs: 10_000 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const reader: Viewer = masterViewer('app');

/** Names of columns and tables may come from our own lists only: everything else is a parameter. */
async function run(query: Record<string, unknown>, cls: ClassSchema): Promise<void> {
  const { condition, orderBy, values, limit, skip } = compileList(
    parseListQuery(query, cls, reader),
    cls,
    reader,
  );
  await db.query(
    `SELECT 1 FROM ${cls.table} WHERE app_id = $1 AND (${condition}) ORDER BY ${orderBy} LIMIT ${limit} OFFSET ${skip}`,
    values,
  );
}

/** Refusals are what a caller is told; values that PostgreSQL cannot hold are told likewise (111). */
async function toRefusal(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof Refusal && error.status < 500) return;
    if (!isInvalidValue(error)) throw error;
  }
}

const asSent = (given: unknown) => (typeof given === 'string' ? given : JSON.stringify(given));
const cls = fc.constantFrom(userClass, installationClass, roleClass);

describe('queries', () => {
  test('with any where are SQL that PostgreSQL takes, or a refusal', async () => {
    await fuzz(
      fc.asyncProperty(where, cls, (condition, on) => toRefusal(() => run({ where: asSent(condition) }, on))),
      { cases: 700 },
    );
  }, 600_000);

  test('with any where, order, keys, include, limit and skip likewise', async () => {
    const { order, keys, include, limit, skip, count } = queryMembers;
    const parts = Object.entries({ where, order, keys, include, limit, skip, count });
    const model = dictionaryOf(parts.map(([key, one]) => [key, (one ?? fc.constant('')).map(asSent)]));
    const query = fc.record<Record<string, unknown>>(Object(model), { requiredKeys: [] });
    await fuzz(
      fc.asyncProperty(query, cls, (given, on) => toRefusal(() => run(given, on))),
      { cases: 300 },
    );
  }, 600_000);

  test('in any CQL likewise', async () => {
    await fuzz(
      fc.asyncProperty(cql, placeholders, (statement, given) =>
        toRefusal(async () => {
          const values = JSON.parse(JSON.stringify(given));
          const read = parseCql(statement, Array.isArray(values) ? values : []);
          const on = classes.get(read.className);
          if (!on) return;
          const { where, order, limit, skip } = read;
          await run({ where, order, limit: limit?.toString(), skip: skip?.toString() }, on);
        }),
      ),
      { cases: 700 },
    );
  }, 600_000);
});
