import { type Refusal, refuse } from '../../domain/errors/errors.ts';

/** Reads a pattern from left to right. */
class PatternReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Consumes the next code point. Returns an empty text at the end. */
  next(): string {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) return '';
    const char = String.fromCodePoint(code);
    this.#at += char.length;
    return char;
  }

  /**
   * Consumes the match of a sticky pattern at the current position. Returns undefined if the
   * pattern does not match here.
   */
  match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found) return undefined;
    this.#at += found[0].length;
    return found;
  }

  /** Consumes a match. Returns whether the match contained characters. */
  skip(pattern: RegExp): boolean {
    return (this.match(pattern)?.[0].length ?? 0) > 0;
  }
}

function unsupported(what: string): Refusal {
  return refuse('invalidQuery', `$regex: ${what} is not supported.`);
}

/** Escapes a literal character for use inside and outside brackets. */
function quoteLiteral(char: string): string {
  if (/^[A-Za-z0-9_]$/.test(char) || char > '\x7f') return char;
  const code = char.charCodeAt(0);
  return code < 0x20 || code === 0x7f ? `\\u${code.toString(16).padStart(4, '0')}` : `\\${char}`;
}

type Escape =
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

/** PCRE assertions and their PostgreSQL equivalents. In PostgreSQL, `\b` means a backspace. */
const assertions = new Map([
  ['b', '\\y'],
  ['B', '\\Y'],
  ['A', '\\A'],
  ['z', '\\Z'],
  ['Z', '\\Z'],
]);

/**
 * Reads an escape sequence after its backslash. Throws error 102 for backreferences, Unicode
 * properties and octal numbers.
 */
function readEscape(reader: PatternReader): Escape {
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
 * Returns the bracket expression of `\d`, `\w`, `\s` or their negations. PCRE's classes contain
 * ASCII characters only, but PostgreSQL's classes contain characters of all scripts.
 */
function classSql(letter: string): string {
  const isOpposite = letter !== letter.toLowerCase();
  return `[${isOpposite ? '^' : ''}${ranges.get(letter.toLowerCase())}]`;
}

/** Returns the characters of `\d`, `\w` or `\s` for use inside brackets. */
const classRange = (letter: string): string => ranges.get(letter) ?? '';

type Item =
  | { kind: 'char'; char: string }
  | { kind: 'class'; letter: string }
  | { kind: 'named'; sql: string };

const posixClass =
  /\[:(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):\]/y;

/** Translates a bracket expression after its `[`. Throws error 102 if it is malformed. */
function translateBracket(reader: PatternReader): string {
  const isNegated = reader.skip(/\^/y);
  const parts: string[] = [];
  const classes: string[] = [];
  // A closing bracket in the first position is a literal.
  let item: Item | undefined = reader.skip(/\]/y) ? { kind: 'char', char: ']' } : nextItem(reader);
  while (item) {
    if (item.kind === 'class') classes.push(item.letter);
    else if (item.kind === 'named') parts.push(item.sql);
    else parts.push(charOrRange(item.char, reader));
    item = nextItem(reader);
  }
  return bracketSql(parts, classes, isNegated);
}

/**
 * Joins the parts of a bracket expression. PostgreSQL cannot write an ASCII-only negated class such
 * as `\D` inside brackets, so the class becomes an alternative outside them. In the modes that
 * `sqlPattern` sets, `.` matches every character.
 */
function bracketSql(parts: string[], classes: string[], isNegated: boolean): string {
  const isOpposite = (letter: string) => letter !== letter.toLowerCase();
  const inner = [...parts, ...classes.filter((letter) => !isOpposite(letter)).map(classRange)].join(
    '',
  );
  const opposites = [...new Set(classes.filter(isOpposite))].map(classSql);
  if (opposites.length === 0) return `[${isNegated ? '^' : ''}${inner}]`;
  const either = [...(inner === '' ? [] : [`[${inner}]`]), ...opposites].join('|');
  return isNegated ? `(?:(?!${either}).)` : `(?:${either})`;
}

/** Reads the next item of a bracket expression. Returns undefined at the closing bracket. */
function nextItem(reader: PatternReader): Item | undefined {
  const named = reader.match(posixClass);
  if (named) return { kind: 'named', sql: named[0] };
  const char = reader.next();
  if (char === '') throw unsupported('an open bracket');
  if (char === ']') return undefined;
  if (char !== '\\') return { kind: 'char', char };
  if (reader.skip(/b/y)) return { kind: 'char', char: '\b' };
  const token = readEscape(reader);
  if (token.kind === 'assertion') throw unsupported('this escape within brackets');
  return token.kind === 'class'
    ? { kind: 'class', letter: token.letter }
    : { kind: 'char', char: token.char };
}

