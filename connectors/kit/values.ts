/**
 * Types of the members that gateways accept. A type converts short forms
 * (protocol/push.md#plain-forms) and refuses values that the gateway would refuse. Pure.
 */

import { flagIn, numberIn } from '../../shared/domain/client-values.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseExactly,
} from '../../shared/domain/json.ts';
import { reasonAs } from '../../shared/domain/reasons.ts';

/**
 * Merges two objects recursively without changing them. The second object wins, and its nulls
 * remove members.
 */
export function deepMerge(base: JsonObject, over: JsonObject): JsonObject {
  const merged = new Map<string, Json>(Object.entries(base));
  for (const [name, value] of Object.entries(over)) {
    const known = merged.get(name);
    if (value === null) merged.delete(name);
    else
      merged.set(
        name,
        isJsonObject(known) && isJsonObject(value) ? deepMerge(known, value) : value,
      );
  }
  return Object.fromEntries(merged);
}

/** Parses a JSON object. Returns undefined for other texts. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value = parseExactly(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface ValueType {
  /** Expected value, in words that follow "must be". */
  readonly expected: string;
  /** Returns the value in the form that the gateway accepts; undefined if the value is invalid. */
  read(value: Json): Json | undefined;
  /** Type of the values, for an object with arbitrary names. */
  readonly values?: ValueType;
}

const typeOf = (expected: string, read: ValueType['read']): ValueType => ({ expected, read });

const accepted =
  (isRight: (value: Json) => boolean): ValueType['read'] =>
  (value) =>
    isRight(value) ? value : undefined;

export const flag = typeOf('true or false', flagIn);

/** A boolean that the gateway writes as a number. */
export const bit = typeOf('0 or 1', (value) => {
  const read = flagIn(value);
  return read === undefined ? undefined : Number(read);
});

/** A whole number. `unit` is appended to the range in errors, such as "seconds". */
export function int(from: number, to: number, unit = ''): ValueType {
  const range = to === Number.MAX_SAFE_INTEGER ? `of at least ${from}` : `from ${from} to ${to}`;
  return typeOf(`a whole number ${range}${unit && ` (${unit})`}`, (value) => {
    const read = numberIn(value);
    return read !== undefined && Number.isSafeInteger(read) && read >= from && read <= to
      ? read
      : undefined;
  });
}

/** A number. Without arguments, any number. */
export function number(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): ValueType {
  const range = Number.isFinite(from) ? ` from ${from} to ${to}` : '';
  return typeOf(`a number${range}`, (value) => {
    const read = numberIn(value);
    return read !== undefined && Number.isFinite(read) && read >= from && read <= to
      ? read
      : undefined;
  });
}

/** One of several numbers. A string with the number is also accepted. */
export const oneNumber = (...numbers: number[]): ValueType =>
  typeOf(wordsOf(numbers), (value) => numbers.find((one) => one === numberIn(value)));

/** One of several words in exactly this spelling. */
export const oneWord = (...words: string[]): ValueType =>
  typeOf(
    wordsOf(words),
    accepted((value) => words.some((one) => one === value)),
  );

/**
 * One of several upper-case names. The value may be in any case, and with or without the common
 * prefix.
 */
export function oneName(names: readonly string[], prefix = ''): ValueType {
  const known = new Map(
    names.flatMap((name) => [
      [name, `${prefix}${name}`],
      [`${prefix}${name}`, `${prefix}${name}`],
    ]),
  );
  return typeOf(wordsOf(names.map((name) => `${prefix}${name}`)), (value) =>
    typeof value === 'string' ? known.get(value.toUpperCase()) : undefined,
  );
}

function wordsOf(values: readonly (string | number)[]): string {
  const [last, ...others] = values.map(String).reverse();
  if (values.length > 3) return `one of ${values.join(', ')}`;
  return others.length === 0 ? `${last}` : `${others.reverse().join(', ')} or ${last}`;
}

/** A string with a minimum and maximum length in characters. */
export function text(from = 0, to = Number.POSITIVE_INFINITY): ValueType {
  const range = Number.isFinite(to)
    ? from > 0
      ? ` of ${from} to ${to} characters`
      : ` of at most ${to} characters`
    : '';
  return typeOf(
    `a string${range}`,
    accepted((value) => {
      if (typeof value !== 'string') return false;
      const chars = charsOf(value);
      return chars >= from && chars <= to;
    }),
  );
}

