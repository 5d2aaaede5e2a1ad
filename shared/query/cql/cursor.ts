import { isJsonObject, type Json } from '../../domain/json.ts';
import { canonicalTime } from '../../domain/objects/typed-values.ts';
import { syntaxError, type Token, tokensOf } from './tokens.ts';

/** Reads a statement from left to right; each `?` takes the next of the given values. */
export class Cursor {
  readonly #tokens: Token[];
  readonly #given: Json[];
  #at = 0;

  constructor(cql: string, given: Json[]) {
    this.#tokens = tokensOf(cql);
    this.#given = [...given];
  }

  get #token(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end' };
  }

  isWord(word: string): boolean {
    const token = this.#token;
    return token.kind === 'name' && token.text.toLowerCase() === word;
  }

  /** Goes on when the words come next, each of them. */
  takeWords(...words: string[]): boolean {
    const start = this.#at;
    for (const word of words) {
      if (!this.isWord(word)) {
        this.#at = start;
        return false;
      }
      this.#at += 1;
    }
    return true;
  }

  takeSign(text: string): boolean {
    const token = this.#token;
    const isThere = token.kind === 'sign' && token.text === text;
    if (isThere) this.#at += 1;
    return isThere;
  }

  needWords(...words: string[]): void {
    if (!this.takeWords(...words)) throw this.wrong(words.join(' '));
  }

  needSign(text: string): void {
    if (!this.takeSign(text)) throw this.wrong(text);
  }

  needName(): string {
    const token = this.#token;
    if (token.kind !== 'name') throw this.wrong('a name');
    this.#at += 1;
    return token.text;
  }

  /** True for the name of a function: something with a parenthesis behind it. */
  takeFunction(name: string): boolean {
    const next = this.#tokens[this.#at + 1];
    if (!this.isWord(name) || next?.kind !== 'sign' || next.text !== '(') return false;
    this.#at += 2;
    return true;
  }

  /** Goes past the parenthesis when a sub-query opens there. */
  takeSubquery(): boolean {
    const [open, word] = [this.#token, this.#tokens[this.#at + 1]];
    const isThere =
      open.kind === 'sign' &&
      open.text === '(' &&
      word?.kind === 'name' &&
      word.text.toLowerCase() === 'select';
    if (isThere) this.#at += 1;
    return isThere;
  }

  needEnd(): void {
    if (this.#token.kind !== 'end') throw this.wrong('the end');
    if (this.#given.length > 0) throw syntaxError('more values than placeholders');
  }

  needWholeNumber(): number {
    const value = this.needValue();
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
      throw syntaxError('a whole number is expected');
    return value;
  }

  needText(): string {
    const value = this.needValue();
    if (typeof value !== 'string') throw syntaxError('a text is expected');
    return value;
  }

  /** A literal, a placeholder, or a typed value written as a function. */
  needValue(): Json {
    if (this.takeSign('?')) return this.#nextGiven();
    if (this.takeSign('[')) return this.#listUntil(']');
    const token = this.#token;
    if (token.kind === 'text' || token.kind === 'number') {
      this.#at += 1;
      return token.kind === 'text' ? token.text : token.value;
    }
    for (const [word, value] of constants) if (this.takeWords(word)) return value;
    for (const [name, make] of functions) if (this.takeFunction(name)) return make(this.#listUntil(')'));
    throw this.wrong('a value');
  }

  /** `(a, b)`, or a placeholder for all of it. */
  needList(): Json[] {
    if (this.takeSign('(')) {
      const values = this.#listUntil(')');
      const [only] = values;
      return values.length === 1 && Array.isArray(only) ? only : values;
    }
    const value = this.needValue();
    return Array.isArray(value) ? value : [value];
  }

  /** A geo point, also as `[latitude, longitude]`. */
  needPoint(): Json {
    const value = this.needValue();
    return Array.isArray(value) ? geoPoint(value) : value;
  }

  wrong(expected: string): Error {
    const token = this.#token;
    const found = token.kind === 'end' ? 'the end' : `word ${this.#at + 1}`;
    return syntaxError(`${expected} is expected at ${found}`);
  }

  #nextGiven(): Json {
    const value = this.#given.shift();
    if (value === undefined) throw syntaxError('more placeholders than values');
    return value;
  }

  #listUntil(end: ')' | ']'): Json[] {
    const values: Json[] = [];
    if (this.takeSign(end)) return values;
    do values.push(this.needValue());
    while (this.takeSign(','));
    this.needSign(end);
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
