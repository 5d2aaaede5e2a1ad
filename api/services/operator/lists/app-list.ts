import {
  type AppFilter,
  listAppNames,
  listAppSummaries,
} from '../../../../shared/db/tables/apps.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { ApiDeps } from '../../deps.ts';

/** Devices and pushes of an app that a list counts. */
const maxCounted = 10_000;

export interface AppListRequest {
  /** Id, or a part of the name. */
  q?: string | undefined;
  /** Apps to list; undefined for all. */
  ids?: readonly string[] | undefined;
  sort: 'id' | 'name';
  /** `next` of the page before. */
  cursor?: string | undefined;
  limit: number;
}

/** Lists the apps of an operator without their keys (protocol/admin-api.md#apps). */
export class AppListService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists apps with the numbers of their devices and pushes. */
  async summaries(operator: Operator, request: AppListRequest) {
    const page = { ...pageOf(request), most: maxCounted };
    return toReply(
      await listAppSummaries(this.#deps.db, filterOf(operator, request), page),
      request,
    );
  }

  /** Lists ids and names, for menus, and for the names of apps that a page knows by their ids. */
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

/** Reads one row more than the page has: it tells that there is a next page. */
function pageOf({ sort, cursor, limit }: AppListRequest) {
  const [appId = '', name = ''] = cursor === undefined ? [] : partsOf(cursor);
  return { sort, after: cursor === undefined ? null : { appId, name }, limit: limit + 1 };
}

/** A cursor is the id of the last app, and in a list by name its name after a space. */
function partsOf(cursor: string): [appId: string, name: string] {
  const at = cursor.indexOf(' ');
  return at < 0 ? [cursor, ''] : [cursor.slice(0, at), cursor.slice(at + 1)];
}

function toReply<T extends { appId: string; name: string }>(
  rows: readonly T[],
  { sort, limit }: AppListRequest,
) {
  const results = rows.slice(0, limit);
  const last = rows.length > limit ? results.at(-1) : undefined;
  if (!last) return { results, next: null };
  return { results, next: sort === 'name' ? `${last.appId} ${last.name}` : last.appId };
}
