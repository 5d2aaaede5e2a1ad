import { canonicalTime } from '../../domain/client-values.ts';
import { refuse } from '../../domain/errors/errors.ts';
import { exactNumber } from '../../domain/exact-numbers.ts';
import { isJsonObject, type Json } from '../../domain/json.ts';

/** Maximum length of a statement, the same as for a URL. */
const maxLength = 16_384;
/** Maximum depth of nested brackets. Each level of a statement is in brackets of its own. */
const maxDepth = 16;

type Token =
  | { kind: 'name'; text: string }
  | { kind: 'text'; text: string }
  | { kind: 'number'; value: number | bigint }
  | { kind: 'sign'; text: string }
  | { kind: 'end' };

const tokenForms: [RegExp, (text: string) => Token | undefined][] = [
  [/\s+/y, () => undefined],
  [/`([A-Za-z0-9_.-]+)`/y, (text) => ({ kind: 'name', text: text.slice(1, -1) })],
  [/[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*/y, (text) => ({ kind: 'name', text })],
  [
    /[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?/y,
    (text) => ({ kind: 'number', value: numberOf(text) }),
  ],
  [
    /'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"/y,
    (text) => ({ kind: 'text', text: unquoted(text) }),
  ],
  [/<=|>=|<>|!=|[=<>(),*?[\]+-]/y, (text) => ({ kind: 'sign', text })],
];

/**
 * Parses a number as in JSON. Also accepts a plus sign, and a number without a digit before the
 * point. Throws error 300.
 */
function numberOf(text: string): number | bigint {
  const value = exactNumber(text.replace(/^\+/, '').replace(/^(-?)\./, '$10.'));
  if (value === undefined) throw syntaxError('a number cannot be kept exactly: write it as a text');
  return value;
}

const escapes = new Map([
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

function unquoted(text: string): string {
  return text
    .slice(1, -1)
    .replace(/\\([\s\S])/g, (_all, char: string) => escapes.get(char) ?? keptEscape(char));
}

/** Keeps the backslash before other letters, because patterns of `regexp` need it. */
const keptEscape = (char: string): string => (/['"\\]/.test(char) ? char : `\\${char}`);

/** Change of the depth by a bracket. */
const depthSteps = new Map([
  ['(', 1],
  ['[', 1],
  [')', -1],
  [']', -1],
]);

/**
 * Splits a statement into tokens, with an end token. Limits the depth, so that recursive code does
 * not overflow the stack. Throws error 300.
 */
function tokenize(cql: string): Token[] {
  if (cql.length > maxLength) throw syntaxError('the statement is too long');
  const tokens: Token[] = [];
  let at = 0;
  let depth = 0;
  while (at < cql.length) {
    const [length, token] = tokenAt(cql, at);
    if (token) tokens.push(token);
    if (token?.kind === 'sign') depth += depthSteps.get(token.text) ?? 0;
    if (depth > maxDepth) throw syntaxError('the statement is nested too deeply');
    at += length;
  }
  return [...tokens, { kind: 'end' }];
}

function tokenAt(cql: string, at: number): [number, Token | undefined] {
  for (const [form, read] of tokenForms) {
    form.lastIndex = at;
    const [text] = form.exec(cql) ?? [];
    if (text !== undefined) return [text.length, read(text)];
  }
  throw syntaxError(`unexpected character at column ${at + 1}`);
}

export const syntaxError = (detail: string): Error =>
  refuse('cqlSyntax', `CQL syntax error. Detail: ${detail}.`);

/**
 * Reads the tokens of a statement. `accept…` consumes a token if it matches. `expect…` throws error
 * 300 if it does not match.
 */
export class TokenReader {
  readonly #tokens: Token[];
  readonly #placeholderValues: Json[];
  #position = 0;

  constructor(cql: string, placeholderValues: Json[]) {
    this.#tokens = tokenize(cql);
    this.#placeholderValues = [...placeholderValues];
  }

  get #token(): Token {
    return this.#tokens[this.#position] ?? { kind: 'end' };
  }

  isWord(word: string): boolean {
    const token = this.#token;
    return token.kind === 'name' && token.text.toLowerCase() === word;
  }

  /** Consumes the words if all of them follow. */
  acceptWords(...words: string[]): boolean {
    const start = this.#position;
    for (const word of words) {
      if (!this.isWord(word)) {
        this.#position = start;
        return false;
      }
      this.#position += 1;
    }
    return true;
  }

  acceptSign(text: string): boolean {
    const token = this.#token;
    const isThere = token.kind === 'sign' && token.text === text;
    if (isThere) this.#position += 1;
    return isThere;
  }

  expectWords(...words: string[]): void {
    if (!this.acceptWords(...words)) throw this.unexpected(words.join(' '));
  }

  expectSign(text: string): void {
    if (!this.acceptSign(text)) throw this.unexpected(text);
  }

  expectName(): string {
    const token = this.#token;
    if (token.kind !== 'name') throw this.unexpected('a name');
    this.#position += 1;
    return token.text;
  }

  /** Consumes the name of a function and its opening parenthesis. */
  acceptFunction(name: string): boolean {
    const next = this.#tokens[this.#position + 1];
    if (!this.isWord(name) || next?.kind !== 'sign' || next.text !== '(') return false;
    this.#position += 2;
    return true;
  }

  /** Consumes a parenthesis if a subquery follows it. */
  acceptSubquery(): boolean {
    const [open, word] = [this.#token, this.#tokens[this.#position + 1]];
    const isThere =
      open.kind === 'sign' &&
      open.text === '(' &&
      word?.kind === 'name' &&
      word.text.toLowerCase() === 'select';
    if (isThere) this.#position += 1;
    return isThere;
  }

  expectEnd(): void {
    if (this.#token.kind !== 'end') throw this.unexpected('the end');
  }

  expectWholeNumber(): number {
    const value = this.expectValue();
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
      throw syntaxError('a whole number is expected');
    return value;
  }

  expectText(): string {
    const value = this.expectValue();
    if (typeof value !== 'string') throw syntaxError('a text is expected');
    return value;
  }

  /** Reads a literal, a placeholder (`?`), or a typed value written as a function. */
  expectValue(): Json {
    if (this.acceptSign('?')) return this.#nextPlaceholderValue();
    if (this.acceptSign('[')) return this.#listUntil(']');
    const token = this.#token;
    if (token.kind === 'text' || token.kind === 'number') {
      this.#position += 1;
      return token.kind === 'text' ? token.text : token.value;
    }
    for (const [word, value] of constants) if (this.acceptWords(word)) return value;
    for (const [name, make] of functions)
      if (this.acceptFunction(name)) return make(this.#listUntil(')'));
    throw this.unexpected('a value');
  }

  /** Reads `(a, b)`, or a placeholder for the whole list. */
  expectList(): Json[] {
    if (this.acceptSign('(')) {
      const values = this.#listUntil(')');
      const [only] = values;
      return values.length === 1 && Array.isArray(only) ? only : values;
    }
    const value = this.expectValue();
    return Array.isArray(value) ? value : [value];
  }

  /** Reads a geo point. `[latitude, longitude]` is a geo point too. */
  expectPoint(): Json {
    const value = this.expectValue();
    return Array.isArray(value) ? geoPoint(value) : value;
  }

  unexpected(expected: string): Error {
    const token = this.#token;
    const found = token.kind === 'end' ? 'the end' : `word ${this.#position + 1}`;
    return syntaxError(`${expected} is expected at ${found}`);
  }

  #nextPlaceholderValue(): Json {
    const value = this.#placeholderValues.shift();
    if (value === undefined) throw syntaxError('more placeholders than values');
    return value;
  }

  #listUntil(end: ')' | ']'): Json[] {
    const values: Json[] = [];
    if (this.acceptSign(end)) return values;
    do values.push(this.expectValue());
    while (this.acceptSign(','));
    this.expectSign(end);
    return values;
  }
}

const constants: [string, Json][] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

const functions: [string, (values: Json[]) => Json][] = [
  ['date', ([iso]) => date(iso)],
  ['pointer', ([className, objectId]) => pointer(className, objectId)],
  ['geopoint', geoPoint],
];

function date(text: Json | undefined): Json {
  const iso = typeof text === 'string' ? canonicalTime(text) : undefined;
  if (iso === undefined) throw syntaxError('date takes an ISO 8601 time');
  return { __type: 'Date', iso };
}

function pointer(className: Json | undefined, objectId: Json | undefined): Json {
  if (typeof className !== 'string' || typeof objectId !== 'string')
    throw syntaxError('pointer takes a class name and an object id');
  return { __type: 'Pointer', className, objectId };
}

function geoPoint([latitude, longitude]: Json[]): Json {
  if (isJsonObject(latitude)) return latitude;
  if (typeof latitude !== 'number' || typeof longitude !== 'number')
    throw syntaxError('geopoint takes a latitude and a longitude');
  return { __type: 'GeoPoint', latitude, longitude };
}
