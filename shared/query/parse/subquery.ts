import { refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import type { Subquery } from '../condition.ts';
import { parseLimit, parseSkip, parseSortOrder, requireValueField } from '../list/page.ts';
import { type ClassSchema, classes, resolveField, type ValueField } from '../schema.ts';

/** Maximum number of subqueries in one condition. Each subquery may scan its class once. */
export const maxSubqueries = 5;
/** Maximum depth of nested subqueries. */
export const maxSubqueryDepth = 2;

/** Operators whose operand is a query. */
const subqueryOperators = new Map([
  ['$inQuery', { hasKey: false, isNegated: false }],
  ['$notInQuery', { hasKey: false, isNegated: true }],
  ['$select', { hasKey: true, isNegated: false }],
  ['$dontSelect', { hasKey: true, isNegated: true }],
]);

export const isSubqueryOperator = (name: string): boolean => subqueryOperators.has(name);

/**
 * Parsed operand of a subquery operator. Its `where` is still JSON, because it is a condition over
 * another class.
 */
export interface SubqueryOperand extends Omit<Subquery, 'where' | 'viewer'> {
  where: Json | undefined;
  key: ValueField | undefined;
  isNegated: boolean;
}

/**
 * Parses the operand of a subquery operator. Throws error 101 if the class is unknown, error 102 if
 * the shape is wrong, error 105 if a name is invalid or hidden.
 */
export function parseSubqueryOperand(name: string, operand: Json): SubqueryOperand {
  const { hasKey, isNegated } = subqueryOperators.get(name) ?? { hasKey: false, isNegated: false };
  if (!isJsonObject(operand)) throw refuse('invalidQuery', `${name} takes a query.`);
  const { key, query } = hasKey ? operand : { key: undefined, query: operand };
  if (!isJsonObject(query)) throw refuse('invalidQuery', `${name} takes a query.`);
  if (hasKey && typeof key !== 'string') throw refuse('invalidQuery', `${name} takes a key.`);
  // Without a class name `$inQuery` means `_User` (protocol/queries.md#sub-queries).
  const cls = requireClass(hasKey ? query.className : (query.className ?? '_User'));
  return {
    cls,
    ...parsePage(query, cls),
    where: query.where,
    key: typeof key === 'string' ? requireValueField(resolveField(key, cls)) : undefined,
    isNegated,
  };
}

function requireClass(name: Json | undefined): ClassSchema {
  const cls = typeof name === 'string' ? classes.get(name) : undefined;
  if (!cls) throw refuse('objectNotFound', "Class or object doesn't exists.");
  return cls;
}

/**
 * Parses `limit`, `skip` and `order` of a subquery. Like a list call, a subquery selects 100 rows
 * by default and up to 1,000 by `limit`.
 */
function parsePage(
  { limit, skip, order }: JsonObject,
  cls: ClassSchema,
): Pick<Subquery, 'limit' | 'skip' | 'sortOrder'> {
  return {
    limit: parseLimit(limit, false),
    skip: parseSkip(skip ?? undefined),
    sortOrder: parseSortOrder(order ?? undefined, cls),
  };
}
