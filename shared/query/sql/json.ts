import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import type { Comparison, NearTest, PlainTest } from '../condition.ts';
import type { Point } from '../parse/geo.ts';
import { sqlPattern } from '../parse/regex.ts';
import { negate } from './column.ts';
import type { Params } from './params.ts';

/** Member of a document in a jsonb column. */
interface JsonMember {
  /** The jsonb column. */
  column: string;
  path: string[];
}

/**
 * Returns the SQL/JSON path of a member. Names are quoted as JSON strings, which the path language
 * accepts.
 */
const jsonPath = ({ path }: JsonMember): string =>
  `$${path.map((name) => `.${JSON.stringify(name)}`).join('')}`;

/**
 * Compiles a set of rows, one for each value of the member. With `[*]`, an array yields one row for
 * each item.
 */
export function valuesAt(member: JsonMember, params: Params, suffix: '' | '[*]'): string {
  return `jsonb_path_query(${member.column}, ${params.add(jsonPath(member) + suffix)}::jsonpath)`;
}

const itemsAt = (member: JsonMember, params: Params): string => valuesAt(member, params, '[*]');

/** Condition that `item` is a stored geo point. Its numbers were checked when it was written. */
const isPoint = `item @> '{"__type":"GeoPoint"}' AND jsonb_typeof(item -> 'latitude') = 'number' AND jsonb_typeof(item -> 'longitude') = 'number'`;

const latitude = `(item ->> 'latitude')::float8`;
const longitude = `(item ->> 'longitude')::float8`;

/**
 * Decimals of a coordinate in a distance. PostgreSQL refuses a product that is too small for a
 * float8, such as the square of a tiny difference.
 */
const decimals = 12;

/**
 * Compiles the great-circle distance from `item` to a point, in radians (haversine formula). The
 * distance is NULL if `item` is not a geo point.
 */
function compileDistance(point: Point, params: Params): string {
  const [lat, lng] = [point.latitude, point.longitude].map(
    (degrees) => `radians(${params.add(Number(degrees.toFixed(decimals)))}::float8)`,
  );
  const [itemLat, itemLng] = ['latitude', 'longitude'].map(
    (name) => `radians(round((item -> '${name}')::numeric, ${decimals})::float8)`,
  );
  const half = (a = '', b = '') => `power(sin((${a} - ${b}) / 2), 2)`;
  const sum = `${half(itemLat, lat)} + cos(${itemLat}) * cos(${lat}) * ${half(itemLng, lng)}`;
  return `CASE WHEN ${isPoint} THEN 2 * asin(least(1, sqrt(${sum}))) END`;
}

function compileNear(
  member: JsonMember,
  { point, minDistance: min, maxDistance: max }: NearTest,
  params: Params,
): string {
  const length = compileDistance(point, params);
  const bounds = [
    ...(min === undefined ? [] : [`length >= ${params.add(min)}::float8`]),
    ...(max === undefined ? [] : [`length <= ${params.add(max)}::float8`]),
  ];
  return `EXISTS (SELECT FROM (SELECT ${length} AS length
    FROM ${itemsAt(member, params)} AS item) AS lengths
    WHERE ${['length IS NOT NULL', ...bounds].join(' AND ')})`;
}

/**
 * Compiles the distance to sort by. If the member contains several points, the nearest point
 * counts.
 */
export function compileSortDistance(member: JsonMember, point: Point, params: Params): string {
  return `(SELECT min(${compileDistance(point, params)}) FROM ${itemsAt(member, params)} AS item)`;
}

/**
 * Compiles the test of a box. The box crosses the date line if its west edge is east of its east
 * edge.
 */
function compileWithin(
  member: JsonMember,
  { southwest, northeast }: { southwest: Point; northeast: Point },
  params: Params,
): string {
  const number = (value: number) => `${params.add(value)}::float8`;
  const west = `${longitude} >= ${number(southwest.longitude)}`;
  const east = `${longitude} <= ${number(northeast.longitude)}`;
  const connective = southwest.longitude <= northeast.longitude ? 'AND' : 'OR';
  const box = `${latitude} BETWEEN ${number(southwest.latitude)} AND ${number(northeast.latitude)} AND (${west} ${connective} ${east})`;
  return `EXISTS (SELECT FROM ${itemsAt(member, params)} AS item
    WHERE CASE WHEN ${isPoint} THEN ${box} ELSE false END)`;
}

/**
 * Compiles a test of a custom member in the jsonb column.
 *
 * - A lax JSON path unwraps arrays on the way and at its end, as queries on documents do.
 * - Paths are passed as parameters. Their names are whitelisted and quoted as JSON.
 * - The GIN index (jsonb_path_ops) serves `@@` and `@?` with `==`. Tests that the index cannot
 *   serve use functions: with operators, the planner could still choose the index and read all of
 *   it.
 */
