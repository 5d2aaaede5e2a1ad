import { isJsonObject, type Json } from '../../domain/json.ts';
import { canonicalTime } from '../../domain/times.ts';
import { syntaxError, type Token, tokenize } from './tokens.ts';

/** Reader of a statement's tokens; `accept…` consumes a token if it matches, `expect…` throws 300 if it does not. */
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

  /** Consumes the words if all of them come next. */
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
    for (const [name, make] of functions) if (this.acceptFunction(name)) return make(this.#listUntil(')'));
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

  /** Reads a geo point, also as `[latitude, longitude]`. */
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
