import type { RowCondition, Selection } from '../../db/tables/selection.ts';
import type { Condition, SortKey } from '../condition.ts';
import { parseWhere } from '../parse/where.ts';
import type { ClassSchema } from '../schema.ts';
import { Params } from '../sql/params.ts';
import { compileWhere } from '../sql/where.ts';
import { type Viewer, visibleTo } from '../viewer.ts';
import { type Include, parseInclude } from './include.ts';
import { type Keys, parseKeys } from './keys.ts';
import { compileSortOrder, parseLimit, parseSkip, parseSortOrder } from './page.ts';

/** Checked parameters of a list call (protocol/queries.md#query-parameters). */
export interface ListQuery {
  where: Condition;
  /** 0 is possible only with `hasCount`. */
  limit: number;
  skip: number;
  sortOrder: SortKey[];
  keys: Keys | undefined;
  include: Include;
  hasCount: boolean;
}

/**
 * Parses `where`, `limit`, `skip`, `order`, `keys`, `include` and `count` of a query string.
 * Ignores other parameters. Throws error 102, 105, 106 or 111, and error 101 or 403 for subqueries.
 */
export function parseListQuery(
  query: Record<string, unknown>,
  cls: ClassSchema,
  viewer: Viewer,
): ListQuery {
  const hasCount = query.count === true;
  return {
    where: parseWhere(query.where, cls, viewer),
    limit: parseLimit(query.limit, hasCount),
    skip: parseSkip(query.skip),
    sortOrder: parseSortOrder(query.order, cls),
    keys: parseKeys(query.keys),
    include: parseInclude(query.include, cls),
    hasCount,
  };
}

/** Compiles a list call for the rows that the viewer may read. `$1` is the app id. */
export function compileList(list: ListQuery, cls: ClassSchema, viewer: Viewer): Selection {
  const params = new Params([viewer.appId]);
  const condition = `(${compileWhere(list.where, cls, params)} AND ${visibleTo(viewer, cls, params)})`;
  const conditionValues = params.values.length;
  const orderBy = compileSortOrder(list, cls, params);
  return {
    condition,
    orderBy,
    values: params.values,
    conditionValues,
    limit: list.limit,
    skip: list.skip,
  };
}

/**
 * Compiles the `where` of a PUT or DELETE (protocol/queries.md#query-parameters). Returns undefined
 * if it is absent or empty. Throws as `parseWhere`.
 */
export function compileRowCondition(
  where: unknown,
  cls: ClassSchema,
  viewer: Viewer,
): RowCondition | undefined {
  if (where === undefined || where === '') return undefined;
  const params = new Params([viewer.appId]);
  const condition = compileWhere(parseWhere(where, cls, viewer), cls, params);
  return { condition, values: params.values };
}
