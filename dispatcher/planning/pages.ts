import type { Clock } from '../../shared/clock.ts';
import { type Database, parseIdList } from '../../shared/db/pool.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import {
  isUnselective,
  type Part,
  type TargetGroupRow,
  type TargetRow,
  targetPageQuery,
  targetQuery,
} from '../../shared/query/targets/targets.ts';
import type { TargetPage } from '../../shared/rules/rule.ts';
import { maxScanMs } from '../limits.ts';

/**
 * Maximum recipients of the first batch of a push. It is also the maximum of all batches of a
 * gateway whose batches do not grow (develop/architecture.md#batches).
 */
export const firstBatchSize = 1000;

/** Maximum installations of a page. One transaction writes one page. */
export const pageSize = 10_000;

/**
 * Minimum and maximum rows of one statement of `pagesBySearch`. All rows of a statement are in
 * memory at once.
 */
const searchSizes = { min: 50_000, max: 200_000 };

/**
 * A page of targets. `isLast`: no page follows. `endsRead`: the next page needs another statement,
 * so planning can stop here without repeating a scan.
 */
export interface PlannedPage {
  page: TargetPage;
  isLast: boolean;
  endsRead: boolean;
}

interface Scan {
  database: Database;
  app: App;
  push: OpenPush;
  clock: Clock;
  /** True if the scan also reads the time zone of each device. */
  hasZones?: boolean;
  /**
   * Number of targets in the first page of a new push that `pagesByKey` reads; `firstBatchSize` by
   * default.
   */
  firstSize?: number | undefined;
}

/** Which targets a scan reads, and which of their columns. */
interface ScanSelection {
  part: Part | undefined;
  hasZones: boolean;
}

/**
 * Reads the targets of a push page by page, starting at the planning cursor. The first page of a
 * new push is small, so that sending begins at once. The last page may be empty. With `part` it
 * reads only that part of the targets.
 */
export function readPages(scan: Scan, part?: Part): AsyncGenerator<PlannedPage> {
  const selection = { part, hasZones: scan.hasZones ?? false };
  return isUnselective(scan.push.pushOrder)
    ? pagesByKey(scan, selection)
    : pagesBySearch(scan, selection);
}

/** Returns rows that were already read as one page. The page is empty if there are no rows. */
export async function* singlePage(rows: TargetRow[]): AsyncGenerator<PlannedPage> {
  yield { page: pageOfRows(rows), isLast: true, endsRead: true };
}

/**
 * Reads each page with one statement that continues at the cursor. Used if the condition is empty
 * or needs a table scan, so that the primary key finds the next page quickly.
 */
async function* pagesByKey(scan: Scan, selection: ScanSelection): AsyncGenerator<PlannedPage> {
  const { database, app, push, clock, firstSize = firstBatchSize } = scan;
  const nowMs = clock.now();
  let size = push.plannedThrough === 0 ? firstSize : pageSize;
  for (let afterId = push.plannedThrough; ; size = pageSize) {
    const { text, values } = targetPageQuery(app, push.pushOrder, {
      afterId,
      nowMs,
      size,
      ...selection,
    });
    const { rows } = await database.queryWithin<TargetGroupRow>(maxScanMs, text, values);
    const page = pageOfGroups(rows);
    const isLast = page.size < size;
    yield { page, isLast, endsRead: true };
    if (isLast) return;
    afterId = page.lastId;
  }
}

/** Builds a page from rows that PostgreSQL has grouped by routing key. */
export function pageOfGroups(rows: TargetGroupRow[]): TargetPage {
  const page: TargetPage = { size: 0, lastId: 0, idsByRoutingKey: new Map() };
  for (const { routingKey, ids: list } of rows) {
    // PostgreSQL returns them sorted unless it groups by sorting.
    const ids = parseIdList(list).sort((one, other) => one - other);
    page.size += ids.length;
    page.lastId = Math.max(page.lastId, ids.at(-1) ?? 0);
    page.idsByRoutingKey.set(routingKey, ids);
  }
  return page;
}

/**
 * Reads pages with few statements. Used if an index serves the condition: each statement then finds
 * and sorts all remaining matches again (develop/decisions.md#why-pages-of-one-statement). The
 * limit of a statement is the number of devices found so far, so a push to n devices needs log2(n)
 * statements. The first page is small, so that sending starts at once.
 */
async function* pagesBySearch(
  { database, app, push, clock }: Scan,
  selection: ScanSelection,
): AsyncGenerator<PlannedPage> {
  const nowMs = clock.now();
  let found = push.devices;
  for (let afterId = push.plannedThrough; ; ) {
    const limit = afterId === 0 ? firstBatchSize : searchSizeAfter(found);
    const { text, values } = targetQuery(app, push.pushOrder, {
      afterId,
      nowMs,
      limit,
      ...selection,
    });
    const { rows } = await database.queryWithin<TargetRow>(maxScanMs, text, values);
    let offset = 0;
    do {
      const page = pageOfRows(rows.slice(offset, offset + pageSize));
      offset += pageSize;
      const endsRead = offset >= rows.length;
      yield { page, isLast: endsRead && rows.length < limit, endsRead };
    } while (offset < rows.length);
    if (rows.length < limit) return;
    afterId = rows.at(-1)?.id ?? afterId;
    found += rows.length;
  }
}

const searchSizeAfter = (found: number): number =>
  Math.min(Math.max(found, searchSizes.min), searchSizes.max);

/** Builds a page from single rows: groups them by routing key. */
export function pageOfRows(rows: TargetRow[]): TargetPage {
  const idsByRoutingKey = new Map<string, number[]>();
  for (const { id, routingKey } of rows) {
    const ids = idsByRoutingKey.get(routingKey);
    if (ids) ids.push(id);
    else idsByRoutingKey.set(routingKey, [id]);
  }
  return { size: rows.length, lastId: rows.at(-1)?.id ?? 0, idsByRoutingKey };
}
