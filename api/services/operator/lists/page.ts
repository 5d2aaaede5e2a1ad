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
