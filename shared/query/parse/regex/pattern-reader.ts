import { type Refusal, refuse } from '../../../domain/errors/errors.ts';

/** Reader of a pattern, from left to right. */
export class PatternReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Consumes the next code point; returns an empty text at the end. */
  next(): string {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) return '';
    const char = String.fromCodePoint(code);
    this.#at += char.length;
    return char;
  }

  /** Consumes the match of a sticky pattern, if there is one here. */
  match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found) return undefined;
    this.#at += found[0].length;
    return found;
  }

  /** Consumes a match; returns whether it had any characters. */
  skip(pattern: RegExp): boolean {
    return (this.match(pattern)?.[0].length ?? 0) > 0;
  }
}

export function unsupported(what: string): Refusal {
  return refuse('invalidQuery', `$regex: ${what} is not supported.`);
}

/** Quotes a literal character, inside and outside brackets. */
export function quoteLiteral(char: string): string {
  if (/^[A-Za-z0-9_]$/.test(char) || char > '\x7f') return char;
  const code = char.charCodeAt(0);
  return code < 0x20 || code === 0x7f ? `\\u${code.toString(16).padStart(4, '0')}` : `\\${char}`;
}

export type Escape =
  | { kind: 'literal'; char: string }
  | { kind: 'class'; letter: string }
  | { kind: 'assertion'; sql: string };

const controls = new Map([
  ['t', '\t'],
  ['n', '\n'],
  ['r', '\r'],
  ['f', '\f'],
  ['v', '\v'],
  ['a', '\x07'],
  ['e', '\x1b'],
]);

/** PCRE assertions in PostgreSQL's spelling; its `\b` would be a backspace. */
const assertions = new Map([
  ['b', '\\y'],
  ['B', '\\Y'],
  ['A', '\\A'],
  ['z', '\\Z'],
  ['Z', '\\Z'],
]);

/** Reads an escape after its backslash. Throws 102 for backreferences, properties and octal numbers. */
export function readEscape(reader: PatternReader): Escape {
  const hex = reader.match(/x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})/y);
  if (hex) return { kind: 'literal', char: charOf(hex[1] ?? hex[2] ?? hex[3] ?? '') };
  const letter = reader.next();
  if (/^[dDwWsS]$/.test(letter)) return { kind: 'class', letter };
  const sql = assertions.get(letter);
  if (sql) return { kind: 'assertion', sql };
  const control = controls.get(letter);
  if (control) return { kind: 'literal', char: control };
  if (letter === '' || /^[A-Za-z0-9]$/.test(letter)) throw unsupported(`\\${letter}`);
  return { kind: 'literal', char: letter };
}

function charOf(hex: string): string {
  const code = Number.parseInt(hex, 16);
  if (code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
    throw unsupported('this character');
  return String.fromCodePoint(code);
}

const ranges = new Map([
  ['d', '0-9'],
  ['w', 'A-Za-z0-9_'],
  ['s', ' \\t\\n\\r\\f\\v'],
]);

/**
 * Returns the bracket expression of `\d`, `\w`, `\s` or a negation: ASCII in PCRE, all scripts in PostgreSQL's own
 * classes.
 */
export function classSql(letter: string): string {
  const isOpposite = letter !== letter.toLowerCase();
  return `[${isOpposite ? '^' : ''}${ranges.get(letter.toLowerCase())}]`;
}

/** Returns the characters of `\d`, `\w` or `\s` for use inside brackets. */
export const classRange = (letter: string): string => ranges.get(letter) ?? '';
