import { refuse } from '../../domain/errors/errors.ts';
import { exactNumber } from '../../domain/exact-numbers.ts';

/** Limit of a statement, that of a URL. */
const maxLength = 16_384;

export type Token =
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
  [/'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"/y, (text) => ({ kind: 'text', text: unquoted(text) })],
  [/<=|>=|<>|!=|[=<>(),*?[\]+-]/y, (text) => ({ kind: 'sign', text })],
];

/**
 * Reads a number as JSON does, also with a plus sign and without a digit before the point. Throws
 * 300.
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

/** Keeps the backslash before other letters: patterns of `regexp` need it. */
const keptEscape = (char: string): string => (/['"\\]/.test(char) ? char : `\\${char}`);

/** Splits a statement into tokens, with an end token. Throws 300. */
export function tokenize(cql: string): Token[] {
  if (cql.length > maxLength) throw syntaxError('the statement is too long');
  const tokens: Token[] = [];
  let at = 0;
  while (at < cql.length) {
    const [length, token] = tokenAt(cql, at);
    if (token) tokens.push(token);
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
