import type { Condition, MembersCondition, RelatedCondition, Subquery } from '../condition.ts';
import { compileSortOrder } from '../list/page.ts';
import type { ClassSchema } from '../schema.ts';
import { visibleTo } from '../viewer.ts';
import { compileColumnTest } from './column.ts';
import { compileJsonTest } from './json.ts';
import type { Params } from './params.ts';
import {
  compileMembersTest,
  compileRelatedTest,
  compileSubqueryTest,
  selectItems,
  selectPointers,
} from './relation.ts';

/**
 * Compiles a condition to a boolean SQL expression in parentheses, over the columns of the class.
 * The SQL text contains only constants and placeholders. Values, member names and JSON paths are
 * passed through `params`. The expression may be NULL instead of false: use it in WHERE, and negate
 * it with `IS NOT TRUE`.
 */
export function compileWhere(condition: Condition, cls: ClassSchema, params: Params): string {
  switch (condition.kind) {
    case 'and':
      return joinConditions(condition.all, { cls, params, separator: ' AND ', empty: 'true' });
    case 'or':
      return joinConditions(condition.any, { cls, params, separator: ' OR ', empty: 'false' });
    case 'related':
      return compileRelated(condition, params);
    case 'members':
      return compileMembers(condition, params);
    case 'field': {
      const { field, test } = condition;
      if (test.op === 'subquery') {
        const rows = compileRows(test.query, params);
        const items = selectItems(field, cls.jsonColumn, params);
        return compileSubqueryTest(items, test, { rows, params });
      }
      return 'column' in field
        ? compileColumnTest(field.column, test, params)
        : compileJsonTest({ column: cls.jsonColumn, path: field.path }, test, params);
    }
  }
}

function compileMembers({ relation, test, appId }: MembersCondition, params: Params): string {
  if (test.op !== 'subquery') return compileMembersTest(relation, test, { appId, params });
  const rows = compileRows(test.query, params);
  return compileSubqueryTest(selectPointers(relation, { appId, params }), test, { rows, params });
}

function compileRelated(
  { relation, owner, objectId, viewer }: RelatedCondition,
  params: Params,
): string {
  return compileRelatedTest(relation, {
    appId: params.add(viewer.appId),
    objectId: params.add(objectId),
    isVisible: visibleTo(viewer, owner, params),
  });
}

interface JoinOptions {
  cls: ClassSchema;
  params: Params;
  separator: string;
  empty: string;
}

function joinConditions(
  parts: Condition[],
  { cls, params, separator, empty }: JoinOptions,
): string {
  if (parts.length === 0) return empty;
  return `(${parts.map((part) => compileWhere(part, cls, params)).join(separator)})`;
}

/** Compiles the rows of a subquery. Its column names refer to the inner table. */
function compileRows(
  { cls, where, sortOrder, limit, skip, viewer }: Subquery,
  params: Params,
): string {
  const conditions = [
    `app_id = ${params.add(viewer.appId)}`,
    compileWhere(where, cls, params),
    visibleTo(viewer, cls, params),
  ];
  return `FROM ${cls.table} WHERE ${conditions.join(' AND ')} ORDER BY ${compileSortOrder({ where, sortOrder }, cls, params)}
    LIMIT ${params.add(limit)} OFFSET ${params.add(skip)}`;
}
