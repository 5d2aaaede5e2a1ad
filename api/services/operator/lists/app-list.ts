import {
  type AppFilter,
  type AppOrder,
  listAppNames,
  listAppSummaries,
} from '../../../../shared/db/tables/apps.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { ApiDeps } from '../../deps.ts';
import { idOf } from './page.ts';

/** Maximum number of devices and pushes that a list counts per app. */
const maxCounted = 10_000;

export interface AppListRequest {
  /** Id, or part of the name. */
  q?: string | undefined;
  /** Ids of the apps to list. Undefined for all apps. */
  ids?: readonly string[] | undefined;
  sort: AppOrder;
  /** `next` of the previous page. */
  cursor?: string | undefined;
  limit: number;
}

/** Lists the apps of an operator without their keys (protocol/admin-api.md#apps). */
export class AppListService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists apps with the number of their devices and pushes. */
  async summaries(operator: Operator, request: AppListRequest) {
    const page = { ...pageOf(request), maxCounted };
    return toReply(
      await listAppSummaries(this.#deps.db, filterOf(operator, request), page),
      request,
    );
  }

  /** Lists ids and names. Used for menus, and for the names of apps whose ids a page contains. */
  async names(operator: Operator, request: AppListRequest) {
    return toReply(
      await listAppNames(this.#deps.db, filterOf(operator, request), pageOf(request)),
      request,
    );
  }
}

function filterOf({ apps }: Operator, { q, ids }: AppListRequest): AppFilter {
  if (ids === undefined) return { q, apps };
  return { q, apps: apps === null ? ids : ids.filter((id) => apps.includes(id)) };
}

/** Reads one row more than the page contains. The extra row shows that there is a next page. */
function pageOf({ sort, cursor, limit }: AppListRequest) {
  return { sort, after: cursor === undefined ? null : placeOf(cursor, sort), limit: limit + 1 };
}

/**
 * Splits a cursor: the id of the last app and, after a space, the value by which the list is
 * sorted. The value is the name, or the number of the newest push. A list by id has none.
 */
function placeOf(cursor: string, sort: AppOrder): { appId: string; place: string } {
  const at = cursor.indexOf(' ');
  const appId = at < 0 ? cursor : cursor.slice(0, at);
  const place = at < 0 ? '' : cursor.slice(at + 1);
  return { appId, place: sort === 'activity' && idOf(place) === undefined ? '0' : place };
}

function toReply<T extends { appId: string; place: string | null }>(
  rows: readonly T[],
  { limit }: AppListRequest,
) {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  const results = shown.map(({ place: _, ...app }) => app);
  if (!last) return { results, next: null };
  return { results, next: last.place === null ? last.appId : `${last.appId} ${last.place}` };
}
