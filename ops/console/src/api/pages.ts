/** Most rows of an exported list. */
export const maxExported = 10_000;
/** Rows of a page of an export, the most that a list gives. */
export const exportPage = 200;

interface Page {
  results: unknown[];
  /** Cursor of the next page; null after the last one. */
  next: string | null;
}

/** Returns a reply as a page, where the operation answers without pages too. */
export function asPage<R extends { results: unknown[] }>(reply: R): Extract<R, Page> {
  if (isPage(reply)) return reply;
  throw new Error('the reply is no page');
}

const isPage = <R extends { results: unknown[] }>(reply: R): reply is Extract<R, Page> => 'next' in reply;

/** Reads the pages of a list one after the other, up to 10,000 rows. */
export async function readPages<T>(
  read: (cursor: string | undefined) => Promise<{ results: T[]; next: string | null }>,
): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    rows.push(...page.results);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && rows.length < maxExported);
  return rows;
}
