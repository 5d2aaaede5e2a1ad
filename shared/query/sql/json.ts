import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import type { Comparison, PlainTest } from '../condition.ts';
import { sqlPattern } from '../parse/regex/regex.ts';
import { negate } from './column.ts';
import { compileNear, compileWithin } from './geo.ts';
import { type JsonMember, jsonPath, valuesAt as values } from './json-path.ts';
import type { Params } from './params.ts';

/**
 * Compiles a test of a custom member in the jsonb column. A lax JSON path unwraps arrays on the way and at its end, as
 * queries on documents do. Paths are passed as parameters; their names are whitelisted and quoted as JSON. The GIN index
 * (jsonb_path_ops) serves `@@` and `@?` with `==`. Tests that the index cannot serve use functions: with operators the
 * planner could still choose that index and read all of it.
 */
export function compileJsonTest(member: JsonMember, test: PlainTest, params: Params): string {
  switch (test.op) {
    case 'equal':
      return compileEquality(member, [test.value], params);
    case 'notEqual':
      return negate(compileEquality(member, [test.value], params));
    case 'in':
      return compileEquality(member, test.values, params);
    case 'notIn':
      return negate(compileEquality(member, test.values, params));
    case 'all':
      return test.values.length === 0
        ? 'false'
        : `(${test.values.map((value) => compileEquality(member, [value], params)).join(' AND ')})`;
    case 'compare':
      return compileComparison(member, test, params);
    case 'size':
      return `EXISTS (SELECT FROM ${values(member, params, '')} AS item
        WHERE CASE WHEN jsonb_typeof(item) = 'array' THEN jsonb_array_length(item) = ${params.add(test.size)}::int ELSE false END)`;
    case 'exists':
      return test.isThere ? compileExists(member, params) : negate(compileExists(member, params));
    case 'regex':
      return `EXISTS (SELECT FROM ${values(member, params, '[*]')} AS item
        WHERE jsonb_typeof(item) = 'string' AND (item #>> '{}') ~ ${params.add(sqlPattern(test.pattern))})`;
    case 'near':
      return compileNear(member, test, params);
    case 'within':
      return compileWithin(member, test, params);
  }
}

/** Compiles `@@` without use of the index. */
const compilePredicate = (member: JsonMember, predicate: string, params: Params): string =>
  `jsonb_path_match(${member.column}, ${params.add(predicate)}::jsonpath, '{}', true)`;

/** Compiles `@?` without use of the index. */
const compileExists = (member: JsonMember, params: Params): string =>
  `jsonb_path_exists(${member.column}, ${params.add(jsonPath(member))}::jsonpath, '{}', true)`;

type Scalar = Exclude<Json, Json[] | JsonObject>;
const isScalar = (value: Json): value is Scalar => value === null || typeof value !== 'object';

function compileEquality(member: JsonMember, wanted: Json[], params: Params): string {
  const scalars = wanted.filter(isScalar);
  const parts: string[] = [];
  if (scalars.length > 0) {
    const tests = scalars.map((value) => `${jsonPath(member)} == ${JSON.stringify(value)}`);
    parts.push(`${member.column} @@ ${params.add(tests.join(' || '))}::jsonpath`);
  }
  // Missing members count as null.
  if (scalars.includes(null)) parts.push(negate(compileExists(member, params)));
  for (const value of wanted) {
    if (Array.isArray(value)) parts.push(compileArrayEquality(member, value, params));
    else if (isJsonObject(value)) parts.push(compileObjectEquality(member, value, params));
  }
  if (parts.length === 0) return 'false';
  return parts.length === 1 ? parts.join() : `(${parts.join(' OR ')})`;
}

/** Matches the whole array, or an array nested in the array. */
function compileArrayEquality(member: JsonMember, value: Json[], params: Params): string {
  const wanted = `${params.add(JSON.stringify(value))}::jsonb`;
  const isAmong = (suffix: '' | '[*]') =>
    `EXISTS (SELECT FROM ${values(member, params, suffix)} AS item WHERE item = ${wanted})`;
  return `(${isAmong('')} OR ${isAmong('[*]')})`;
}

/** Finds candidates through the index by scalar members (a pointer's id, a date's text), then compares the whole object. */
function compileObjectEquality(member: JsonMember, value: JsonObject, params: Params): string {
  const wanted = `${params.add(JSON.stringify(value))}::jsonb`;
  const whole = `EXISTS (SELECT FROM ${values(member, params, '[*]')} AS item WHERE item = ${wanted})`;
  const leaves = leafTests(value, '@').slice(0, maxLeaves);
  if (leaves.length === 0) return whole;
  const candidates = `${jsonPath(member)}[*] ? (${leaves.join(' && ')})`;
  return `(${member.column} @? ${params.add(candidates)}::jsonpath AND ${whole})`;
}

/** Limit of the scalar members used for the index search; more do not narrow it further. */
const maxLeaves = 8;

function leafTests(value: JsonObject, prefix: string): string[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const path = `${prefix}.${JSON.stringify(name)}`;
    if (isScalar(member)) return [`${path} == ${JSON.stringify(member)}`];
    return Array.isArray(member) ? [] : leafTests(member, path);
  });
}

function compileComparison(
  member: JsonMember,
  { operator: relation, value }: Comparison,
  params: Params,
): string {
  const wanted = JSON.stringify(value.value);
  if (value.type !== 'time')
    return compilePredicate(member, `${jsonPath(member)} ${relation} ${wanted}`, params);
  // The operator form: the index knows which documents have a date there.
  const dates = `${jsonPath(member)}[*] ? (@."__type" == "Date" && @."iso" ${relation} ${wanted})`;
  return `${member.column} @? ${params.add(dates)}::jsonpath`;
}
