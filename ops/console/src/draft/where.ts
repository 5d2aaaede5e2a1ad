import {
  canonicalText,
  isRecord,
  isSameJson,
  type JsonRecord,
  type JsonValue,
  parseJsonText,
} from './json-text.ts';

/** Converts between `where` conditions and rows of the condition builder. */

/** Comparisons of a row and the operators in a condition. `is` has no operator. */
const operators = {
  is: undefined,
  isNot: '$ne',
  more: '$gt',
  atLeast: '$gte',
  less: '$lt',
  atMost: '$lte',
  anyOf: '$in',
  noneOf: '$nin',
  allOf: '$all',
  exists: '$exists',
  matches: '$regex',
} as const;

export type Comparison = keyof typeof operators;
export const comparisons = Object.keys(operators).filter(
  (name): name is Comparison => name in operators,
);

/** Row: a member of an installation, a comparison and a value. */
export interface Clause {
  member: string;
  comparison: Comparison;
  value: JsonValue;
}

/** Rows that must all match, and groups of which at least one must match. */
export interface Condition {
  all: Clause[];
  /** The `$or` groups. All rows of a group must match. */
  any: Clause[][];
}

/**
 * Returns the rows of a condition. Returns undefined if rows cannot express the condition; it is
 * then edited as JSON.
 */
export function readCondition(where: JsonValue | undefined): Condition | undefined {
  if (where === undefined || where === null) return { all: [], any: [] };
  if (!isRecord(where)) return undefined;
  const { $or: groups, ...others } = where;
  const all = rowsOf(others);
  const any = listOf(groups).map(rowsOf);
  if (!all || any.includes(undefined)) return undefined;
  const condition = { all, any: any.map((rows) => rows ?? []) };
  return isSameJson(writeCondition(condition), where) ? condition : undefined;
}

/** Returns the rows of conditions that must all match. */
function rowsOf(where: JsonValue | undefined): Clause[] | undefined {
  if (!isRecord(where)) return undefined;
  const { $and: more, ...members } = where;
  const lists = [clausesOf(members), ...listOf(more).map(clausesOf)];
  return lists.includes(undefined) ? undefined : lists.flatMap((list) => list ?? []);
}

const listOf = (value: JsonValue | undefined): (JsonValue | undefined)[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

function clausesOf(where: JsonValue | undefined): Clause[] | undefined {
  if (!isRecord(where)) return undefined;
  const clauses: Clause[] = [];
  for (const [member, wanted] of Object.entries(where)) {
    if (member.startsWith('$')) return undefined;
    const found = isOperators(wanted)
      ? operatorClauses(member, wanted)
      : plainClause(member, wanted);
    if (!found) return undefined;
    clauses.push(...found);
  }
  return clauses;
}

const isOperators = (value: JsonValue): value is JsonRecord =>
  isRecord(value) && Object.keys(value).some((name) => name.startsWith('$'));

const plainClause = (member: string, value: JsonValue): Clause[] | undefined =>
  isSimple(value) ? [{ member, comparison: 'is', value }] : undefined;

function operatorClauses(member: string, tests: JsonRecord): Clause[] | undefined {
  const clauses: Clause[] = [];
  for (const [operator, value] of Object.entries(tests)) {
    const comparison = comparisons.find((name) => operators[name] === operator);
    if (comparison === undefined || !fits(comparison, value)) return undefined;
    clauses.push({ member, comparison, value });
  }
  return clauses;
}

const listing: ReadonlySet<Comparison> = new Set(['anyOf', 'noneOf', 'allOf']);

/** True if a comparison needs a list. */
export const takesList = (comparison: Comparison): boolean => listing.has(comparison);

function fits(comparison: Comparison, value: JsonValue): boolean {
  if (takesList(comparison)) return Array.isArray(value) && value.every(isSimple);
  if (comparison === 'exists') return typeof value === 'boolean';
  return comparison === 'matches' ? typeof value === 'string' : isSimple(value);
}

/** True if a row can show a value: a text, a number, a boolean or a date. */
function isSimple(value: JsonValue): boolean {
  if (value === null || Array.isArray(value)) return false;
  return isRecord(value) ? isDate(value) : true;
}

export const isDate = (value: JsonValue): value is JsonRecord =>
  isRecord(value) &&
  value.__type === 'Date' &&
  typeof value.iso === 'string' &&
  Object.keys(value).length === 2;

/**
 * Returns the condition of rows. Rows about the same member share an object. A second row with the
 * same member and comparison goes into `$and`.
 */
export function writeCondition({ all, any }: Condition): JsonRecord {
  const { where, rest } = merged(all);
  const more = rest.map((clause) => merged([clause]).where);
  return {
    ...where,
    ...(more.length === 0 ? {} : { $and: more }),
    ...(any.length === 0
      ? {}
      : { $or: any.map((clauses) => writeCondition({ all: clauses, any: [] })) }),
  };
}

function merged(clauses: readonly Clause[]): { where: JsonRecord; rest: Clause[] } {
  const members = new Map<string, JsonValue>();
  const rest: Clause[] = [];
  for (const clause of clauses) {
    const { member, comparison, value } = clause;
    const operator = operators[comparison];
    const before = members.get(member);
    if (before === undefined)
      members.set(member, operator === undefined ? value : { [operator]: value });
    else if (operator !== undefined && isOperators(before) && !Object.hasOwn(before, operator))
      members.set(member, { ...before, [operator]: value });
    else rest.push(clause);
  }
  return { where: Object.fromEntries(members), rest };
}

/** Members of a body that select the devices of a push. */
const targetMembers = [
  'where',
  'cql',
  'channels',
  'device_ids',
  'device_type',
  'vendor',
  'device_profile',
];

/**
 * Returns the body for `POST …/audience`. It counts the devices of the target, in total and without
 * each clause.
 */
export function targetOf(body: JsonRecord): JsonRecord {
  const members = Object.entries(body).filter(([name]) => targetMembers.includes(name));
  return { ...Object.fromEntries(members), clauses: true };
}

interface CountedClause {
  kind: string;
  text: string;
  without: number | null;
}

/** Returns the number of devices without a clause. The keys are the clauses as canonical text. */
export function withoutClauses(clauses: readonly CountedClause[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { kind, text, without } of clauses)
    if (kind === 'where' && without !== null)
      counts.set(canonicalText(parseJsonText(text)), without);
  return counts;
}
