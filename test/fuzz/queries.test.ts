import fc from 'fast-check';
import { describe, test } from 'vitest';
import { isInvalidValue } from '../../shared/db/limits/database-errors.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { parseCql } from '../../shared/query/cql/select.ts';
import { compileList, parseListQuery } from '../../shared/query/list/list.ts';
import {
  type ClassSchema,
  classes,
  installationClass,
  roleClass,
  userClass,
} from '../../shared/query/schema.ts';
import { masterViewer, type Viewer } from '../../shared/query/viewer.ts';
import { openTestDatabase } from '../support/database.ts';
import { queryMembers } from './generators/bodies.ts';
import { where } from './generators/conditions.ts';
import { cql, placeholders } from './generators/statements.ts';
import { dictionaryOf } from './generators/values.ts';
import { fuzz } from './runs.ts';

const { db } = await openTestDatabase({ statementTimeoutMs: 10_000 });
const reader: Viewer = masterViewer('app');

/**
 * Compiles and runs a query. Only column and table names are SQL text. All values are parameters.
 */
async function run(query: Record<string, unknown>, cls: ClassSchema): Promise<void> {
  const { condition, orderBy, values, limit, skip } = compileList(
    parseListQuery(query, cls, reader),
    cls,
    reader,
  );
  await db.query(
    `SELECT 1 FROM ${cls.table} WHERE app_id = $1 AND (${condition}) ORDER BY ${orderBy}
      LIMIT ${limit} OFFSET ${skip}`,
    values,
  );
}

/** Accepts a refusal, and a value that PostgreSQL cannot store, which a caller receives as 111. */
async function acceptRefusal(work: () => Promise<void>): Promise<void> {
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
  test('with any where are valid SQL or a refusal', async () => {
    await fuzz(
      fc.asyncProperty(where, cls, (condition, on) =>
        acceptRefusal(() => run({ where: asSent(condition) }, on)),
      ),
      { cases: 700 },
    );
  }, 600_000);

  test('with any where, order, keys, include and limit are valid SQL or refused', async () => {
    const { order, keys, include, limit, skip, count } = queryMembers;
    const parts = Object.entries({ where, order, keys, include, limit, skip, count });
    const model = dictionaryOf(
      parts.map(([key, one]) => [key, (one ?? fc.constant('')).map(asSent)]),
    );
    const query = fc.record<Record<string, unknown>>(Object(model), { requiredKeys: [] });
    await fuzz(
      fc.asyncProperty(query, cls, (given, on) => acceptRefusal(() => run(given, on))),
      { cases: 300 },
    );
  }, 600_000);

  test('in any CQL are valid SQL or a refusal', async () => {
    await fuzz(
      fc.asyncProperty(cql, placeholders, (statement, given) =>
        acceptRefusal(async () => {
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
