import type { SubqueryTest } from '../condition.ts';
import type { OwnColumn, ValueField } from '../schema/fields.ts';
import { negate } from './column.ts';
import { valuesAt } from './json-path.ts';
import type { Params } from './params.ts';

/** Rows of a subquery as the end of a SELECT: `FROM … WHERE … ORDER BY … LIMIT …`. */
export type RowsSql = string;

/**
 * Compiles `$inQuery`, `$select` and their negations over the items that `itemsSql` selects for each row. The inner
 * SELECT does not refer to the outer row, so PostgreSQL runs it once and looks up its result by hash; `IS TRUE` keeps
 * the planner from joining once per outer row instead.
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

/** Compiles a SELECT of the values to compare: the field, and the items of an array. */
export function selectItems(field: ValueField, json: string, params: Params): string {
  if ('column' in field)
    return field.column.type === 'textArray'
      ? `SELECT to_jsonb(${field.column.sql}) UNION ALL SELECT to_jsonb(one) FROM unnest(${field.column.sql}) AS one`
      : `SELECT ${columnValue(field.column)}`;
  const member = { column: json, path: field.path };
  return `SELECT one FROM ${valuesAt(member, params, '[*]')} AS one
    UNION ALL SELECT one FROM ${valuesAt(member, params, '')} AS one WHERE jsonb_typeof(one) = 'array'`;
}

/** Compiles a SELECT of the values of a key in the subquery's rows, and the items of arrays. */
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

/** Compiles a column as the JSON value of a document. */
function columnValue(column: OwnColumn): string {
  if (column.type === 'time')
    return `jsonb_build_object('__type', 'Date', 'iso',
      to_char(${column.sql} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
  return `to_jsonb(${column.type === 'text' ? (column.spelling ?? column.sql) : column.sql})`;
}
