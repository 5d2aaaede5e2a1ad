/** Page of a list by keyset: a position and a size. */
export interface PageRequest {
  /** Position after which the page begins, as the page before returned it; null for the first page. */
  before: number | null;
  limit: number;
}

/** Rows of a page, and the position of the next one; null after the last. */
export interface Page<T> {
  results: T[];
  next: string | null;
}

/** Makes a page of up to `limit + 1` rows: the additional row tells that there is a next page. */
export function toPage<T>(rows: readonly T[], limit: number, positionOf: (row: T) => number): Page<T> {
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
