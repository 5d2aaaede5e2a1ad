import type { KeysetPage } from '../../../../../api/replies/admin/types.ts';
import { call } from '../client.ts';

/** Most rows of an exported list. */
export const maxExported = 10_000;
/** Rows of a page of an export, the most that a list gives. */
export const exportPage = 200;

/** Reads the pages of a list one after the other, up to 10,000 rows. `pathOf` returns the path of the page of a cursor. */
export async function readPages<T>(pathOf: (cursor: string | undefined) => string): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await call<KeysetPage<T>>(pathOf(cursor));
    rows.push(...page.results);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && rows.length < maxExported);
  return rows;
}
