import { timeOfDate } from '../../domain/client-values.ts';
import { refuse } from '../../domain/errors/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { canonicalValue } from '../../domain/objects/typed-values.ts';
import type { Comparable, ComparisonOperator, PlainTest } from '../condition.ts';
import { distanceOperators, parseBox, parseDistance, parsePoint } from './geo.ts';
import { translateRegex } from './regex.ts';

/** Maximum number of values of one `$in`, `$nin` or `$all`. */
const maxListLength = 1000;

const comparisonOperators = new Map<string, ComparisonOperator>([
  ['$lt', '<'],
  ['$lte', '<='],
  ['$gt', '>'],
  ['$gte', '>='],
]);

/**
 * Parses one operator of a member into tests, all of which must hold
 * (protocol/queries.md#operators). `operators` contains all operators of the member. Modifiers such
 * as `$options` return no test. Throws error 102, 106 or 111.
 */
export function parseOperator(name: string, operand: Json, operators: JsonObject): PlainTest[] {
  const comparison = comparisonOperators.get(name);
  if (comparison)
    return [{ op: 'compare', operator: comparison, value: parseComparable(name, operand) }];
  switch (name) {
    case '$eq':
      return [{ op: 'equal', value: canonicalValue(operand) }];
    case '$ne':
      return [{ op: 'notEqual', value: canonicalValue(operand) }];
    case '$in':
      return [{ op: 'in', values: parseList(name, operand) }];
    case '$nin':
      return [{ op: 'notIn', values: parseList(name, operand) }];
    case '$all':
      return [{ op: 'all', values: parseList(name, operand) }];
    case '$size':
      return [{ op: 'size', size: parseSize(operand) }];
    case '$exists':
      return [{ op: 'exists', isThere: parseFlag(operand) }];
    case '$regex':
      return [{ op: 'regex', pattern: translateRegex(operand, operators.$options) }];
    case '$options':
      if (!Object.hasOwn(operators, '$regex'))
        throw refuse('invalidQuery', '$options needs a $regex.');
      return [];
    case '$nearSphere':
      return [parseNear(operand, operators)];
    case '$within':
      return [{ op: 'within', ...parseBox(operand) }];
    default:
      if (distanceOperators.has(name) && Object.hasOwn(operators, '$nearSphere')) return [];
      throw refuse('invalidQuery', unknownOperatorText(name));
  }
}

function unknownOperatorText(name: string): string {
  if (distanceOperators.has(name)) return `${name} needs a $nearSphere.`;
  if (!name.startsWith('$')) return 'A condition mixes operators and members.';
  return /^\$[A-Za-z]{1,30}$/.test(name)
    ? `The operator ${name} is not supported.`
    : 'Unknown operator.';
}

function parseNear(operand: Json, operators: JsonObject): PlainTest {
  return {
    op: 'near',
    point: parsePoint(operand),
    minDistance: parseDistance('$minDistance', operators),
    maxDistance: parseDistance('$maxDistance', operators),
  };
}

/** Parses a value of an ordered type: number, text, boolean or date. */
function parseComparable(name: string, operand: Json): Comparable {
  const value = canonicalValue(operand);
  if (typeof value === 'number' || typeof value === 'bigint') return { type: 'number', value };
  if (typeof value === 'string') return { type: 'string', value };
  if (typeof value === 'boolean') return { type: 'boolean', value };
  const time = timeOfDate(value);
  if (time !== undefined) return { type: 'time', value: time };
  throw refuse('invalidQuery', `${name} takes a number, a text, a boolean or a date.`);
}

function parseList(name: string, operand: Json): Json[] {
  if (!Array.isArray(operand)) throw refuse('invalidQuery', `${name} takes a list.`);
  if (operand.length > maxListLength)
    throw refuse('invalidQuery', `${name} takes at most ${maxListLength} values.`);
  return operand.map((item) => canonicalValue(item));
}

function parseSize(operand: Json): number {
  if (
    typeof operand !== 'number' ||
    !Number.isInteger(operand) ||
    operand < 0 ||
    operand > 2 ** 31 - 1
  )
    throw refuse('invalidQuery', '$size takes a whole number.');
  return operand;
}

function parseFlag(operand: Json): boolean {
  if (typeof operand !== 'boolean') throw refuse('invalidQuery', '$exists takes a boolean.');
  return operand;
}

/**
 * Splits a list parameter such as `keys=a, b`. Ignores blanks. Throws error 102 if the value is not
 * a text or has too many names.
 */
export function parseNames(value: unknown, parameter: string, maxNames: number): string[] {
  if (typeof value !== 'string') throw refuse('invalidQuery', `${parameter} takes a text.`);
  const names = value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length > maxNames)
    throw refuse('invalidQuery', `${parameter} takes at most ${maxNames} names.`);
  return names;
}
