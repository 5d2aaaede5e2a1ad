import { z } from 'zod';
import type { ClassTable, Selection } from '../../../../shared/db/tables/selection.ts';
import { flagQuery, time } from '../../../../shared/domain/client-values.ts';

/**
 * Limits what `countRows` counts: a subquery in place of the table would need a statement of its
 * own.
 */
export const cappedRows = (table: ClassTable, selection: Selection, most: number): Selection => ({
  ...selection,
  condition: `id IN (SELECT id FROM ${table} WHERE app_id = $1 AND ${selection.condition} LIMIT ${most + 1})`,
});

/** Returns the number of matches for a reply. */
export const countOfRows = (count: number, most: number): { count: number; countIsLeast?: true } =>
  count > most ? { count: most, countIsLeast: true } : { count };

/** Page of a list by keyset: a position and a size. */
export interface PageRequest {
  /**
   * Position after which the page begins, as the page before returned it; null for the first page.
   */
  before: number | null;
  limit: number;
}

/** Rows of a page, and the position of the next one; null after the last. */
export interface Page<T> {
  results: T[];
  next: string | null;
}

/** Makes a page of up to `limit + 1` rows: the additional row tells that there is a next page. */
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

/** Matches that a list counts; counting more would take as long as reading them. */
const maxCounted = 10_000;

/** Returns the number of matches for a reply. `count` stops counting at its argument. */
export async function countOf(
  count: (most: number) => Promise<number>,
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
    .describe('Largest number of results.'),
  cursor: z
    .string('expected one cursor')
    .regex(/^\d{1,15}$/, 'expected the `next` of a page before')
    .optional()
    .describe('`next` of the page before.'),
};

/** `count=1` counts the matches. */
export const countQuery = flagQuery.describe('`1` counts the matches, up to 10,000.');

/** Time of a query. */
export const timeQuery = time.optional();

/** Returns the page that a query asks for. */
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

/** Parses an id of a path; undefined for another text, which is the id of nothing. */
export const idOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