export function compileJsonTest(member: JsonMember, test: PlainTest, params: Params): string {
  switch (test.op) {
    case 'equal':
      return compileJsonEquality(member, [test.value], params);
    case 'notEqual':
      return negate(compileJsonEquality(member, [test.value], params));
    case 'in':
      return compileJsonEquality(member, test.values, params);
    case 'notIn':
      return negate(compileJsonEquality(member, test.values, params));
    case 'all':
      return test.values.length === 0
        ? 'false'
        : `(${test.values.map((value) => compileJsonEquality(member, [value], params)).join(' AND ')})`;
    case 'compare':
      return compileJsonComparison(member, test, params);
    case 'size':
      return `EXISTS (SELECT FROM ${valuesAt(member, params, '')} AS item
        WHERE CASE WHEN jsonb_typeof(item) = 'array'
          THEN jsonb_array_length(item) = ${params.add(test.size)}::int ELSE false END)`;
    case 'exists':
      return test.isThere ? compileExists(member, params) : negate(compileExists(member, params));
    case 'regex':
      return `EXISTS (SELECT FROM ${valuesAt(member, params, '[*]')} AS item
        WHERE jsonb_typeof(item) = 'string'
          AND (item #>> '{}') ~ ${params.add(sqlPattern(test.pattern))})`;
    case 'near':
      return compileNear(member, test, params);
    case 'within':
      return compileWithin(member, test, params);
  }
}

/**
 * Compiles a path predicate as a function instead of `@@`, so that PostgreSQL does not use the
 * index.
 */
const compilePredicate = (member: JsonMember, predicate: string, params: Params): string =>
  `jsonb_path_match(${member.column}, ${params.add(predicate)}::jsonpath, '{}', true)`;

/**
 * Compiles a test for a path as a function instead of `@?`, so that PostgreSQL does not use the
 * index.
 */
const compileExists = (member: JsonMember, params: Params): string =>
  `jsonb_path_exists(${member.column}, ${params.add(jsonPath(member))}::jsonpath, '{}', true)`;

type Scalar = Exclude<Json, Json[] | JsonObject>;
const isScalar = (value: Json): value is Scalar => value === null || typeof value !== 'object';

function compileJsonEquality(member: JsonMember, values: Json[], params: Params): string {
  const scalars = values.filter(isScalar);
  const parts: string[] = [];
  if (scalars.length > 0) {
    const tests = scalars.map((value) => `${jsonPath(member)} == ${JSON.stringify(value)}`);
    parts.push(`${member.column} @@ ${params.add(tests.join(' || '))}::jsonpath`);
  }
  // A missing member counts as null.
  if (scalars.includes(null)) parts.push(negate(compileExists(member, params)));
  for (const value of values) {
    if (Array.isArray(value)) parts.push(compileArrayEquality(member, value, params));
    else if (isJsonObject(value)) parts.push(compileObjectEquality(member, value, params));
  }
  if (parts.length === 0) return 'false';
  return parts.length === 1 ? parts.join() : `(${parts.join(' OR ')})`;
}

/** Matches if the member is this array, or is an array that contains this array. */
function compileArrayEquality(member: JsonMember, value: Json[], params: Params): string {
  const operand = `${params.add(JSON.stringify(value))}::jsonb`;
  const isAmong = (suffix: '' | '[*]') =>
    `EXISTS (SELECT FROM ${valuesAt(member, params, suffix)} AS item WHERE item = ${operand})`;
  return `(${isAmong('')} OR ${isAmong('[*]')})`;
}

/**
 * Compiles equality with an object. The index finds candidates by scalar members, such as a
 * pointer's id or a date's text. The whole object is then compared.
 */
function compileObjectEquality(member: JsonMember, value: JsonObject, params: Params): string {
  const operand = `${params.add(JSON.stringify(value))}::jsonb`;
  const whole = `EXISTS (SELECT FROM ${valuesAt(member, params, '[*]')} AS item
    WHERE item = ${operand})`;
  const leaves = leafTests(value, '@').slice(0, maxLeaves);
  if (leaves.length === 0) return whole;
  const candidates = `${jsonPath(member)}[*] ? (${leaves.join(' && ')})`;
  return `(${member.column} @? ${params.add(candidates)}::jsonpath AND ${whole})`;
}

/**
 * Maximum number of scalar members in the index search. More members would not narrow the search
 * further.
 */
const maxLeaves = 8;

function leafTests(value: JsonObject, prefix: string): string[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const path = `${prefix}.${JSON.stringify(name)}`;
    if (isScalar(member)) return [`${path} == ${JSON.stringify(member)}`];
    return Array.isArray(member) ? [] : leafTests(member, path);
  });
}

function compileJsonComparison(
  member: JsonMember,
  { operator, value }: Comparison,
  params: Params,
): string {
  const operand = JSON.stringify(value.value);
  if (value.type !== 'time')
    return compilePredicate(member, `${jsonPath(member)} ${operator} ${operand}`, params);
  // Uses the operator form, because the index finds the documents that have a date at this path.
  const dates = `${jsonPath(member)}[*] ? (@."__type" == "Date" && @."iso" ${operator} ${operand})`;
  return `${member.column} @? ${params.add(dates)}::jsonpath`;
}
