import {
  classRange,
  classSql,
  type PatternReader,
  quoteLiteral,
  readEscape,
  unsupported,
} from './pattern-reader.ts';

type Item =
  | { kind: 'char'; char: string }
  | { kind: 'class'; letter: string }
  | { kind: 'named'; sql: string };

const posixClass = /\[:(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):\]/y;

/** Translates a bracket expression after its `[`. Throws 102 for a malformed one. */
export function translateBracket(reader: PatternReader): string {
  const isNegated = reader.skip(/\^/y);
  const parts: string[] = [];
  const classes: string[] = [];
  // A closing bracket in first position is a literal.
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
 * A negated class such as `\D` cannot be written inside brackets for ASCII only, so it becomes an alternative
 * beside them. `.` matches every character in the modes of `sqlPattern`.
 */
function bracketSql(parts: string[], classes: string[], isNegated: boolean): string {
  const isOpposite = (letter: string) => letter !== letter.toLowerCase();
  const inner = [...parts, ...classes.filter((letter) => !isOpposite(letter)).map(classRange)].join('');
  const opposites = [...new Set(classes.filter(isOpposite))].map(classSql);
  if (opposites.length === 0) return `[${isNegated ? '^' : ''}${inner}]`;
  const either = [...(inner === '' ? [] : [`[${inner}]`]), ...opposites].join('|');
  return isNegated ? `(?:(?!${either}).)` : `(?:${either})`;
}

/** Returns the next item; undefined at the closing bracket. */
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