function charOrRange(from: string, reader: PatternReader): string {
  // A hyphen at the end or before a class is a literal.
  if (!reader.skip(/-(?!\]|\\[dDwWsS]|\[:)/y)) return quoteLiteral(from);
  const to = nextItem(reader);
  if (to?.kind !== 'char' || (to.char.codePointAt(0) ?? 0) < (from.codePointAt(0) ?? 0))
    throw unsupported('this range');
  return `${quoteLiteral(from)}-${quoteLiteral(to.char)}`;
}

/**
 * Pattern in PostgreSQL's syntax. Clients write `$regex` in PCRE (protocol/queries.md#patterns).
 * The translation works token by token: every accepted pattern compiles and matches the same texts
 * in both syntaxes. Other patterns are refused when the client sends them.
 */
export interface Pattern {
  /** Advanced regular expression of PostgreSQL, without embedded options. */
  source: string;
  isCaseInsensitive: boolean;
  isMultiline: boolean;
}

const maxLength = 1000;
const maxGroups = 50;
/** Maximum of `{m,n}` in PostgreSQL. */
const maxBound = 255;
/**
 * Maximum size of a pattern with all repetitions expanded. A part that may be empty counts as ten
 * characters, because PostgreSQL's compile time grows with the third power of the number of such
 * parts.
 */
const maxSize = 2000;
const optionalSize = 10;

/**
 * Translates a PCRE pattern. Throws error 102 if the pattern is malformed, too large, or uses a
 * construct that PostgreSQL lacks.
 */
export function translateRegex(pattern: unknown, options: unknown): Pattern {
  if (typeof pattern !== 'string') throw refuse('invalidQuery', '$regex takes a text.');
  if (pattern.length > maxLength)
    throw refuse('invalidQuery', `$regex takes at most ${maxLength} characters.`);
  if (pattern.includes('\0') || !pattern.isWellFormed()) throw unsupported('this character');
  if (options !== undefined && (typeof options !== 'string' || !/^[imxs]*$/.test(options)))
    throw refuse('invalidQuery', '$options takes the letters i, m, x and s.');
  const leading = /^\(\?([imxs]+)\)/.exec(pattern);
  const flags = new Set(`${options ?? ''}${leading?.[1] ?? ''}`);
  const text = leading ? pattern.slice(leading[0].length) : pattern;
  return {
    source: new Translator(text, flags).run(),
    isCaseInsensitive: flags.has('i'),
    isMultiline: flags.has('m'),
  };
}

/**
 * Returns the pattern to match with `~`. `***:` selects advanced regular expressions. `w` lets ^
 * and $ match at line ends.
 */
export function sqlPattern({ source, isCaseInsensitive, isMultiline }: Pattern): string {
  return `***:(?${isCaseInsensitive ? 'i' : ''}${isMultiline ? 'w' : 's'})${source}`;
}

interface Group {
  /** True if the group is a look-around. */
  isAssertion: boolean;
  /** True if the group contains a look-around. */
  hasAssertion: boolean;
  /** Size of the group so far. */
  size: number;
  /** True if the current branch of the group has consumed no character so far. */
  isBranchEmpty: boolean;
}

