import { Refusal, refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../domain/json.ts';
import { canonicalValue } from '../../domain/objects/typed-values.ts';
import type { Condition, Subquery, SubqueryTest, Test } from '../condition.ts';
import { parseLimit, parseSkip, parseSortOrder, requireValueField } from '../list/page.ts';
import {
  type ClassSchema,
  classes,
  type Field,
  isRelation,
  resolveField,
  type ValueField,
} from '../schema.ts';
import { type MemberUse, requireListAccess, type Viewer } from '../viewer.ts';
import { parseOperator } from './operators.ts';
import { parseRelatedOperand } from './related.ts';

/**
 * Limits of a condition (protocol/known-problems.md#dos-by-query). Real conditions stay far below:
 * the body of a push is under 4096 bytes, and a URL under 16 KB.
 */
const whereLimits = {
  textLength: 65_536,
  nodes: 4000,
  jsonDepth: 40,
  depth: 10,
  patterns: 10,
} as const;

/**
 * Parses a `where` into a checked condition. `value` is a dictionary, an array of dictionaries
 * (combined by AND), or JSON text of either. An absent or empty value matches every row
 * (protocol/queries.md#query-parameters).
 *
 * Throws what `viewer.checkUses` throws, and:
 *
 * - 102 if the condition is malformed, unknown or too large;
 * - 105 if a name is invalid or hidden;
 * - 106 or 111 if a value is malformed;
 * - 101 if the class of a subquery is unknown, 403 if the viewer may not list the class.
 */
export function parseWhere(value: unknown, cls: ClassSchema, viewer: Viewer): Condition {
  const operand = typeof value === 'string' ? parseText(value) : value;
  if (operand === undefined || operand === null) return { kind: 'and', all: [] };
  checkSize(operand);
  const used = { subqueries: 0, patterns: 0 };
  const condition = parseCondition(operand, { cls, viewer, depth: 0, queryDepth: 0, used });
  viewer.checkUses?.(usesOf(condition, cls));
  return condition;
}

function parseText(text: string): unknown {
  if (text.trim() === '') return undefined;
  if (text.length > whereLimits.textLength) throw refuse('invalidQuery', 'where is too long.');
  try {
    return parseJson(text);
  } catch (error) {
    throw error instanceof Refusal ? error : refuse('invalidQuery', 'where is not JSON.');
  }
}

/**
 * Checks size and depth without recursion. Recursive code then never sees a value that is too deep.
 */
function checkSize(value: unknown): void {
  const open: { value: unknown; depth: number }[] = [{ value, depth: 0 }];
  let nodes = 0;
  let length = 0;
  for (let next = open.pop(); next; next = open.pop()) {
    nodes += 1;
    if (typeof next.value === 'string') length += next.value.length;
    if (nodes > whereLimits.nodes || length > whereLimits.textLength)
      throw refuse('invalidQuery', 'where is too large.');
    if (next.depth > whereLimits.jsonDepth)
      throw refuse('invalidQuery', 'where is nested too deeply.');
    if (typeof next.value !== 'object' || next.value === null) continue;
    for (const inner of Object.values(next.value))
      open.push({ value: inner, depth: next.depth + 1 });
  }
}

/** Position of the parser in the condition. */
interface ParseContext {
  cls: ClassSchema;
  viewer: Viewer;
  depth: number;
  /** Number of enclosing subqueries. */
  queryDepth: number;
  /** Subqueries and patterns of the whole condition so far. */
  used: { subqueries: number; patterns: number };
}

function parseCondition(value: unknown, context: ParseContext): Condition {
  if (context.depth > whereLimits.depth)
    throw refuse('invalidQuery', 'where is nested too deeply.');
  if (Array.isArray(value)) return { kind: 'and', all: parseAll(value, context) };
  if (!isJsonObject(value)) throw refuse('invalidQuery', 'where must be a dictionary.');
  const parts = Object.entries(value).flatMap(([name, test]) => parseMember(name, test, context));
  const [only] = parts;
  return parts.length === 1 && only ? only : { kind: 'and', all: parts };
}

function parseAll(values: unknown[], context: ParseContext): Condition[] {
  return values.map((value) => parseCondition(value, { ...context, depth: context.depth + 1 }));
}

function parseMember(name: string, test: Json, context: ParseContext): Condition[] {
  if (name === '$and' || name === '$or') {
    if (!Array.isArray(test) || test.length === 0)
      throw refuse('invalidQuery', `${name} takes a list of conditions.`);
    const parts = parseAll(test, context);
    return [name === '$and' ? { kind: 'and', all: parts } : { kind: 'or', any: parts }];
  }
  if (name === '$relatedTo') return [parseRelated(test, context)];
  if (name.startsWith('$')) throw refuse('invalidQuery', 'where has an unknown operator.');
  return parseTests(resolveField(name, context.cls), test, context);
}

function parseRelated(operand: Json, { cls, viewer }: ParseContext): Condition {
  const related = parseRelatedOperand(operand, cls);
  requireListAccess(viewer, related.owner);
  return { kind: 'related', ...related, viewer };
}

function parseTests(field: Field, operand: Json, context: ParseContext): Condition[] {
  const tests = hasOperators(operand) ? parseTypedOperators(operand, context) : [equalTo(operand)];
  const isEqualityOnly =
    'column' in field && field.column.type === 'text' && field.column.isEqualityOnly;
  if (isEqualityOnly && tests.some(({ op }) => op !== 'equal'))
    throw refuse('invalidQuery', `${field.name} supports equality only.`);
  if (isRelation(field))
    return tests.map((test) => ({
      kind: 'members',
      relation: field.column,
      test,
      appId: context.viewer.appId,
    }));
  return tests.map((test) => ({ kind: 'field', field, test }));
}

const equalTo = (value: Json): Test => ({ op: 'equal', value: canonicalValue(value) });

/**
 * Parses the operators of a member. The JavaScript SDK also adds operators to a typed value, such
 * as a pointer. The typed value is then an additional equality test.
 */
function parseTypedOperators(operand: JsonObject, context: ParseContext): Test[] {
  const isTyped = Object.hasOwn(operand, '__type');
  const [operators, value] = isTyped ? splitOperators(operand) : [operand, undefined];
  const tests = parseOperators(operators, context);
  return value === undefined ? tests : [equalTo(value), ...tests];
}

function splitOperators(operand: JsonObject): [operators: JsonObject, value: JsonObject] {
  const entries = Object.entries(operand);
  const isOperator = ([name]: [string, Json]) => name.startsWith('$');
  return [
    Object.fromEntries(entries.filter(isOperator)),
    Object.fromEntries(entries.filter((entry) => !isOperator(entry))),
  ];
}

function parseOperators(operators: JsonObject, context: ParseContext): Test[] {
  return Object.entries(operators).flatMap(([name, operand]): Test[] => {
    if (isSubqueryOperator(name)) return [parseSubquery(name, operand, context)];
    if (name === '$regex') countPattern(context);
    return parseOperator(name, operand, operators);
  });
}

/** Counts a pattern against the limit, because each pattern may scan every text of every row. */
function countPattern({ used }: ParseContext): void {
  used.patterns += 1;
  if (used.patterns > whereLimits.patterns)
    throw refuse('invalidQuery', `where holds at most ${whereLimits.patterns} $regex.`);
}

function parseSubquery(name: string, operand: Json, context: ParseContext): Test {
  context.used.subqueries += 1;
  if (context.used.subqueries > maxSubqueries || context.queryDepth >= maxSubqueryDepth)
    throw refuse('invalidQuery', 'where has too many queries within.');
  const { where = {}, key, isNegated, ...query } = parseSubqueryOperand(name, operand);
  requireListAccess(context.viewer, query.cls);
  const inner = {
    ...context,
    cls: query.cls,
    depth: context.depth + 1,
    queryDepth: context.queryDepth + 1,
  };
  const subquery = { ...query, where: parseCondition(where, inner), viewer: context.viewer };
  return { op: 'subquery', query: subquery, key, isNegated };
}

function hasOperators(value: unknown): value is JsonObject {
  return isJsonObject(value) && Object.keys(value).some((key) => key.startsWith('$'));
}

/**
 * Returns every use of a member's name in a checked condition: tests, and the keys and sort orders
 * of subqueries.
 */
const usesOf = (condition: Condition, cls: ClassSchema): MemberUse[] =>
  usesIn(condition, cls, false);

function usesIn(condition: Condition, cls: ClassSchema, isInner: boolean): MemberUse[] {
  switch (condition.kind) {
    case 'and':
      return condition.all.flatMap((one) => usesIn(one, cls, isInner));
    case 'or':
      return condition.any.flatMap((one) => usesIn(one, cls, isInner));
    case 'field': {
      const use = { ...named(condition.field.name, cls), ...useOf(condition.test), isInner };
      return [use, ...usesInTest(condition.test)];
    }
    case 'members':
      return usesInTest(condition.test);
    case 'related':
      return [];
  }
}

const named = (name: string, cls: ClassSchema) => ({
  className: cls.name,
  member: name.split('.', 1)[0] ?? name,
});

const usesInTest = (test: Test): MemberUse[] => (test.op === 'subquery' ? usesInQuery(test) : []);

function usesInQuery({ query, key }: SubqueryTest): MemberUse[] {
  const { cls, where, sortOrder } = query;
  const keys = key ? [{ ...named(key.name, cls), use: 'other', isInner: true } as const] : [];
  const orders = sortOrder.map(
    ({ field }) => ({ ...named(field.name, cls), use: 'spelling', isInner: true }) as const,
  );
  return [...keys, ...orders, ...usesIn(where, cls, true)];
}

function useOf(test: Test): Pick<MemberUse, 'use' | 'value'> {
  if (test.op === 'equal' && typeof test.value === 'string')
    return { use: 'whole', value: test.value };
  const isSpelling = test.op === 'regex' || (test.op === 'compare' && test.value.type === 'string');
  return { use: isSpelling ? 'spelling' : 'other' };
}

/** Maximum number of subqueries in one condition. Each subquery may scan its class once. */
const maxSubqueries = 5;
/** Maximum depth of nested subqueries. */
const maxSubqueryDepth = 2;

/** Operators whose operand is a query. */
const subqueryOperators = new Map([
  ['$inQuery', { hasKey: false, isNegated: false }],
  ['$notInQuery', { hasKey: false, isNegated: true }],
  ['$select', { hasKey: true, isNegated: false }],
  ['$dontSelect', { hasKey: true, isNegated: true }],
]);

const isSubqueryOperator = (name: string): boolean => subqueryOperators.has(name);

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
function parseSubqueryOperand(name: string, operand: Json): SubqueryOperand {
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
