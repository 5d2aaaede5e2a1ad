import { refuse } from '../../domain/errors/errors.ts';
import type { Condition, NearTest, SortKey } from '../condition.ts';
import { parseNames } from '../parse/names.ts';
import { type ClassSchema, type Field, isRelation, resolveField, type ValueField } from '../schema/fields.ts';
import { compileSortDistance } from '../sql/geo.ts';
import type { Params } from '../sql/params.ts';

/** Which of the rows that match, and in which order: the parameters that list calls and sub-queries share. */
const defaultLimit = 100;
const maxLimit = 1000;
const maxOrderKeys = 10;

/** "Anything outside 1…1000 is forced to 100", but nothing at all may be asked for with a count. */
export function parseLimit(value: unknown, hasCount: boolean): number {
  const limit = wholeNumber(value);
  if (limit === 0 && hasCount) return 0;
  return limit !== undefined && limit >= 1 && limit <= maxLimit ? limit : defaultLimit;
}

/** Throws 102. */
export function parseSkip(value: unknown): number {
  if (value === undefined || value === '') return 0;
  const skip = wholeNumber(value);
  if (skip === undefined) throw refuse('invalidQuery', 'skip takes a whole number.');
  return skip;
}

function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** `a,-b`: throws 102 when malformed, 105 for bad or hidden names. */
export function parseSortOrder(value: unknown, cls: ClassSchema): SortKey[] {
  if (value === undefined || value === '') return [];
  const names = parseNames(value, 'order', maxOrderKeys);
  return names.map((name) => {
    const isDescending = name.startsWith('-');
    return { field: requireValueField(resolveField(name.replace(/^[+-]/, ''), cls)), isDescending };
  });
}

/** A field that has a value of its own to compare by. Throws 102 for a relation. */
export function requireValueField(field: Field): ValueField {
  if (isRelation(field)) throw refuse('invalidQuery', `${field.name} is a relation, and has no value.`);
  return field;
}

/**
 * What follows ORDER BY. Rows without an order come nearest first where `$nearSphere` asks for it, else in the order
 * they were made; the id also decides between equal ones.
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

/** The first `$nearSphere` that every match must meet. */
function findNear(where: Condition): { path: string[]; test: NearTest } | undefined {
  if (where.kind === 'and') return where.all.map(findNear).find((near) => near !== undefined);
  if (where.kind !== 'field') return undefined;
  const { field, test } = where;
  return test.op === 'near' && 'path' in field ? { path: field.path, test } : undefined;
}

/** Missing members come first, as the smallest; jsonb has an order of its own over types. */
function compileSortKey({ field, isDescending }: SortKey, cls: ClassSchema, params: Params): string {
  const direction = isDescending ? 'DESC NULLS LAST' : 'ASC NULLS FIRST';
  if ('path' in field) return `(${cls.jsonColumn} #> ${params.add(field.path)}::text[]) ${direction}`;
  const { column } = field;
  const sql = column.type === 'text' ? (column.spelling ?? column.sql) : column.sql;
  return `${sql} ${direction}`;
}
