import { z } from 'zod';
import type { ClassTable, Selection } from '../../../../shared/db/tables/selection.ts';
import { flagQuery, time } from '../../../../shared/domain/client-values.ts';

/**
 * Limits the number of rows that `countRows` counts. A subquery in place of the table would need
 * another statement.
 */
export const cappedRows = (table: ClassTable, selection: Selection, max: number): Selection => ({
  ...selection,
  condition: `id IN (SELECT id FROM ${table} WHERE app_id = $1 AND ${selection.condition}
    LIMIT ${max + 1})`,
});

/** Returns the number of matches for a reply. */
export const countOfRows = (count: number, max: number): { count: number; countIsLeast?: true } =>
  count > max ? { count: max, countIsLeast: true } : { count };

/** Page of a list by keyset: a position and a size. */
export interface PageRequest {
  /** Position after which the page begins, from the previous page. Null for the first page. */
  before: number | null;
  limit: number;
}

/** Rows of a page, and the position of the next page. The position is null after the last page. */
export interface Page<T> {
  results: T[];
  next: string | null;
}

/** Makes a page from up to `limit + 1` rows. The extra row shows that there is a next page. */
export function toPage<T>(
  rows: readonly T[],
  limit: number,
  positionOf: (row: T) => number,
): Page<T> {
  const results = rows.slice(0, limit);
  const last = results.at(-1);
  const next = rows.length > limit && last !== undefined ? String(positionOf(last)) : null;
  return { results, next };
}

/**
 * Maximum number of matches that a list counts. Counting more would take as long as reading them.
 */
const maxCounted = 10_000;

/** Returns the number of matches for a reply. `count` must stop at its argument. */
export async function countOf(
  count: (limit: number) => Promise<number>,
): Promise<{ count: number; countIsLeast?: true }> {
  const found = await count(maxCounted + 1);
  return found > maxCounted ? { count: maxCounted, countIsLeast: true } : { count: found };
}

const maxLimit = 200;
const defaultLimit = 50;

/** Query members of every list by keyset (protocol/admin-api.md#lists). */
export const pageQuery = {
  limit: z.coerce
    .number('expected a number')
    .int('expected a whole number')
    .min(1, 'must be at least 1')
    .max(maxLimit, `must be at most ${maxLimit}`)
    .default(defaultLimit)
    .describe('Maximum number of results.'),
  cursor: z
    .string('expected one cursor')
    .regex(/^\d{1,15}$/, 'expected the `next` of a page before')
    .optional()
    .describe('`next` of the previous page.'),
};

/** `count=1` counts the matches. */
export const countQuery = flagQuery.describe('`1` counts the matches, up to 10,000.');

/** Query member with a time. */
export const timeQuery = time.optional();

/** Returns the page that a query requests. */
export const pageOf = ({
  limit,
  cursor,
}: {
  limit: number;
  cursor?: string | undefined;
}): PageRequest => ({
  limit,
  before: cursor === undefined ? null : Number(cursor),
});

/** Parses an id of a path. Returns undefined for other texts, which no object has as id. */
export const idOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
