import { wholeNumber } from '../../input.ts';
import { type Report, table } from '../../report.ts';
import { anyTime } from '../../time.ts';

/** Options of a list in pages. */
export interface PageOptions {
  limit?: string;
  cursor?: string;
}
export type Filters = Record<string, string | undefined>;

/** Options of commands about lists. */
export const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;
export const limit = ['--limit <n>', 'largest number of results, at most 200'] as const;
export const cursor = ['--cursor <next>', '`next` of the page before'] as const;

/**
 * Returns a query string of the options that are given. Throws `UsageError` for a wrong time or
 * number.
 */
export function queryOf({ limit: most, ...filters }: PageOptions & Filters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) {
    if (value === undefined) continue;
    query.set(name, name === 'from' || name === 'to' ? anyTime(`--${name}`, value) : value);
  }
  if (most !== undefined) query.set('limit', String(wholeNumber('--limit', most, 1)));
  return query.toString();
}

interface Listed {
  headings: string[];
  rows: (string | number)[][];
  next: string | null;
}

/** Returns a page of a list as a table, with the cursor of the next page. */
export function pageReport(document: unknown, { headings, rows, next }: Listed): Report {
  const text = rows.length > 0 ? table(headings, rows) : 'Nothing was found.';
  return { document, text: next === null ? text : `${text}\n\nMore: --cursor ${next}` };
}
