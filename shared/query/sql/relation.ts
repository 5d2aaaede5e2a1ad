import { isJsonObject, type Json } from '../../domain/json.ts';
import type { PlainTest, SubqueryTest } from '../condition.ts';
import type { OwnColumn, RelationColumn, ValueField } from '../schema.ts';
import { negate } from './column.ts';
import { valuesAt } from './json.ts';
import type { Params } from './params.ts';

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
export function compileMembersTest(
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
  return `EXISTS (SELECT ${membersOf(relation, params.add(appId))} AND member.object_id = ANY(${params.add(ids)}::text[]))`;
}

/** Compiles a SELECT of pointers to the members of a row. */
export const selectPointers = (
  relation: RelationColumn,
  { appId, params }: CompileContext,
): string =>
  `SELECT jsonb_build_object('__type', 'Pointer', 'className', '${relation.className}', 'objectId', member.object_id)
     ${membersOf(relation, params.add(appId))}`;

/**
 * Compiles `$relatedTo`: the rows that are members of one role. Matches nothing if the viewer may
 * not see the role (`isVisible`).
 */
export function compileRelatedTest(
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
export function compileSubqueryTest(
  itemsSql: string,
  { query, key, isNegated }: SubqueryTest,
  { rows, params }: { rows: RowsSql; params: Params },
): string {
  const items = `(${itemsSql}) AS items (item)`;
  const found = key
    ? `(item IN (SELECT value FROM (${selectValues(key, query.cls.jsonColumn, { rows, params })}) AS selected (value)
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
export function selectItems(field: ValueField, json: string, params: Params): string {
  if ('column' in field)
    return field.column.type === 'textArray'
      ? `SELECT to_jsonb(${field.column.sql}) UNION ALL SELECT to_jsonb(one) FROM unnest(${field.column.sql}) AS one`
      : `SELECT ${columnValue(field.column)}`;
  const member = { column: json, path: field.path };
  return `SELECT one FROM ${valuesAt(member, params, '[*]')} AS one
    UNION ALL SELECT one FROM ${valuesAt(member, params, '')} AS one WHERE jsonb_typeof(one) = 'array'`;
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
    LATERAL (SELECT one UNION ALL SELECT jsonb_path_query(one, '$[*]') WHERE jsonb_typeof(one) = 'array') AS parts (part)`;
}

/** Compiles the value that a column has in a JSON document. */
function columnValue(column: OwnColumn): string {
  if (column.type === 'time')
    return `jsonb_build_object('__type', 'Date', 'iso',
      to_char(${column.sql} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
  return `to_jsonb(${column.type === 'text' ? (column.spelling ?? column.sql) : column.sql})`;
}
