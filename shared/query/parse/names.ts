import { refuse } from '../../domain/errors/errors.ts';

/** The names of a list parameter such as `keys=a, b`; blanks are tolerated. Throws 102 when malformed or too many. */
export function parseNames(value: unknown, parameter: string, maxNames: number): string[] {
  if (typeof value !== 'string') throw refuse('invalidQuery', `${parameter} takes a text.`);
  const names = value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length > maxNames) throw refuse('invalidQuery', `${parameter} takes at most ${maxNames} names.`);
  return names;
}
