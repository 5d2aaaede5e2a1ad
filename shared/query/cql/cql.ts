import { refuse } from '../../domain/errors/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { pathOf } from '../schema/fields.ts';
import { readCondition } from './condition.ts';
import { Cursor } from './cursor.ts';
import { syntaxError } from './tokens.ts';

/** A statement as the parameters of a list call (protocol/queries.md#query-parameters). */
export interface CqlQuery {
  className: string;
  where: Json;
  /** Empty: all. */
  keys: string[];
  include: string[];
  hasCount: boolean;
  limit: number | undefined;
  skip: number | undefined;
  order: string | undefined;
}

/** Rows of a sub-query where it names no limit. */
const subqueryLimit = 1000;

/** Reads a `select` (protocol/queries.md#cql); `given` are the values of its placeholders. Throws 300. */
export function parseCql(cql: unknown, given: Json[] = []): CqlQuery {
  if (typeof cql !== 'string') throw syntaxError('cql takes a text');
  const cursor = new Cursor(cql, given);
  const query = readSelect(cursor);
  cursor.needEnd();
  return query;
}

function readSelect(cursor: Cursor): CqlQuery {
  if (!cursor.takeWords('select')) throw syntaxError('only select is served');
  const fields = readFields(cursor);
  cursor.needWords('from');
  const className = cursor.needName();
  const where = cursor.takeWords('where') ? readCondition(cursor, readSubquery) : {};
  return { className, where, ...fields, ...readPage(cursor, fields) };
}

type Fields = Pick<CqlQuery, 'keys' | 'include' | 'hasCount'> & { isCountOnly: boolean };

/** `*`, names, `count(*)` or `count(objectId)`, which counts the same, and `include x`, which selects `x` too where it is not all that is selected. */
function readFields(cursor: Cursor): Fields {
  const keys: string[] = [];
  const include: string[] = [];
  let [hasCount, hasAll] = [false, false];
  do {
    if (cursor.takeSign('*')) hasAll = true;
    else if (cursor.takeFunction('count')) {
      if (!cursor.takeSign('*')) pathOf(cursor.needName());
      cursor.needSign(')');
      hasCount = true;
    } else if (cursor.takeWords('include')) include.push(cursor.needName());
    else if (cursor.takeSign('-')) keys.push(`-${cursor.needName()}`);
    else keys.push(cursor.needName());
  } while (cursor.takeSign(','));
  const isCountOnly = hasCount && !hasAll && keys.length + include.length === 0;
  const isSome = !hasAll && keys.some((name) => !name.startsWith('-'));
  return {
    keys: hasAll ? [] : [...keys, ...(isSome ? include.map(firstName) : [])],
    include,
    hasCount,
    isCountOnly,
  };
}

const firstName = (name: string): string => name.split('.')[0] ?? name;

type Page = Pick<CqlQuery, 'limit' | 'skip' | 'order'>;

/** `limit` and `order by`, in either order; `limit 10, 20` leaves ten out. */
function readPage(cursor: Cursor, { isCountOnly }: Fields): Page {
  const page: Page = { limit: isCountOnly ? 0 : undefined, skip: undefined, order: undefined };
  for (;;) {
    if (cursor.takeWords('limit')) {
      const first = cursor.needWholeNumber();
      const isSecond = cursor.takeSign(',');
      page.limit = isSecond ? cursor.needWholeNumber() : first;
      if (isSecond) page.skip = first;
    } else if (cursor.takeWords('order', 'by')) page.order = readOrder(cursor);
    else return page;
  }
}

function readOrder(cursor: Cursor): string {
  const keys: string[] = [];
  do {
    const sign = cursor.takeSign('-') ? '-' : '';
    cursor.takeSign('+');
    const name = cursor.needName();
    if (cursor.takeWords('desc')) keys.push(`-${name}`);
    else keys.push(cursor.takeWords('asc') ? name : sign + name);
  } while (cursor.takeSign(','));
  return keys.join(',');
}

/** Its one field is what is compared with. */
function readSubquery(cursor: Cursor): JsonObject {
  const { className, where, keys, include, hasCount, limit, skip, order } = readSelect(cursor);
  const [key, ...more] = keys;
  if (key === undefined || more.length + include.length > 0 || hasCount)
    throw syntaxError('a query inside another selects one field');
  const query = { className, where, limit: limit ?? subqueryLimit, skip: skip ?? 0, order: order ?? '' };
  return { key, query };
}

/**
 * The body of a push with its `cql` as `where` (protocol/queries.md#cql). Throws 1 when it has both, 300 for a statement that
 * does not say which installations are meant.
 */
export function withoutCql({ cql, ...body }: JsonObject): JsonObject {
  if (cql === undefined || cql === null) return body;
  if (body.where !== undefined && body.where !== null)
    throw refuse('invalidParameter', 'where and cql exclude each other.');
  const { className, where, limit, skip } = parseCql(cql);
  if (className !== '_Installation') throw syntaxError('a push goes to _Installation');
  if (limit !== undefined || skip !== undefined) throw syntaxError('the targets of a push have no limit');
  return { ...body, where };
}
