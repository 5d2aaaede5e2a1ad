import { isJsonObject, type Json } from '../../domain/json.ts';
import type {
  Condition,
  MembersCondition,
  PlainTest,
  RelatedCondition,
  Subquery,
  SubqueryTest,
} from '../condition.ts';
import { compileSortOrder } from '../list/page.ts';
import type { ClassSchema, OwnColumn, RelationColumn, ValueField } from '../schema.ts';
import { visibleTo } from '../viewer.ts';
import { compileColumnTest, negate } from './column.ts';
import { compileJsonTest, valuesAt } from './json.ts';
import type { Params } from './params.ts';

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
  return `FROM ${cls.table} WHERE ${conditions.join(' AND ')}
    ORDER BY ${compileSortOrder({ where, sortOrder }, cls, params)}
    LIMIT ${params.add(limit)} OFFSET ${params.add(skip)}`;
}

/** Table with the members of a relation, by the column that refers to this table. */
const memberTables = { user_id: 'app_user', child_id: 'role' } as const;

/**
 * Compiles the FROM and WHERE that select the members of a row of `role`. `member` is the alias of
 * the member's row. The condition on the app appears twice, so that indexes serve both tables if
 * PostgreSQL runs the query once for all rows.
 */
const membersOf = ({ table, member }: RelationColumn, appId: string): string =>
  `FROM ${table} AS link JOIN ${memberTables[member]} AS member ON member.id = link.${member}
   WHERE link.app_id = ${appId} AND member.app_id = ${appId} AND link.role_id = role.id`;

interface CompileContext {
  appId: string;
  params: Params;
}

/**
 * Compiles a test of a relation. A relation equals a pointer to each of its members
 * (protocol/queries.md#relations), always exists and has no order.
 */
function compileMembersTest(
  relation: RelationColumn,
  test: PlainTest,
  context: CompileContext,
): string {
  switch (test.op) {
    case 'equal':
      return compileEquality(relation, [test.value], context);
    case 'notEqual':
      return negate(compileEquality(relation, [test.value], context));
    case 'in':
      return compileEquality(relation, test.values, context);
    case 'notIn':
      return negate(compileEquality(relation, test.values, context));
    case 'all':
      return test.values.length === 0
        ? 'false'
        : `(${test.values.map((value) => compileEquality(relation, [value], context)).join(' AND ')})`;
    case 'exists':
      return String(test.isThere);
    default:
      return 'false';
  }
}

function compileEquality(
  relation: RelationColumn,
  values: Json[],
  { appId, params }: CompileContext,
): string {
  const ids = values.flatMap((value) => {
    if (
      !isJsonObject(value) ||
      value.__type !== 'Pointer' ||
      value.className !== relation.className
    )
      return [];
    return typeof value.objectId === 'string' ? [value.objectId] : [];
  });
  // Return before parameters are added: PostgreSQL rejects unused parameters.
  if (ids.length === 0) return 'false';
  return `EXISTS (SELECT ${membersOf(relation, params.add(appId))}
    AND member.object_id = ANY(${params.add(ids)}::text[]))`;
}

/** Compiles a SELECT of pointers to the members of a row. */
const selectPointers = (relation: RelationColumn, { appId, params }: CompileContext): string =>
  `SELECT jsonb_build_object('__type', 'Pointer', 'className', '${relation.className}', 'objectId',
    member.object_id)
     ${membersOf(relation, params.add(appId))}`;

/**
 * Compiles `$relatedTo`: the rows that are members of one role. Matches nothing if the viewer may
 * not see the role (`isVisible`).
 */
function compileRelatedTest(
  { table, member }: RelationColumn,
  { appId, objectId, isVisible }: { appId: string; objectId: string; isVisible: string },
): string {
  return `id IN (SELECT ${member} FROM ${table} WHERE app_id = ${appId} AND role_id IN (
    SELECT id FROM role WHERE app_id = ${appId} AND object_id = ${objectId} AND ${isVisible}))`;
}

/** SQL of a subquery's rows without the SELECT list: `FROM … WHERE … ORDER BY … LIMIT …`. */
type RowsSql = string;

/**
 * Compiles `$inQuery`, `$select` and their negations. `itemsSql` selects the items of each row to
 * compare. The inner SELECT does not refer to the outer row, so PostgreSQL runs it once and finds
 * values by hash. `IS TRUE` prevents a join that runs once for each outer row.
 */
function compileSubqueryTest(
  itemsSql: string,
  { query, key, isNegated }: SubqueryTest,
  { rows, params }: { rows: RowsSql; params: Params },
): string {
  const items = `(${itemsSql}) AS items (item)`;
  const found = key
    ? `(item IN (SELECT value
      FROM (${selectValues(key, query.cls.jsonColumn, { rows, params })}) AS selected (value)
        WHERE value IS NOT NULL AND jsonb_typeof(value) <> 'null')) IS TRUE`
    : `item @> ${params.add(JSON.stringify({ __type: 'Pointer', className: query.cls.name }))}::jsonb
        AND ((item ->> 'objectId') IN (SELECT object_id ${rows})) IS TRUE`;
  const test = `EXISTS (SELECT FROM ${items} WHERE ${found})`;
  return isNegated ? negate(test) : test;
}

/**
 * Compiles a SELECT of the values to compare: the value of the field and, if it is an array, its
 * items.
 */
function selectItems(field: ValueField, json: string, params: Params): string {
  if ('column' in field)
    return field.column.type === 'textArray'
      ? `SELECT to_jsonb(${field.column.sql}) UNION ALL SELECT to_jsonb(one)
        FROM unnest(${field.column.sql}) AS one`
      : `SELECT ${columnValue(field.column)}`;
  const member = { column: json, path: field.path };
  return `SELECT one FROM ${valuesAt(member, params, '[*]')} AS one
    UNION ALL SELECT one FROM ${valuesAt(member, params, '')} AS one
      WHERE jsonb_typeof(one) = 'array'`;
}

/**
 * Compiles a SELECT of the values of a key in the rows of the subquery. If a value is an array, its
 * items are values too.
 */
function selectValues(
  key: ValueField,
  json: string,
  { rows, params }: { rows: RowsSql; params: Params },
): string {
  const whole =
    'column' in key
      ? `SELECT ${columnValue(key.column)} AS one ${rows}`
      : `SELECT one FROM (SELECT ${json} AS document ${rows}) AS chosen,
          ${valuesAt({ column: 'document', path: key.path }, params, '')} AS one`;
  return `SELECT part FROM (${whole}) AS whole,
    LATERAL (SELECT one UNION ALL SELECT jsonb_path_query(one, '$[*]')
      WHERE jsonb_typeof(one) = 'array') AS parts (part)`;
}

/** Compiles the value that a column has in a JSON document. */
function columnValue(column: OwnColumn): string {
  if (column.type === 'time')
    return `jsonb_build_object('__type', 'Date', 'iso',
      to_char(${column.sql} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
  return `to_jsonb(${column.type === 'text' ? (column.spelling ?? column.sql) : column.sql})`;
}
