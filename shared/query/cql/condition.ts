import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import { syntaxError, type TokenReader } from './tokens.ts';

/** Parses a subquery in place of a list. Returns the operand of `$select`. */
export type ReadSubquery = (reader: TokenReader) => Json;

/** Maximum depth of nested parentheses. */
const maxDepth = 10;

/** Parses `a = 1 and (b > 2 or …)` into a `where` (protocol/queries.md#cql). Throws error 300. */
export function readCondition(reader: TokenReader, readSubquery: ReadSubquery, depth = 0): Json {
  if (depth > maxDepth) throw syntaxError('the condition is nested too deeply');
  const readOne = (): Json => {
    if (!reader.acceptSign('(')) return readPredicate(reader, readSubquery);
    const inner = readCondition(reader, readSubquery, depth + 1);
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
