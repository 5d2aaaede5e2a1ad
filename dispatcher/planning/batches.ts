import { connectors } from '../../connectors/registry.ts';
import type { Route, Router } from '../../connectors/routing.ts';
import { parseRoutingKey } from '../../shared/db/tables/routing-keys.ts';
import type { RoutingKey } from '../../shared/domain/installations/installation.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import { isToAll } from '../../shared/query/targets/targets.ts';
import {
  type BatchGroup,
  endUnsent,
  type PageOfBatches,
  type Rule,
  type TargetPage,
} from '../../shared/rules/rule.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';
import { firstBatchSize, pageSize } from './pages.ts';

const largestBatchSize = 5000;
/**
 * Size of the batches of the second page. The page becomes at most two batches, so that two threads
 * share a push to 10,000 devices.
 */
const secondPage = { fromPlanned: 1000, toPlanned: 5000, minSize: 2500 };

/**
 * Returns the maximum batch size for `count` recipients of a page. Batches grow from 1,000 to 5,000
 * as the push proceeds, because each batch costs about 12 statements. Batches stay at 1,000 if the
 * gateway takes several recipients in a request, or if a rate gives each batch a time slot.
 */
function batchSizeOf(
  { connector: id }: Route,
  count: number,
  { flowControl, planned, isHalved = false }: PageContext,
): number {
  const connector = connectors.get(id);
  const canGrow = connector?.limits.recipientsPerRequest === 1 && !connector.rate;
  const { fromPlanned, toPlanned, minSize: leastSize } = secondPage;
  if (!canGrow || flowControl !== null) return firstBatchSize;
  if (isHalved || planned >= toPlanned) return largestBatchSize;
  if (planned < fromPlanned) return firstBatchSize;
  return Math.min(largestBatchSize, Math.max(leastSize, Math.ceil(count / 2)));
}

/**
 * Route of the recipients of a batch, with the other properties that they share, such as the
 * language.
 */
type BatchRoute = Route & BatchGroup;

/** Finds the route of the devices with a routing key. `read` parses the key. */
interface Routes {
  routeOf(routingKey: string, read: (routingKey: string) => RoutingKey): BatchRoute;
}

/**
 * Maximum routing keys in the cache. Keys contain locales and time zones, which devices choose
 * freely.
 */
const maxCachedKeys = 10_000;

/**
 * Returns the routes of a push. Planning sorts each page into batches by route. If rules divide
 * devices further, for example by language, devices with the same connector, profile and group
 * share one route object, even if their routing keys differ. Otherwise the push would have many
 * small batches.
 */
export function batchRoutes(router: Router, rules: readonly Rule[]): Routes {
  const dividing = rules.filter(({ group }) => group !== undefined);
  if (dividing.length === 0) return router;
  const byRoutingKey = new Map<string, BatchRoute>();
  const byParts = new Map<string, BatchRoute>();
  return {
    routeOf(routingKey, read) {
      const cached = byRoutingKey.get(routingKey);
      if (cached) return cached;
      const groups = dividing.map((rule) => rule.group?.(routingKey));
      const route: BatchRoute = Object.assign({}, router.route(read(routingKey)), ...groups);
      const { connector, profile, error, language, quiet } = route;
      const parts = JSON.stringify([connector, profile, error, language, quiet]);
      const shared = byParts.get(parts) ?? route;
      byParts.set(parts, shared);
      if (byRoutingKey.size >= maxCachedKeys) byRoutingKey.clear();
      byRoutingKey.set(routingKey, shared);
      return shared;
    },
  };
}

interface PageContext {
  routes: Routes;
  /** Rate of the push in recipients per second; null without flow control. */
  flowControl: number | null;
  /** Recipients of the push that were planned before the page. */
  planned: number;
  /**
   * True if the push probably consists of two pages of equal size (`AudienceSizes`). Each page then
   * becomes one batch.
   */
  isHalved?: boolean;
}

/** Sorts a page of targets into batches. All recipients of a batch share one route. */
export function toBatches(
  { idsByRoutingKey }: Pick<TargetPage, 'idsByRoutingKey'>,
  context: PageContext,
): PageOfBatches {
  const groups = new Map<BatchRoute, number[][]>();
  for (const [routingKey, ids] of idsByRoutingKey) {
    const route = context.routes.routeOf(routingKey, parseRoutingKey);
    const lists = groups.get(route);
    if (lists) lists.push(ids);
    else groups.set(route, [ids]);
  }
  const page: PageOfBatches = { batches: [], unsent: [] };
  for (const [route, lists] of groups) {
    const ids = inOneList(lists);
    const size = batchSizeOf(route, ids.length, context);
    for (let i = 0; i < ids.length; i += size) addBatch(page, route, ids.slice(i, i + size));
  }
  return page;
}

/**
 * Merges sorted lists of ids. Sorts once, because a page may have one list for each device
 * (`maxCachedKeys`).
 */
function inOneList(lists: readonly number[][]): number[] {
  const [first = []] = lists;
  return lists.length > 1 ? lists.flat().sort((one, other) => one - other) : first;
}

/**
 * Adds a batch to the page. If no profile serves the devices, the batch is written as failed and
 * never sent.
 */
function addBatch(page: PageOfBatches, route: BatchRoute, recipients: number[]): void {
  const { connector, profile, error, language = null, quiet = null } = route;
  const batch = {
    connector,
    profile,
    recipients,
    language,
    quiet,
    badges: null,
    attempt: 0,
    hasJob: false,
  };
  if (error === undefined) page.batches.push(batch);
  else page.unsent.push(endUnsent(batch, 'failed', error));
}

const maxApps = 10_000;

/**
 * Remembers how many devices the last push to all devices of an app reached. Planning splits the
 * next such push into two equal batches. The size of a push is not known before its last page.
 */
export class AudienceSizes {
  readonly #halves = new TtlCache<string, number>({ maxEntries: maxApps });

  /**
   * Records the number of devices of a planned push. Caches half of it if this half is a good batch
   * size.
   */
  record({ appId, pushOrder }: OpenPush, devices: number): void {
    const hasHalves = devices > 2 * firstBatchSize && devices <= pageSize;
    // Most pushes end here, before their condition is checked.
    if (!hasHalves && this.#halves.get(appId) === undefined) return;
    if (!isToAll(pushOrder)) return;
    if (hasHalves) this.#halves.set(appId, Math.ceil(devices / 2));
    else this.#halves.delete(appId);
  }

  /**
   * Returns half the expected size of a new push to all devices. Two batches cost less than the
   * usual three. Returns undefined if the size of the app is unknown, if the push has begun, and if
   * the push has a rate (develop/architecture.md#batches).
   */
  halfOf({ appId, pushOrder, plannedThrough }: OpenPush): number | undefined {
    const half = this.#halves.get(appId);
    if (half === undefined || plannedThrough > 0 || pushOrder.flowControl !== null)
      return undefined;
    return isToAll(pushOrder) ? half : undefined;
  }
}
