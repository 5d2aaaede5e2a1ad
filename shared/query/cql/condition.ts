import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import type { Cursor } from './cursor.ts';
import { syntaxError } from './tokens.ts';

/** What stands in place of a list: gives the operand of `$select`. */
export type ReadSubquery = (cursor: Cursor) => Json;

/** Parentheses inside one another. */
const maxDepth = 10;

/** `a = 1 and (b > 2 or …)` as a `where` (protocol/queries.md#cql). Throws 300. */
export function readCondition(cursor: Cursor, readSubquery: ReadSubquery, depth = 0): Json {
  if (depth > maxDepth) throw syntaxError('the condition is nested too deeply');
  const readOne = (): Json => {
    if (!cursor.takeSign('(')) return readPredicate(cursor, readSubquery);
    const inner = readCondition(cursor, readSubquery, depth + 1);
    cursor.needSign(')');
    return inner;
  };
  const readAll = (): Json => joined('$and', readSeparated(cursor, 'and', readOne));
  return joined('$or', readSeparated(cursor, 'or', readAll));
}

function readSeparated(cursor: Cursor, word: string, read: () => Json): Json[] {
  const parts = [read()];
  while (cursor.takeWords(word)) parts.push(read());
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

function readPredicate(cursor: Cursor, readSubquery: ReadSubquery): JsonObject {
  if (cursor.takeFunction('size')) {
    const field = cursor.needName();
    cursor.needSign(')');
    cursor.needSign('=');
    return { [field]: { $size: cursor.needValue() } };
  }
  if (cursor.takeWords('related', 'to')) {
    const key = cursor.needName();
    cursor.needWords('from');
    return { $relatedTo: { object: cursor.needValue(), key } };
  }
  const field = cursor.needName();
  return { [field]: readTest(cursor, readSubquery) };
}

function readTest(cursor: Cursor, readSubquery: ReadSubquery): Json {
  if (cursor.takeSign('='))
    return readSelected(cursor, readSubquery, '$select') ?? equalTo(cursor.needValue());
  for (const [sign, operator] of comparisons)
    if (cursor.takeSign(sign)) {
      const query = operator === '$ne' ? readSelected(cursor, readSubquery, '$dontSelect') : undefined;
      return query ?? { [operator]: cursor.needValue() };
    }
  if (cursor.takeWords('is')) return readState(cursor);
  if (cursor.takeWords('not', 'in'))
    return readSelected(cursor, readSubquery, '$dontSelect') ?? { $nin: cursor.needList() };
  if (cursor.takeWords('in'))
    return readSelected(cursor, readSubquery, '$select') ?? { $in: cursor.needList() };
  if (cursor.takeWords('all')) return { $all: cursor.needList() };
  if (cursor.takeWords('like')) return { $regex: patternOf(cursor.needText()), $options: 's' };
  if (cursor.takeWords('regexp')) return { $regex: cursor.needText() };
  if (cursor.takeWords('near')) return readNear(cursor);
  if (cursor.takeWords('within')) return readBox(cursor);
  throw cursor.wrong('a comparison');
}

/** A value that came through a placeholder is a value, whatever operators it holds. */
const equalTo = (value: Json): Json => (isJsonObject(value) ? { $eq: value } : value);

/** A sub-query in parentheses; undefined when none comes next. */
function readSelected(cursor: Cursor, readSubquery: ReadSubquery, operator: string): Json | undefined {
  if (!cursor.takeSubquery()) return undefined;
  const operand = readSubquery(cursor);
  cursor.needSign(')');
  return { [operator]: operand };
}

function readState(cursor: Cursor): Json {
  const isNegated = cursor.takeWords('not');
  if (cursor.takeWords('exists')) return { $exists: !isNegated };
  cursor.needWords('null');
  return isNegated ? { $ne: null } : null;
}

const units: [string, string][] = [
  ['km', '$maxDistanceInKilometers'],
  ['miles', '$maxDistanceInMiles'],
  ['radians', '$maxDistanceInRadians'],
];

function readNear(cursor: Cursor): Json {
  const point = cursor.needPoint();
  if (!cursor.takeWords('max')) return { $nearSphere: point };
  const distance = cursor.needValue();
  for (const [word, operator] of units)
    if (cursor.takeWords(word)) return { $nearSphere: point, [operator]: distance };
  throw cursor.wrong('km, miles or radians');
}

function readBox(cursor: Cursor): Json {
  const southwest = cursor.needPoint();
  cursor.needWords('and');
  return { $within: { $box: [southwest, cursor.needPoint()] } };
}

/** `%` stands for any text, everything else for itself. */
function patternOf(like: string): string {
  const parts = like.split('%').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return `^${parts.join('.*')}$`;
}
