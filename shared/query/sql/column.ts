import { canonicalTime, timeOfDate } from '../../domain/client-values.ts';
import type { Json } from '../../domain/json.ts';
import type { Comparison, PlainTest } from '../condition.ts';
import { sqlPattern } from '../parse/regex.ts';
import type { OwnColumn, PlainColumn, TextColumn } from '../schema.ts';
import type { Params } from './params.ts';

/**
 * Compiles a test of a `text[]` column such as `channels`. Equality with a single value means that
 * the array contains the value (protocol/queries.md#arrays).
 */
function compileTextArrayTest(sql: string, test: PlainTest, params: Params): string {
  switch (test.op) {
    case 'equal':
      return compileOverlap(sql, [test.value], params);
    case 'in':
      return compileOverlap(sql, test.values, params);
    case 'all':
      return compileContainsAll(sql, test.values, params);
    case 'size':
      return `cardinality(${sql}) = ${params.add(test.size)}::int`;
    case 'compare':
      return compileItemComparison(sql, test, params);
    case 'regex':
      return `EXISTS (SELECT FROM unnest(${sql}) AS item
        WHERE item ~ ${params.add(sqlPattern(test.pattern))})`;
    default:
      return 'false';
  }
}

const isText = (value: Json): value is string => typeof value === 'string';
const isTextList = (value: Json): value is string[] => Array.isArray(value) && value.every(isText);

/**
 * Compiles a test that an array contains one of the texts, or equals one of the lists. Uses `@>`
 * and `&&`, because the GIN index on the column serves these operators.
 */
function compileOverlap(sql: string, values: Json[], params: Params): string {
  const texts = values.filter(isText);
  const parts: string[] = [];
  if (texts.length === 1) parts.push(`${sql} @> ${params.add(texts)}::text[]`);
  if (texts.length > 1) parts.push(`${sql} && ${params.add(texts)}::text[]`);
  for (const whole of values.filter(isTextList))
    parts.push(`${sql} = ${params.add(whole)}::text[]`);
  if (values.includes(null)) parts.push(`${sql} IS NULL`);
  return parts.length === 0 ? 'false' : `(${parts.join(' OR ')})`;
}

function compileContainsAll(sql: string, values: Json[], params: Params): string {
  if (values.length === 0) return 'false';
  if (values.every(isText)) return `${sql} @> ${params.add(values)}::text[]`;
  return `(${values.map((value) => compileOverlap(sql, [value], params)).join(' AND ')})`;
}

function compileItemComparison(
  sql: string,
  { operator, value }: Comparison,
  params: Params,
): string {
  if (value.type !== 'string') return 'false';
  return `EXISTS (SELECT FROM unnest(${sql}) AS item
    WHERE item COLLATE "C" ${operator} ${params.add(value.value)}::text)`;
}

type ScalarColumn = TextColumn | PlainColumn;

/**
 * Compiles a test of a member that has a column. A value whose type differs from the column's type
 * matches no row.
 */
export function compileColumnTest(column: OwnColumn, test: PlainTest, params: Params): string {
  if (test.op === 'notEqual')
    return negate(compileColumnTest(column, { op: 'equal', value: test.value }, params));
  if (test.op === 'notIn')
    return negate(compileColumnTest(column, { op: 'in', values: test.values }, params));
  if (test.op === 'exists') return `${valueSql(column)} IS ${test.isThere ? 'NOT NULL' : 'NULL'}`;
  return column.type === 'textArray'
    ? compileTextArrayTest(column.sql, test, params)
    : compileScalarTest(column, test, params);
}

/** Returns an expression that is null if the row does not have the member. */
const valueSql = (column: OwnColumn): string =>
  column.type === 'text' && column.shownIf !== undefined
    ? (column.spelling ?? column.sql)
    : column.sql;

/**
 * Negates a condition. NULL counts as false, so negations match rows without the member
 * (develop/queries.md).
 */
export const negate = (sql: string): string => `((${sql}) IS NOT TRUE)`;

function compileScalarTest(column: ScalarColumn, test: PlainTest, params: Params): string {
  switch (test.op) {
    case 'equal':
      return compileEquality(column, [test.value], params);
    case 'in':
      return compileEquality(column, test.values, params);
    case 'all':
      // A scalar equals all values only if the values are equal.
      return test.values.length === 0
        ? 'false'
        : `(${test.values.map((value) => compileEquality(column, [value], params)).join(' AND ')})`;
    case 'compare':
      return compileComparison(column, test, params);
    case 'regex':
      return column.type === 'text'
        ? `${column.spelling ?? column.sql} ~ ${params.add(sqlPattern(test.pattern))}`
        : 'false';
    default:
      return 'false';
  }
}

const sqlTypes = {
  text: 'text',
  boolean: 'boolean',
  integer: 'float8',
  time: 'timestamptz',
} as const;

/**
 * Compiles `<`, `<=`, `>` and `>=`. Texts are compared in the form that the client sent, by code
 * points (COLLATE "C"), whatever the database's collation is.
 */
function compileComparison(
  column: ScalarColumn,
  { operator, value }: Comparison,
  params: Params,
): string {
  const operand: Json = value.type === 'time' ? { __type: 'Date', iso: value.value } : value.value;
  if (column.type === 'text')
    return value.type === 'string'
      ? `(${column.spelling ?? column.sql} COLLATE "C") ${operator} ${params.add(value.value)}::text`
      : 'false';
  const storable = toStored(column, operand);
  return storable === undefined
    ? 'false'
    : `${column.sql} ${operator} ${params.add(storable)}::${sqlTypes[column.type]}`;
}

function compileEquality(column: ScalarColumn, values: Json[], params: Params): string {
  const storable = values.flatMap((value) => storedValues(column, value));
  const type = sqlTypes[column.type];
  const parts: string[] = [];
  const shown =
    column.type === 'text' && column.shownIf !== undefined ? ` AND ${column.shownIf}` : '';
  if (storable.length === 1)
    parts.push(`${column.sql} = ${params.add(storable[0])}::${type}${shown}`);
  if (storable.length > 1)
    parts.push(`${column.sql} = ANY(${params.add(storable)}::${type}[])${shown}`);
  if (values.includes(null)) parts.push(`${valueSql(column)} IS NULL`);
  if (parts.length === 0) return 'false';
  return parts.length === 1 && shown === '' ? parts.join() : `(${parts.join(' OR ')})`;
}

/**
 * Returns the stored values that match a client's value. The list is empty if the column cannot
 * hold the value.
 */
function storedValues(column: ScalarColumn, value: Json): readonly (string | number | boolean)[] {
  if (column.type === 'text' && column.storedFormsOf && typeof value === 'string')
    return column.storedFormsOf(value);
  const stored = toStored(column, value);
  return stored === undefined ? [] : [stored];
}

/** Converts a value to the column's type. Returns undefined if the column cannot hold the value. */
function toStored(column: ScalarColumn, value: Json): string | number | boolean | undefined {
  switch (column.type) {
    case 'text':
      if (typeof value !== 'string') return undefined;
      return column.canonical ? column.canonical(value) : value;
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    case 'integer':
      return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined;
    case 'time': {
      // A Date is an object. Old clients send a plain ISO text instead.
      const text = typeof value === 'string' ? canonicalTime(value) : timeOfDate(value);
      // PostgreSQL has no year 0: the year before 1 is 1 BC.
      return text?.replace(/^0000(.*)/, '0001$1 BC');
    }
  }
}
