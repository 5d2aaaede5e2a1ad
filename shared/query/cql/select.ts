import { refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import { parsePath } from '../schema.ts';
import { syntaxError, TokenReader } from './tokens.ts';

/** Parameters of a list call, parsed from a statement (protocol/queries.md#query-parameters). */
export interface CqlQuery {
  className: string;
  where: Json;
  /** Empty if all members are selected. */
  keys: string[];
  include: string[];
  hasCount: boolean;
  limit: number | undefined;
  skip: number | undefined;
  order: string | undefined;
}

/** Default limit of a subquery. */
const subqueryLimit = 1000;

/** Parses a `select` (protocol/queries.md#cql). Throws error 300. */
export function parseCql(cql: unknown, placeholderValues: Json[] = []): CqlQuery {
  if (typeof cql !== 'string') throw syntaxError('cql takes a text');
  const reader = new TokenReader(cql, placeholderValues);
  const query = readSelect(reader);
  reader.expectEnd();
  return query;
}

function readSelect(reader: TokenReader): CqlQuery {
  if (!reader.acceptWords('select')) throw syntaxError('only select is served');
  const fields = readFields(reader);
  reader.expectWords('from');
  const className = reader.expectName();
  const where = reader.acceptWords('where') ? readCondition(reader, readSubquery) : {};
  return { className, where, ...fields, ...readPage(reader, fields) };
}

type SelectedFields = Pick<CqlQuery, 'keys' | 'include' | 'hasCount'> & { isCountOnly: boolean };

/**
 * Parses `*`, names, `count(*)`, `count(objectId)` (the same as `count(*)`) and `include x`.
 * `include x` also selects `x`, unless everything is selected.
 */
function readFields(reader: TokenReader): SelectedFields {
  const keys: string[] = [];
  const include: string[] = [];
  let [hasCount, hasAll] = [false, false];
  do {
    if (reader.acceptSign('*')) hasAll = true;
    else if (reader.acceptFunction('count')) {
      if (!reader.acceptSign('*')) parsePath(reader.expectName());
      reader.expectSign(')');
      hasCount = true;
    } else if (reader.acceptWords('include')) include.push(reader.expectName());
    else if (reader.acceptSign('-')) keys.push(`-${reader.expectName()}`);
    else keys.push(reader.expectName());
  } while (reader.acceptSign(','));
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

type PageClauses = Pick<CqlQuery, 'limit' | 'skip' | 'order'>;

/** Parses `limit` and `order by`, in either order. `limit 10, 20` skips ten rows. */
function readPage(reader: TokenReader, { isCountOnly }: SelectedFields): PageClauses {
  const page: PageClauses = {
    limit: isCountOnly ? 0 : undefined,
    skip: undefined,
    order: undefined,
  };
  for (;;) {
    if (reader.acceptWords('limit')) {
      const first = reader.expectWholeNumber();
      const isSecond = reader.acceptSign(',');
      page.limit = isSecond ? reader.expectWholeNumber() : first;
      if (isSecond) page.skip = first;
    } else if (reader.acceptWords('order', 'by')) page.order = readOrder(reader);
    else return page;
  }
}

function readOrder(reader: TokenReader): string {
  const keys: string[] = [];
  do {
    const sign = reader.acceptSign('-') ? '-' : '';
    reader.acceptSign('+');
    const name = reader.expectName();
    if (reader.acceptWords('desc')) keys.push(`-${name}`);
    else keys.push(reader.acceptWords('asc') ? name : sign + name);
  } while (reader.acceptSign(','));
  return keys.join(',');
}

/** Parses a nested query. Its only field is the value to compare with. */
function readSubquery(reader: TokenReader): JsonObject {
  const { className, where, keys, include, hasCount, limit, skip, order } = readSelect(reader);
  const [key, ...more] = keys;
  if (key === undefined || more.length + include.length > 0 || hasCount)
    throw syntaxError('a query inside another selects one field');
  const query = {
    className,
    where,
    limit: limit ?? subqueryLimit,
    skip: skip ?? 0,
    order: order ?? '',
  };
  return { key, query };
}

/**
 * Returns the body of a push in which `where` replaces `cql` (protocol/queries.md#cql). Throws
 * error 1 if the body has both, error 300 if the statement does not select installations.
 */
export function withoutCql({ cql, ...body }: JsonObject): JsonObject {
  if (cql === undefined || cql === null) return body;
  if (body.where !== undefined && body.where !== null)
    throw refuse('invalidParameter', 'where and cql exclude each other.');
  const { className, where, limit, skip } = parseCql(cql);
  if (className !== '_Installation') throw syntaxError('a push goes to _Installation');
  if (limit !== undefined || skip !== undefined)
    throw syntaxError('the targets of a push have no limit');
  return { ...body, where };
}

/** Parses a subquery in place of a list. Returns the operand of `$select`. */
export type ReadSubquery = (reader: TokenReader) => Json;

/** Parses `a = 1 and (b > 2 or …)` into a `where` (protocol/queries.md#cql). Throws error 300. */
export function readCondition(reader: TokenReader, readSubquery: ReadSubquery): Json {
  const readOne = (): Json => {
    if (!reader.acceptSign('(')) return readPredicate(reader, readSubquery);
    const inner = readCondition(reader, readSubquery);
    reader.expectSign(')');
    return inner;
  };
  const readAll = (): Json => joined('$and', readSeparated(reader, 'and', readOne));
  return joined('$or', readSeparated(reader, 'or', readAll));
}

function readSeparated(reader: TokenReader, word: string, read: () => Json): Json[] {
  const parts = [read()];
  while (reader.acceptWords(word)) parts.push(read());
  return parts;
}

const joined = (operator: '$and' | '$or', parts: Json[]): Json =>
  parts.length === 1 ? (parts[0] ?? {}) : { [operator]: parts };

const comparisons: [string, string][] = [
  ['!=', '$ne'],
  ['<>', '$ne'],
  ['<=', '$lte'],
  ['>=', '$gte'],
  ['<', '$lt'],
  ['>', '$gt'],
];

function readPredicate(reader: TokenReader, readSubquery: ReadSubquery): JsonObject {
  if (reader.acceptFunction('size')) {
    const field = reader.expectName();
    reader.expectSign(')');
    reader.expectSign('=');
    return { [field]: { $size: reader.expectValue() } };
  }
  if (reader.acceptWords('related', 'to')) {
    const key = reader.expectName();
    reader.expectWords('from');
    return { $relatedTo: { object: reader.expectValue(), key } };
  }
  const field = reader.expectName();
  return { [field]: readTest(reader, readSubquery) };
}

function readTest(reader: TokenReader, readSubquery: ReadSubquery): Json {
  if (reader.acceptSign('='))
    return readSelected(reader, readSubquery, '$select') ?? equalTo(reader.expectValue());
  for (const [sign, operator] of comparisons)
    if (reader.acceptSign(sign)) {
      const query =
        operator === '$ne' ? readSelected(reader, readSubquery, '$dontSelect') : undefined;
      return query ?? { [operator]: reader.expectValue() };
    }
  if (reader.acceptWords('is')) return readState(reader);
  if (reader.acceptWords('not', 'in'))
    return readSelected(reader, readSubquery, '$dontSelect') ?? { $nin: reader.expectList() };
  if (reader.acceptWords('in'))
    return readSelected(reader, readSubquery, '$select') ?? { $in: reader.expectList() };
  if (reader.acceptWords('all')) return { $all: reader.expectList() };
  if (reader.acceptWords('like')) return { $regex: patternOf(reader.expectText()), $options: 's' };
  if (reader.acceptWords('regexp')) return { $regex: reader.expectText() };
  if (reader.acceptWords('near')) return readNear(reader);
  if (reader.acceptWords('within')) return readBox(reader);
  throw reader.unexpected('a comparison');
}

/** Wraps an object in `$eq`, so that the value of a placeholder cannot act as operators. */
const equalTo = (value: Json): Json => (isJsonObject(value) ? { $eq: value } : value);

/**
 * Parses a subquery in parentheses. Returns undefined if the next token does not open a subquery.
 */
function readSelected(
  reader: TokenReader,
  readSubquery: ReadSubquery,
  operator: string,
): Json | undefined {
  if (!reader.acceptSubquery()) return undefined;
  const operand = readSubquery(reader);
  reader.expectSign(')');
  return { [operator]: operand };
}

function readState(reader: TokenReader): Json {
  const isNegated = reader.acceptWords('not');
  if (reader.acceptWords('exists')) return { $exists: !isNegated };
  reader.expectWords('null');
  return isNegated ? { $ne: null } : null;
}

const units: [string, string][] = [
  ['km', '$maxDistanceInKilometers'],
  ['miles', '$maxDistanceInMiles'],
  ['radians', '$maxDistanceInRadians'],
];

function readNear(reader: TokenReader): Json {
  const point = reader.expectPoint();
  if (!reader.acceptWords('max')) return { $nearSphere: point };
  const distance = reader.expectValue();
  for (const [word, operator] of units)
    if (reader.acceptWords(word)) return { $nearSphere: point, [operator]: distance };
  throw reader.unexpected('km, miles or radians');
}

function readBox(reader: TokenReader): Json {
  const southwest = reader.expectPoint();
  reader.expectWords('and');
  return { $within: { $box: [southwest, reader.expectPoint()] } };
}

/** Converts a `like` pattern: `%` matches any text, and all other characters are literals. */
function patternOf(like: string): string {
  const parts = like.split('%').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return `^${parts.join('.*')}$`;
}
