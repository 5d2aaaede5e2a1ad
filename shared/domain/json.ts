import { refuse } from './errors/errors.ts';
import { InexactNumber, parseExactly as parseExactNumbers } from './exact-numbers.ts';
import { detail } from './texts/texts.ts';

/**
 * JSON value of a body or a jsonb column. An integer that a double cannot represent is a bigint
 * (`parseJson`). Code that computes with numbers refuses bigints like other wrong types.
 */
export type Json = null | boolean | number | bigint | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

/** True if a value is a JSON object: not null and not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Maximum size of a number, boolean or null in JSON, including its comma. */
const maxScalarBytes = 32;

/**
 * Returns an upper limit for the size of the value as JSON in UTF-8, at a tenth of the cost of
 * `JSON.stringify`. A character needs at most six bytes.
 */
export function jsonBytesAtMost(value: Json): number {
  if (typeof value === 'string') return 6 * value.length + 3;
  if (typeof value === 'bigint') return String(value).length + 1;
  if (typeof value !== 'object' || value === null) return maxScalarBytes;
  let bytes = 3;
  if (Array.isArray(value)) for (const item of value) bytes += jsonBytesAtMost(item);
  else
    for (const name of Object.keys(value))
      bytes += 6 * name.length + 3 + jsonBytesAtMost(value[name] ?? null);
  return bytes;
}

interface JsonBounds {
  /**
   * Maximum nesting of arrays and objects. Recursive code (schemas, `JSON.stringify`) overflows the
   * stack at a few thousand levels.
   */
  depth: number;
  /**
   * Maximum number of members, elements, arrays and objects. Parsing a million values blocks the
   * process for a second.
   */
  values: number;
}

/**
 * Limits of all JSON text from outside. A batch of 1000 objects with 250 members each is just
 * allowed.
 */
export const jsonBounds: JsonBounds = { depth: 100, values: 250_000 };

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts the values of JSON text without building them. Returns undefined if the text exceeds
 * `bounds`. Takes one linear pass. Invalid text is counted as `JSON.parse` reads it up to its first
 * error.
 */
export function measureJson(text: string, bounds: JsonBounds = jsonBounds): number | undefined {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === comma) values += 1;
    else if (code === openArray || code === openObject) {
      depth += 1;
      values += 1;
      if (depth > bounds.depth) return undefined;
    } else if (code === closeArray || code === closeObject) depth -= 1;
    if (values > bounds.values) return undefined;
  }
  return values;
}

/**
 * Returns the index of the quote that ends the string at `start`, or the length of the text if
 * the string does not end.
 */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

/**
 * Parses JSON text from outside without changing a number: an integer that a double cannot
 * represent becomes a bigint. Throws a SyntaxError if the text is invalid or exceeds `bounds`.
 * Throws error 111 with the path of a number that would change.
 */
export function parseJson(text: string, bounds: JsonBounds = jsonBounds): Json {
  if (measureJson(text, bounds) === undefined)
    throw new SyntaxError('nested too deeply, or too many values');
  return parseExactly(text);
}

/**
 * Parses JSON text like `parseJson`, but without limits. For text that we wrote or whose length is
 * limited. Throws error 111 with the path of a number that would change.
 */
export function parseExactly(text: string): Json {
  try {
    return parseExactNumbers(text);
  } catch (error) {
    throw error instanceof InexactNumber
      ? refuse('incorrectType', detail('inexactNumber', { member: error.path }))
      : error;
  }
}

/**
 * Returns a sentence about the first string in a value that is not valid Unicode or cannot be
 * stored by PostgreSQL, or undefined. The sentence begins with the path of the
 * string. A lone surrogate (half of a UTF-16 pair) cannot be encoded in UTF-8, so a device would
 * get another character.
 */
export function unstorableText(value: unknown, path: string): string | undefined {
  if (typeof value === 'string') {
    const problem = textProblem(value);
    return problem && `${path}: ${problem}`;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const items: [string, unknown][] = Array.isArray(value)
    ? value.map((item, i) => [String(i), item])
    : Object.entries(value);
  for (const [name, item] of items) {
    const problem = textProblem(name);
    if (problem) return `${path === '' ? '' : `${path}: `}the name of a member: ${problem}`;
    const found = unstorableText(item, path === '' ? name : `${path}.${name}`);
    if (found) return found;
  }
  return undefined;
}

function textProblem(text: string): string | undefined {
  if (!text.isWellFormed())
    return 'it holds half of a UTF-16 pair (a lone surrogate), which is no character.';
  return text.includes('\0') ? 'it holds the character U+0000, which cannot be stored.' : undefined;
}

/**
 * Returns a text from another server in a form that PostgreSQL stores: without U+0000 and lone
 * surrogates, and at most `maxChars` characters long. Otherwise one such text would make the whole
 * statement fail.
 */
export const storableText = (text: string, maxChars: number): string =>
  text.slice(0, maxChars).toWellFormed().replaceAll('\0', '');
