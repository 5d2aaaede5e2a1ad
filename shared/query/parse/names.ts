import { refuse } from '../../domain/errors/errors.ts';

/** Splits a list parameter such as `keys=a, b`; ignores blanks. Throws 102 for another type or too many names. */
export function parseNames(value: unknown, parameter: string, maxNames: number): string[] {
  if (typeof value !== 'string') throw refuse('invalidQuery', `${parameter} takes a text.`);
  const names = value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length > maxNames) throw refuse('invalidQuery', `${parameter} takes at most ${maxNames} names.`);
  return names;
}
