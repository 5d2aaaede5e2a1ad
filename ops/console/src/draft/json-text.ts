/**
 * JSON number that keeps its original text. Used if JavaScript would write the number differently,
 * such as ids above 2^53 and `1.50`.
 */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type JsonValue = null | boolean | number | string | ExactNumber | JsonValue[] | JsonRecord;
export type JsonRecord = { readonly [name: string]: JsonValue };

/** True if a value is a JSON object, so not null, an array or a number. */
export const isRecord = (value: JsonValue | undefined): value is JsonRecord =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof ExactNumber);

/** Error at a position in JSON text. Line and column start at 1, `at` at 0. */
export class JsonTextError extends Error {
  readonly reason: JsonFault;
  readonly at: number;
  readonly line: number;
  readonly column: number;

  constructor(reason: JsonFault, text: string, at: number) {
    const before = text.slice(0, at).split('\n');
    super(`${reason} at ${before.length}:${(before.at(-1) ?? '').length + 1}`);
    this.reason = reason;
    this.at = at;
    this.line = before.length;
    this.column = (before.at(-1) ?? '').length + 1;
  }
}

/** Kind of error. Each has its own message. */
export type JsonFault = 'value' | 'comma' | 'colon' | 'name' | 'twice' | 'string' | 'end' | 'depth';

/** Limit on nesting. The service has the same limit. */
const maxDepth = 100;
const blanks = /[\t\n\r ]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON permits none in a string.
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const word = /true|false|null/y;

/**
 * Parses JSON text. Throws `JsonTextError`, also for a duplicate member, because one of the two
 * values would be lost.
 */
export function parseJsonText(text: string): JsonValue {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): JsonValue {
    this.#match(blanks);
    if (depth > maxDepth) throw this.#fault('depth');
    const first = this.#text[this.#at];
    if (first === '{') return this.#record(depth);
    if (first === '[') return this.#list(depth);
    if (first === '"') return this.#string();
    const digits = this.#match(number);
    if (digits !== undefined)
      return String(Number(digits)) === digits ? Number(digits) : new ExactNumber(digits);
    const literal = this.#match(word);
    if (literal === undefined) throw this.#fault(first === undefined ? 'end' : 'value');
    return literal === 'null' ? null : literal === 'true';
  }

  end(): void {
    this.#match(blanks);
    if (this.#at < this.#text.length) throw this.#fault('end');
  }

  #record(depth: number): JsonRecord {
    const members = new Map<string, JsonValue>();
    this.#items('}', () => {
      if (this.#text[this.#at] !== '"') throw this.#fault('name');
      const start = this.#at;
      const name = this.#string();
      if (members.has(name)) throw new JsonTextError('twice', this.#text, start);
      this.#match(blanks);
      if (this.#text[this.#at] !== ':') throw this.#fault('colon');
      this.#at += 1;
      members.set(name, this.value(depth + 1));
    });
    return Object.fromEntries(members);
  }

  #list(depth: number): JsonValue[] {
    const values: JsonValue[] = [];
    this.#items(']', () => values.push(this.value(depth + 1)));
    return values;
  }

  /** Reads comma-separated items up to the closing bracket. */
  #items(close: string, item: () => void): void {
    this.#at += 1;
    this.#match(blanks);
    if (this.#take(close)) return;
    for (;;) {
      this.#match(blanks);
      item();
      this.#match(blanks);
      if (this.#take(close)) return;
      if (!this.#take(',')) throw this.#fault(this.#at < this.#text.length ? 'comma' : 'end');
    }
  }

  #string(): string {
    const source = this.#match(string);
    if (source === undefined) throw this.#fault('string');
    return String(JSON.parse(source));
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #fault(reason: JsonFault): JsonTextError {
    return new JsonTextError(reason, this.#text, this.#at);
  }
}

/**
 * Returns the position of a member's name in JSON text, by its path. Returns undefined if it is not
 * found.
 */
export function memberPosition(text: string, path = ''): { line: number; at: number } | undefined {
  let at = -1;
  for (const name of path.split('.')) {
    const quoted = JSON.stringify(name);
    do at = text.indexOf(quoted, at + 1);
    while (at >= 0 && !/^[\t\n\r ]*:/.test(text.slice(at + quoted.length)));
    if (at < 0) return undefined;
  }
  return { line: text.slice(0, at).split('\n').length, at };
}

/** Formats JSON text. `indent` is the number of spaces per level; 0 writes a single line. */
export function printJson(value: JsonValue, indent = 0, level = 0): string {
  if (value instanceof ExactNumber) return value.text;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const items = Array.isArray(value)
    ? value.map((item) => printJson(item, indent, level + 1))
    : Object.entries(value).map(
        ([name, item]) =>
          `${JSON.stringify(name)}:${indent > 0 ? ' ' : ''}${printJson(item, indent, level + 1)}`,
      );
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (items.length === 0) return open + close;
  if (indent === 0) return open + items.join(',') + close;
  const gap = `\n${' '.repeat(indent * (level + 1))}`;
  return `${open}${gap}${items.join(`,${gap}`)}\n${' '.repeat(indent * level)}${close}`;
}

/** True if two values are the same JSON. The order of members does not matter. */
export function isSameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return canonicalText(a) === canonicalText(b);
}

/** Formats JSON in one line, with the members of every object sorted. */
export const canonicalText = (value: JsonValue): string => printJson(sorted(value));

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sorted(value[name] ?? null)]));
}

/** Returns the value at a path, or undefined if the path does not exist. */
export function valueAt(
  value: JsonValue | undefined,
  path: readonly string[],
): JsonValue | undefined {
  let found = value;
  for (const name of path)
    found = isRecord(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

/**
 * Returns a copy of the record with a changed value at a path. Undefined removes the member and all
 * parents that become empty. If a parent is not an object, the record stays unchanged.
 */
export function withValueAt(
  record: JsonRecord,
  path: readonly string[],
  value: JsonValue | undefined,
): JsonRecord {
  const [name, ...rest] = path;
  if (name === undefined || (value === undefined && valueAt(record, path) === undefined))
    return record;
  const current = valueAt(record, [name]);
  if (rest.length === 0) return withMember(record, name, value);
  if (current !== undefined && !isRecord(current)) return record;
  const inner = withValueAt(current ?? {}, rest, value);
  return withMember(
    record,
    name,
    value === undefined && Object.keys(inner).length === 0 ? undefined : inner,
  );
}

function withMember(record: JsonRecord, name: string, value: JsonValue | undefined): JsonRecord {
  const members = new Map(Object.entries(record));
  if (value === undefined) members.delete(name);
  else members.set(name, value);
  return Object.fromEntries(members);
}