/** A string that is not blank. */
export const filled = (max: number): ValueType =>
  typeOf(
    `a string of 1 to ${max} characters`,
    accepted((value) => typeof value === 'string' && value.trim() !== '' && charsOf(value) <= max),
  );

export const bytes = (max: number): ValueType =>
  typeOf(
    `a string of at most ${max} bytes`,
    accepted((value) => typeof value === 'string' && Buffer.byteLength(value) <= max),
  );

/** A string that matches a pattern. `expected` describes the pattern. */
export const matching = (form: RegExp, expected: string): ValueType =>
  typeOf(
    expected,
    accepted((value) => typeof value === 'string' && form.test(value)),
  );

export const httpsUrl = matching(/^https:\/\/\S+$/, 'an https:// URL');

export const list = (of: ValueType, expected: string, max = Number.POSITIVE_INFINITY): ValueType =>
  typeOf(expected, (value) => {
    if (!Array.isArray(value) || value.length > max) return undefined;
    const items = value.map((item) => of.read(item));
    return items.every((item) => item !== undefined) ? items : undefined;
  });

export const texts = list(text(), 'a list of strings');

export const object = typeOf('an object', accepted(isJsonObject));

/** An object with arbitrary names, and values of one type. */
export const mapOf = (values: ValueType): ValueType => ({ ...object, values });

/** A string that may also be written as a number or boolean, as in HTTP headers. */
export const scalarText = typeOf('a string', (value) =>
  typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
    ? String(value)
    : text().read(value),
);

/** An object, or the same as JSON text, if the gateway accepts an object. */
export const jsonObject = typeOf('an object', (value) => objectIn(value));

/** An object, or the same as JSON text, if the gateway accepts JSON text. */
export const jsonText = (max: number): ValueType =>
  typeOf(`a JSON object of at most ${max} characters`, (value) => {
    const written =
      typeof value === 'string' && objectIn(value)
        ? value
        : isJsonObject(value)
          ? JSON.stringify(value)
          : '';
    return written !== '' && charsOf(written) <= max ? written : undefined;
  });

const objectIn = (value: Json): JsonObject | undefined =>
  typeof value === 'string' ? parseObject(value) : isJsonObject(value) ? value : undefined;

/**
 * A duration in seconds such as `"60s"`. A number of seconds is also accepted. `isWhole` forbids
 * fractions.
 */
export const duration = (from: number, to: number, isWhole = false): ValueType =>
  typeOf(`seconds from ${from} to ${to}, such as "${Math.min(60, to)}s"`, (value) => {
    const [, digits] =
      (typeof value === 'string' && /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(value.trim())) || [];
    const read = digits === undefined ? numberIn(value) : Number(digits);
    if (read === undefined || read < from || read > to || (isWhole && !Number.isInteger(read)))
      return undefined;
    return `${digits ?? read}s`;
  });

export const any = typeOf('any value', (value) => value);

/** A type with an additional check of the converted value. */
export const refined = (
  base: ValueType,
  isRight: (value: Json) => boolean,
  expected: string,
): ValueType =>
  typeOf(expected, (value) => {
    const read = base.read(value);
    return read !== undefined && isRight(read) ? read : undefined;
  });

/** Counts characters like the gateways: Unicode code points (protocol/gateways.md#text-lengths). */
export const charsOf = (text: string): number => {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
};

/** Returns the reason for a wrong member. `rule` says what the member must be or have. */
export const unfitMember = (member: string, rule: string): string =>
  reasonAs(`${member} ${rule}`, 'memberUnfit', { member });

/** Returns the reason for a text that is too long for a gateway. */
export const tooLong = (member: string, maxChars: number, connector: string): string =>
  reasonAs(`${member} must have at most ${maxChars} characters for ${connector}`, 'tooLong', {
    member,
    connector,
  });

/**
 * Returns the reason for content that breaks a rule about several members, or about no single
 * member.
 */
export const contentRefused = (text: string): string => reasonAs(text, 'contentRefused');

/** Returns a value if it is an object; an empty object otherwise. */
export const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});
