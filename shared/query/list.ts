import { refuse } from '../domain/errors.ts';
import { compileWhere } from './compile.ts';
import { type ClassSchema, type Field, resolveField } from './fields.ts';
import { type Keys, parseKeys } from './keys.ts';
import { Params } from './params.ts';
import { parseWhere } from './parse.ts';
import type { Condition } from './tree.ts';

/** The parameters of a list call, checked (compat.md 3.1). */
export interface ListQuery {
  where: Condition;
  /** 0 only together with `hasCount`. */
  limit: number;
  skip: number;
  order: OrderKey[];
  keys: Keys | undefined;
  hasCount: boolean;
}

export interface OrderKey {
  field: Field;
  isDescending: boolean;
}

const defaultLimit = 100;
const maxLimit = 1000;
const maxOrderKeys = 10;

/**
 * Reads `where`, `limit`, `skip`, `order`, `keys` and `count` of a query string; other parameters are
 * ignored. Throws 102, 105, 106 or 111.
 */
export function parseListQuery(query: Record<string, unknown>, cls: ClassSchema): ListQuery {
  const hasCount = ['1', 'true', 1, true].some((yes) => query.count === yes);
  return {
    where: parseWhere(query.where, cls),
    limit: limitOf(query.limit, hasCount),
    skip: skipOf(query.skip),
    order: parseOrder(query.order, cls),
    keys: parseKeys(query.keys),
    hasCount,
  };
}

/** "Anything outside 1…1000 is forced to 100", but nothing at all may be asked for with a count. */
function limitOf(value: unknown, hasCount: boolean): number {
  const limit = wholeNumber(value);
  if (limit === 0 && hasCount) return 0;
  return limit !== undefined && limit >= 1 && limit <= maxLimit ? limit : defaultLimit;
}

function skipOf(value: unknown): number {
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
export function parseOrder(value: unknown, cls: ClassSchema): OrderKey[] {
  if (value === undefined || value === '') return [];
  if (typeof value !== 'string') throw refuse('invalidQuery', 'order takes a text.');
  const names = value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length > maxOrderKeys) throw refuse('invalidQuery', `order takes at most ${maxOrderKeys} names.`);
  return names.map((name) => {
    const isDescending = name.startsWith('-');
    return { field: resolveField(name.replace(/^[+-]/, ''), cls), isDescending };
  });
}

/** A list call as SQL: `$1` is the app id, the rest is what `values` holds. */
export interface Selection {
  condition: string;
  orderBy: string;
  values: unknown[];
  /** The condition uses this many of the values, from the first on; the order uses the rest. */
  conditionValues: number;
  limit: number;
  skip: number;
}

/**
 * Rows without an order come in the order they were made; the id also decides between equal ones. `restrict` gives a
 * condition of our own, such as who may read a row.
 */
export function compileList(
  list: ListQuery,
  cls: ClassSchema,
  { appId, restrict }: { appId: string; restrict?: (params: Params) => string },
): Selection {
  const params = new Params([appId]);
  const where = compileWhere(list.where, cls, params);
  const condition = restrict ? `(${where} AND ${restrict(params)})` : where;
  const conditionValues = params.values.length;
  const orderBy = [...list.order.map((key) => compileOrderKey(key, cls, params)), 'id'].join(', ');
  return { condition, orderBy, values: params.values, conditionValues, limit: list.limit, skip: list.skip };
}

/** Missing members come first, as the smallest; jsonb has an order of its own over types. */
function compileOrderKey({ field, isDescending }: OrderKey, cls: ClassSchema, params: Params): string {
  const direction = isDescending ? 'DESC NULLS LAST' : 'ASC NULLS FIRST';
  if ('path' in field) return `(${cls.json} #> ${params.add(field.path)}::text[]) ${direction}`;
  const { column } = field;
  const sql = column.type === 'text' ? (column.spelling ?? column.sql) : column.sql;
  return `${sql} ${direction}`;
}
