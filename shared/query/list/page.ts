import { refuse } from '../../domain/errors/errors.ts';
import type { Condition, NearTest, SortKey } from '../condition.ts';
import { parseNames } from '../parse/operators.ts';
import {
  type ClassSchema,
  type Field,
  isRelation,
  resolveField,
  type ValueField,
} from '../schema.ts';
import { compileSortDistance } from '../sql/json.ts';
import type { Params } from '../sql/params.ts';

/** Defaults and limits of the parameters that list calls and subqueries share. */
const defaultLimit = 100;
const maxLimit = 1000;
const maxOrderKeys = 10;

/** Parses `limit`. A value outside 1 to 1,000 counts as 100. 0 is allowed with a count. */
export function parseLimit(value: unknown, hasCount: boolean): number {
  const limit = wholeNumber(value);
  if (limit === 0 && hasCount) return 0;
  return limit !== undefined && limit >= 1 && limit <= maxLimit ? limit : defaultLimit;
}

/** Parses `skip`. Throws error 102. */
export function parseSkip(value: unknown): number {
  if (value === undefined || value === '') return 0;
  const skip = wholeNumber(value);
  if (skip === undefined) throw refuse('invalidQuery', 'skip takes a whole number.');
  return skip;
}

function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0
    ? number
    : undefined;
}

/**
 * Parses a sort order such as `a,-b`. Throws error 102 if it is malformed, error 105 if a name is
 * invalid or hidden.
 */
export function parseSortOrder(value: unknown, cls: ClassSchema): SortKey[] {
  if (value === undefined || value === '') return [];
  const names = parseNames(value, 'order', maxOrderKeys);
  return names.map((name) => {
    const isDescending = name.startsWith('-');
    return { field: requireValueField(resolveField(name.replace(/^[+-]/, ''), cls)), isDescending };
  });
}

/** Returns the field if it has a value to compare. Throws error 102 if it is a relation. */
export function requireValueField(field: Field): ValueField {
  if (isRelation(field))
    throw refuse('invalidQuery', `${field.name} is a relation, and has no value.`);
  return field;
}

/**
 * Compiles the ORDER BY list. Without a sort order, rows are sorted by the distance of a
 * `$nearSphere`, otherwise by age. The id orders rows with equal keys.
 */
export function compileSortOrder(
  { where, sortOrder }: { where: Condition; sortOrder: SortKey[] },
  cls: ClassSchema,
  params: Params,
): string {
  const near = sortOrder.length === 0 ? findNear(where) : undefined;
  const keys = near
    ? [compileSortDistance({ column: cls.jsonColumn, path: near.path }, near.test.point, params)]
    : sortOrder.map((key) => compileSortKey(key, cls, params));
  return [...keys, 'id'].join(', ');
}

/** Returns the first `$nearSphere` that is not inside `$or`. */
function findNear(where: Condition): { path: string[]; test: NearTest } | undefined {
  if (where.kind === 'and') return where.all.map(findNear).find((near) => near !== undefined);
  if (where.kind !== 'field') return undefined;
  const { field, test } = where;
  return test.op === 'near' && 'path' in field ? { path: field.path, test } : undefined;
}

/**
 * Compiles one sort key. Missing members sort as the smallest value. jsonb defines the order of
 * values of different types.
 */
function compileSortKey(
  { field, isDescending }: SortKey,
  cls: ClassSchema,
  params: Params,
): string {
  const direction = isDescending ? 'DESC NULLS LAST' : 'ASC NULLS FIRST';
  if ('path' in field)
    return `(${cls.jsonColumn} #> ${params.add(field.path)}::text[]) ${direction}`;
  const { column } = field;
  const sql = column.type === 'text' ? (column.spelling ?? column.sql) : column.sql;
  return `${sql} ${direction}`;
}
