import { refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import type { Subquery } from '../condition.ts';
import { parseLimit, parseSkip, parseSortOrder, requireValueField } from '../list/page.ts';
import { classes } from '../schema/classes.ts';
import { type ClassSchema, resolveField, type ValueField } from '../schema/fields.ts';

/** Sub-queries in one condition: each may scan its class once. */
export const maxSubqueries = 5;
/** Sub-queries inside one another. */
export const maxSubqueryDepth = 2;

/** Operators whose operand is a query, and what they make of it. */
const subqueryOperators = new Map([
  ['$inQuery', { hasKey: false, isNegated: false }],
  ['$notInQuery', { hasKey: false, isNegated: true }],
  ['$select', { hasKey: true, isNegated: false }],
  ['$dontSelect', { hasKey: true, isNegated: true }],
]);

export const isSubqueryOperator = (name: string): boolean => subqueryOperators.has(name);

/** An operand, read but for its condition, which is of another class than the one around it. */
export interface SubqueryOperand extends Omit<Subquery, 'where' | 'viewer'> {
  where: Json | undefined;
  key: ValueField | undefined;
  isNegated: boolean;
}

/** Throws 101 for a class that is not there, 102 for another shape, 105 for bad or hidden names. */
export function parseSubqueryOperand(name: string, operand: Json): SubqueryOperand {
  const { hasKey, isNegated } = subqueryOperators.get(name) ?? { hasKey: false, isNegated: false };
  if (!isJsonObject(operand)) throw refuse('invalidQuery', `${name} takes a query.`);
  const { key, query } = hasKey ? operand : { key: undefined, query: operand };
  if (!isJsonObject(query)) throw refuse('invalidQuery', `${name} takes a query.`);
  if (hasKey && typeof key !== 'string') throw refuse('invalidQuery', `${name} takes a key.`);
  // Where a pointer's class goes without saying it is a user: nothing else points to a person (protocol/queries.md#sub-queries).
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

/** A sub-query gives as many rows as a list call: 100, or up to 1000 where it says so. */
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
