import { z } from 'zod';
import type { Database, Handle } from '../../pool.ts';
import { nameOf, sealedPlaces } from './places.ts';

/** Name of the group of values whose key is not among CARILLON_SECRET, or not known yet (sessions of older versions). */
export const otherKey = 'other';

export const sealedCounts = z.record(z.string(), z.record(z.string(), z.number()));
/** Numbers of values by place (`<table>.<column>`) and id of the key. */
export type SealedCounts = z.infer<typeof sealedCounts>;

/** Counts the encrypted values of all apps by place and key, by their first bytes. Reads every row once. */
export async function countSealedValues(db: Handle, keyIds: readonly string[]): Promise<SealedCounts> {
  const counts: SealedCounts = {};
  for (const place of sealedPlaces) {
    const { rows } = await db.query<{ key: string; values: number }>(
      `SELECT CASE WHEN k.id = ANY($1) THEN k.id ELSE '${otherKey}' END AS key, count(*) AS values
         FROM ${place.table} t, unnest(${place.keyIds}) AS k (id)
        WHERE t.${place.column} IS NOT NULL AND k.id IS NOT NULL GROUP BY 1`,
      [keyIds],
    );
    counts[nameOf(place)] = Object.fromEntries(rows.map(({ key, values }) => [key, values]));
  }
  return counts;
}

/** Limit of one statement that counts for a caller who waits. */
const waitingMs = 8000;

/** As `countSealedValues`, for a caller who waits. Throws PostgreSQL's error of a statement over its time limit. */
export const countSealedSoon = (
  db: Pick<Database, 'transaction'>,
  keyIds: readonly string[],
): Promise<SealedCounts> =>
  db.transaction((tx) => countSealedValues(tx, keyIds), { statementTimeoutMs: waitingMs });

/**
 * Returns the number of values by place that are under another key than the first; `unreadable` are those that no key
 * decrypts, which do not count.
 */
export function oldValues(
  counts: SealedCounts,
  first: string,
  unreadable: Readonly<Record<string, number>> = {},
): Record<string, number> {
  const numbers = Object.entries(counts).map(([place, byKey]): [string, number] => {
    const { [first]: _current, [otherKey]: other = 0, ...old } = byKey;
    return [place, Math.max(0, sum(Object.values(old)) + other - (unreadable[place] ?? 0))];
  });
  return Object.fromEntries(numbers);
}

export const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0);
