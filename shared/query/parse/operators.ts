import { refuse } from '../../domain/errors/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { canonicalValue, timeOfDate } from '../../domain/objects/typed-values.ts';
import type { Comparable, PlainTest, Relation } from '../condition.ts';
import { distanceOperators, readBox, readDistance, readPoint } from './geo.ts';
import { translateRegex } from './regex/regex.ts';

/** Members of one `$in`, `$nin` or `$all`. */
export const maxListLength = 1000;

const relations = new Map<string, Relation>([
  ['$lt', '<'],
  ['$lte', '<='],
  ['$gt', '>'],
  ['$gte', '>='],
]);

/**
 * The test that one of the `operators` of a member asks for; all of them must hold (protocol/queries.md#operators). Some only say more
 * of another one, and ask for none. Throws 102, 106 or 111.
 */
export function parseOperator(name: string, operand: Json, operators: JsonObject): PlainTest[] {
  const relation = relations.get(name);
  if (relation) return [{ op: 'compare', relation, value: comparable(name, operand) }];
  switch (name) {
    case '$eq':
      return [{ op: 'equal', value: canonicalValue(operand) }];
    case '$ne':
      return [{ op: 'notEqual', value: canonicalValue(operand) }];
    case '$in':
      return [{ op: 'in', values: list(name, operand) }];
    case '$nin':
      return [{ op: 'notIn', values: list(name, operand) }];
    case '$all':
      return [{ op: 'all', values: list(name, operand) }];
    case '$size':
      return [{ op: 'size', size: sizeOf(operand) }];
    case '$exists':
      return [{ op: 'exists', isThere: flag(operand) }];
    case '$regex':
      return [{ op: 'regex', pattern: translateRegex(operand, operators.$options) }];
    case '$options':
      if (!Object.hasOwn(operators, '$regex')) throw refuse('invalidQuery', '$options needs a $regex.');
      return [];
    case '$nearSphere':
      return [near(operand, operators)];
    case '$within':
      return [{ op: 'within', ...readBox(operand) }];
    default:
      if (distanceOperators.has(name) && Object.hasOwn(operators, '$nearSphere')) return [];
      throw refuse('invalidQuery', unknownOperator(name));
  }
}

function unknownOperator(name: string): string {
  if (distanceOperators.has(name)) return `${name} needs a $nearSphere.`;
  if (!name.startsWith('$')) return 'A condition mixes operators and members.';
  return /^\$[A-Za-z]{1,30}$/.test(name) ? `The operator ${name} is not supported.` : 'Unknown operator.';
}

function near(operand: Json, operators: JsonObject): PlainTest {
  return {
    op: 'near',
    point: readPoint(operand),
    least: readDistance('$minDistance', operators),
    most: readDistance('$maxDistance', operators),
  };
}

/** What can be smaller or greater: numbers, texts, booleans, dates. */
function comparable(name: string, operand: Json): Comparable {
  const value = canonicalValue(operand);
  if (typeof value === 'number') return { type: 'number', value };
  if (typeof value === 'string') return { type: 'string', value };
  if (typeof value === 'boolean') return { type: 'boolean', value };
  const time = timeOfDate(value);
  if (time !== undefined) return { type: 'time', value: time };
  throw refuse('invalidQuery', `${name} takes a number, a text, a boolean or a date.`);
}

function list(name: string, operand: Json): Json[] {
  if (!Array.isArray(operand)) throw refuse('invalidQuery', `${name} takes a list.`);
  if (operand.length > maxListLength)
    throw refuse('invalidQuery', `${name} takes at most ${maxListLength} values.`);
  return operand.map((item) => canonicalValue(item));
}

function sizeOf(operand: Json): number {
  if (typeof operand !== 'number' || !Number.isInteger(operand) || operand < 0 || operand > 2 ** 31 - 1)
    throw refuse('invalidQuery', '$size takes a whole number.');
  return operand;
}

function flag(operand: Json): boolean {
  if (typeof operand !== 'boolean') throw refuse('invalidQuery', '$exists takes a boolean.');
  return operand;
}
