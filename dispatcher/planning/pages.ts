import type { Clock } from '../../shared/clock.ts';
import { type Database, parseIdList } from '../../shared/db/pool.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import {
  isUnselective,
  type Part,
  type TargetGroupRow,
  type TargetRow,
  targetPageQuery,
  targetQuery,
} from '../../shared/query/targets/targets.ts';
import type { TargetPage } from '../../shared/rules/rule.ts';
import { longestScanMs } from '../limits.ts';

/**
 * Most recipients of the first batches of a push, and of all where a batch cannot grow
 * (develop/architecture.md#batches).
 */
export const firstBatchSize = 1000;

/** Installations of one page, which one transaction writes. */
export const pageSize = 10_000;

/**
 * Fewest and most installations that one statement of a push to many finds by a condition; they are
 * in memory then.
 */
const searchSizes = { least: 50_000, most: 200_000 };

/** A page, whether no other one follows, and whether the next one needs another statement. */
export interface PlannedPage {
  page: TargetPage;
  isLast: boolean;
  endsRead: boolean;
}

interface Scan {
  database: Database;
  app: App;
  push: Push;
  clock: Clock;
  /** Reads the time zone of each device too. */
  hasZones?: boolean;
  /**
   * Targets of the first page of a fresh push without a condition that an index serves;
   * `firstBatchSize` by default.
   */
  firstSize?: number | undefined;
}

/** Which targets a scan reads, and what it reads of them. */
interface Reading {
  part: Part | undefined;
  hasZones: boolean;
}

/**
 * Reads the targets of a push behind its planning cursor, page by page. The first page of a fresh
 * push is small, so that sending begins at once. The last page may be empty. `part`: only these
 * targets.
 */
export function readPages(scan: Scan, part?: Part): AsyncGenerator<PlannedPage> {
  const reading = { part, hasZones: scan.hasZones ?? false };
  return isUnselective(scan.push.pushOrder)
    ? pagesByKey(scan, reading)
    : pagesBySearch(scan, reading);
}

/** Returns one page of rows that are known; empty where there is nothing to read. */
export async function* knownPage(rows: TargetRow[]): AsyncGenerator<PlannedPage> {
  yield { page: pageOfRows(rows), isLast: true, endsRead: true };
}

/**
 * Reads pages by one statement each. Only where each of them reads on from the mark: no index would
 * find the targets.
 */
async function* pagesByKey(scan: Scan, reading: Reading): AsyncGenerator<PlannedPage> {
  const { database, app, push, clock, firstSize = firstBatchSize } = scan;
  const nowMs = clock.now();
  let size = push.plannedThrough === 0 ? firstSize : pageSize;
  for (let afterId = push.plannedThrough; ; size = pageSize) {
    const { text, values } = targetPageQuery(app, push.pushOrder, {
      afterId,
      nowMs,
      size,
      ...reading,
    });
    const { rows } = await database.queryWithin<TargetGroupRow>(longestScanMs, text, values);
    const page = pageOfGroups(rows);
    const isLast = page.size < size;
    yield { page, isLast, endsRead: true };
    if (isLast) return;
    afterId = page.lastId;
  }
}

/** Reads a page of groups. */
export function pageOfGroups(rows: TargetGroupRow[]): TargetPage {
  const page: TargetPage = { size: 0, lastId: 0, idsByRoutingKey: new Map() };
  for (const { routingKey, ids: list } of rows) {
    const ids = inOrder(parseIdList(list));
    page.size += ids.length;
    page.lastId = Math.max(page.lastId, ids.at(-1) ?? 0);
    page.idsByRoutingKey.set(routingKey, ids);
  }
  return page;
}

/** Sorts ids. PostgreSQL aggregates in the order of the page, unless it groups by sorting. */
function inOrder(ids: number[]): number[] {
  for (let i = 1; i < ids.length; i += 1)
    if ((ids[i - 1] ?? 0) > (ids[i] ?? 0)) return ids.sort((one, other) => one - other);
  return ids;
}

/**
 * Reads pages with few statements, because a condition without an index scans all remaining devices
 * in each statement (develop/decisions.md#why-pages-of-one-statement). The limit of a statement is
 * the number of devices found so far, so a push to n devices needs log2(n) statements. The first
 * page is small, so that sending starts at once.
 */
async function* pagesBySearch(
  { database, app, push, clock }: Scan,
  reading: Reading,
): AsyncGenerator<PlannedPage> {
  const nowMs = clock.now();
  let found = push.devices;
  for (let afterId = push.plannedThrough; ; ) {
    const limit = afterId === 0 ? firstBatchSize : searchSizeAfter(found);
    const { text, values } = targetQuery(app, push.pushOrder, {
      afterId,
      nowMs,
      limit,
      ...reading,
    });
    const { rows } = await database.queryWithin<TargetRow>(longestScanMs, text, values);
    let place = 0;
    do {
      const page = pageOfRows(rows.slice(place, place + pageSize));
      place += pageSize;
      const endsRead = place >= rows.length;
      yield { page, isLast: endsRead && rows.length < limit, endsRead };
    } while (place < rows.length);
    if (rows.length < limit) return;
    afterId = rows.at(-1)?.id ?? afterId;
    found += rows.length;
  }
}

const searchSizeAfter = (found: number): number =>
  Math.min(Math.max(found, searchSizes.least), searchSizes.most);

/** Sorts the rows of a page by routing key. */
export function pageOfRows(rows: TargetRow[]): TargetPage {
  const idsByRoutingKey = new Map<string, number[]>();
  for (const { id, routingKey } of rows) {
    const ids = idsByRoutingKey.get(routingKey);
    if (ids) ids.push(id);
    else idsByRoutingKey.set(routingKey, [id]);
  }
  return { size: rows.length, lastId: rows.at(-1)?.id ?? 0, idsByRoutingKey };
}
