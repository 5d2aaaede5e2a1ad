/**
 * Types of the members that gateways take. A type converts plain forms
 * (protocol/push.md#plain-forms) and refuses what the gateway would refuse. Pure.
 */
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseExactly,
} from '../../shared/domain/json.ts';
import { flagIn, numberIn } from '../../shared/domain/plain-values.ts';
import { reasonAs } from '../../shared/domain/reasons.ts';

/**
 * Merges two objects recursively; the second one wins, and its nulls remove members. Changes
 * neither.
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

/** Returns the JSON object in a text; undefined when the text is something else. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value = parseExactly(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface ValueType {
  /** Expected value in words, as they follow "must be". */
  readonly expected: string;
  /** Returns the value in the form that the gateway takes; undefined for any other value. */
  read(value: Json): Json | undefined;
  /** Type of the values of an object with any names; such an error names the value. */
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

/** A whole number. `unit`: words behind the range, such as "seconds". */
export function int(from: number, to: number, unit = ''): ValueType {
  const range = to === Number.MAX_SAFE_INTEGER ? `of at least ${from}` : `from ${from} to ${to}`;
  return typeOf(`a whole number ${range}${unit && ` (${unit})`}`, (value) => {
    const read = numberIn(value);
    return read !== undefined && Number.isSafeInteger(read) && read >= from && read <= to
      ? read
      : undefined;
  });
}

/** A number, by default any. */
export function number(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): ValueType {
  const range = Number.isFinite(from) ? ` from ${from} to ${to}` : '';
  return typeOf(`a number${range}`, (value) => {
    const read = numberIn(value);
    return read !== undefined && Number.isFinite(read) && read >= from && read <= to
      ? read
      : undefined;
  });
}

/** One of several numbers, also as text. */
export const oneNumber = (...numbers: number[]): ValueType =>
  typeOf(wordsOf(numbers), (value) => numbers.find((one) => one === numberIn(value)));

/** One of several words, exactly. */
export const oneWord = (...words: string[]): ValueType =>
  typeOf(
    wordsOf(words),
    accepted((value) => words.some((one) => one === value)),
  );

/**
 * One of several names in upper case, written in any case, and with or without their common prefix.
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

/** A text with a length in characters. */
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

/** A text that is not blank. */
export const filled = (most: number): ValueType =>
  typeOf(
    `a string of 1 to ${most} characters`,
    accepted((value) => typeof value === 'string' && value.trim() !== '' && charsOf(value) <= most),
  );

export const bytes = (most: number): ValueType =>
  typeOf(
    `a string of at most ${most} bytes`,
    accepted((value) => typeof value === 'string' && Buffer.byteLength(value) <= most),
  );

/** A text of a form, which `expected` describes. */
export const like = (form: RegExp, expected: string): ValueType =>
  typeOf(
    expected,
    accepted((value) => typeof value === 'string' && form.test(value)),
  );

export const httpsUrl = like(/^https:\/\/\S+$/, 'an https:// URL');

export const list = (of: ValueType, expected: string, most = Number.POSITIVE_INFINITY): ValueType =>
  typeOf(expected, (value) => {
    if (!Array.isArray(value) || value.length > most) return undefined;
    const items = value.map((item) => of.read(item));
    return items.every((item) => item !== undefined) ? items : undefined;
  });

export const texts = list(text(), 'a list of strings');

export const object = typeOf('an object', accepted(isJsonObject));

/** An object with any names and values of one type. */
export const mapOf = (values: ValueType): ValueType => ({ ...object, values });

/** A text that may be written as a number or a boolean, as in HTTP headers. */
export const written = typeOf('a string', (value) =>
  typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
    ? String(value)
    : text().read(value),
);

/** An object, also as JSON text, where the gateway takes an object. */
export const jsonObject = typeOf('an object', (value) => objectIn(value));

/** An object, also as JSON text, where the gateway takes JSON text. */
export const jsonText = (most: number): ValueType =>
  typeOf(`a JSON object of at most ${most} characters`, (value) => {
    const written =
      typeof value === 'string' && objectIn(value)
        ? value
        : isJsonObject(value)
          ? JSON.stringify(value)
          : '';
    return written !== '' && charsOf(written) <= most ? written : undefined;
  });

const objectIn = (value: Json): JsonObject | undefined =>
  typeof value === 'string' ? parseObject(value) : isJsonObject(value) ? value : undefined;

/** Seconds with an `s`, also as a number of seconds. `isWhole`: without a fraction. */
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

/** A type with a further rule on the value as it was read. */
export const refined = (
  base: ValueType,
  isRight: (value: Json) => boolean,
  expected: string,
): ValueType =>
  typeOf(expected, (value) => {
    const read = base.read(value);
    return read !== undefined && isRight(read) ? read : undefined;
  });

/** Counts characters as gateways do: Unicode code points (protocol/gateways.md#text-lengths). */
export const charsOf = (text: string): number => {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
};

/** Returns the reason of a wrong member of a push. `rule`: what it must be or have. */
export const unfitMember = (member: string, rule: string): string =>
  reasonAs(`${member} ${rule}`, 'memberUnfit', { member });

/** Returns the reason of a text that is too long for a gateway. */
export const tooLong = (member: string, mostChars: number, connector: string): string =>
  reasonAs(`${member} must have at most ${mostChars} characters for ${connector}`, 'tooLong', {
    member,
    connector,
  });

/**
 * Returns the reason of content that breaks a rule on several members, or on none that has a path.
 */
export const contentRefused = (text: string): string => reasonAs(text, 'contentRefused');