class Translator {
  readonly #reader: PatternReader;
  readonly #flags: Set<string>;
  readonly #groups: Group[] = [
    { isAssertion: false, hasAssertion: false, size: 0, isBranchEmpty: true },
  ];
  #out = '';
  /** Size of the atom that a quantifier would repeat. 0 if there is no atom. */
  #atomSize = 0;
  /** True if the atom that a quantifier would repeat contains a look-around. */
  #hasLookAround = false;

  constructor(text: string, flags: Set<string>) {
    this.#reader = new PatternReader(text);
    this.#flags = flags;
  }

  run(): string {
    while (!this.#reader.isAtEnd) this.#step();
    if (this.#groups.length > 1) throw unsupported('an open parenthesis');
    return this.#out;
  }

  #step(): void {
    if (this.#flags.has('x') && this.#reader.skip(/\s+|#[^\n]*(\n|$)/y)) return;
    const quantifier = this.#reader.match(/[*+?]|\{\d+(,\d*)?\}/y);
    if (quantifier) this.#quantify(quantifier[0]);
    else this.#token(this.#reader.next());
  }

  #token(char: string): void {
    if (char === '\\') this.#escape();
    else if (char === '(') this.#open();
    else if (char === ')') this.#close();
    else if (char === '[') this.#atom(translateBracket(this.#reader));
    else if (char === '.') this.#atom(this.#flags.has('s') ? '.' : '[^\\n]');
    else if (char === '|') this.#branch();
    else if (char === '^' || char === '$') this.#assertion(char);
    else this.#atom(quoteLiteral(char));
  }

  #atom(sql: string, size = 1): void {
    this.#out += sql;
    this.#atomSize = size;
    this.#hasLookAround = false;
    this.#grow(size);
    const group = this.#groups.at(-1);
    if (group) group.isBranchEmpty = false;
  }

  #assertion(sql: string): void {
    this.#out += sql;
    this.#atomSize = 0;
  }

  #branch(): void {
    this.#assertion('|');
    const group = this.#groups.at(-1);
    if (group?.isBranchEmpty) this.#grow(optionalSize);
    if (group) group.isBranchEmpty = true;
  }

  #grow(size: number): void {
    const group = this.#groups.at(-1);
    if (group) group.size += size;
    if (!group || group.size > maxSize) throw unsupported('so many repetitions');
  }

  #quantify(quantifier: string): void {
    if (this.#atomSize === 0) throw unsupported('a quantifier with nothing to repeat');
    // PostgreSQL would scan the whole text for each character of each repetition.
    if (this.#hasLookAround) throw unsupported('a look-around under a quantifier');
    const [min = 0, max = Math.max(1, min)] = (quantifier.match(/\d+/g) ?? []).map(Number);
    if (Math.max(min, max) > maxBound || min > max)
      throw unsupported('a repetition of more than 255 or of fewer than none');
    if (this.#reader.match(/\+/y)) throw unsupported('possessive quantifiers');
    // A lazy quantifier is written as a greedy one. This changes which characters match, but not
    // whether the text matches.
    this.#reader.skip(/\?/y);
    this.#out += quantifier;
    const optional = min === 0 && quantifier !== '+' ? optionalSize * max : 0;
    this.#grow(this.#atomSize * Math.max(0, max - 1) + optional);
    this.#atomSize = 0;
  }

  #escape(): void {
    const quoted = this.#reader.match(/Q([\s\S]*?)(\\E|$)/y);
    if (quoted) this.#literals(quoted[1] ?? '');
    else if (!this.#reader.skip(/E/y)) this.#escaped(readEscape(this.#reader));
  }

  #escaped(token: Escape): void {
    if (token.kind === 'assertion') this.#assertion(token.sql);
    else this.#atom(token.kind === 'class' ? classSql(token.letter) : quoteLiteral(token.char));
  }

  /**
   * Writes a text quoted by `\Q…\E`. The SDKs quote texts this way for startsWith, contains and
   * endsWith.
   */
  #literals(text: string): void {
    for (const char of text) this.#atom(quoteLiteral(char));
  }

  /**
   * Opens a group. A plain group becomes non-capturing, because back-references are not supported.
   */
  #open(): void {
    if (this.#groups.length > maxGroups) throw unsupported('so many parentheses');
    const kind = this.#reader.match(/\?(<?[=!]|:)/y)?.[0] ?? '?:';
    if (this.#reader.skip(/[?*]/y)) throw unsupported('this kind of parenthesis');
    this.#groups.push({
      isAssertion: kind !== '?:',
      hasAssertion: false,
      size: 0,
      isBranchEmpty: true,
    });
    this.#out += `(${kind}`;
    this.#atomSize = 0;
  }

  #close(): void {
    const group = this.#groups.pop();
    if (group?.isBranchEmpty) group.size += optionalSize;
    if (!group || this.#groups.length === 0)
      throw unsupported('a closing parenthesis without its opening');
    const hasLookAround = group.isAssertion || group.hasAssertion;
    const outer = this.#groups.at(-1);
    if (outer) outer.hasAssertion ||= hasLookAround;
    if (group.isAssertion) {
      this.#assertion(')');
      this.#grow(group.size);
    } else this.#atom(')', Math.max(1, group.size));
    this.#hasLookAround = hasLookAround;
  }
}
