import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';

/** Rows of each class in order of creation, for sub-queries. */
export type Rows = Record<string, JsonObject[]>;

/**
 * Evaluates a `where` without SQL and without the compiler. It is the reference of the property
 * test. Documents and conditions are in canonical form. develop/queries.md describes the semantics.
 */
export function matches(document: JsonObject, where: Json, rows: Rows = {}): boolean {
  if (Array.isArray(where)) return where.every((part) => matches(document, part, rows));
  if (!isJsonObject(where)) throw new Error('a condition is a dictionary');
  return Object.entries(where).every(([name, test]) => {
    if (name === '$and') return asList(test).every((part) => matches(document, part, rows));
    if (name === '$or') return asList(test).some((part) => matches(document, part, rows));
    return passes(valuesAt(document, name.split('.')), test, rows);
  });
}

function asList(value: Json): Json[] {
  if (!Array.isArray(value)) throw new Error('expected a list');
  return value;
}

/** Returns all values at a path. Arrays on the path are replaced with their members. */
function valuesAt(document: JsonObject, path: string[]): Json[] {
  let values: Json[] = [document];
  for (const name of path)
    values = values
      .flatMap((value) => (Array.isArray(value) ? value : [value]))
      .flatMap((value) => {
        const member = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
        return member === undefined ? [] : [member];
      });
  return values;
}

function passes(values: Json[], test: Json, rows: Rows): boolean {
  if (!isJsonObject(test) || !Object.keys(test).some((key) => key.startsWith('$')))
    return equals(values, test);
  const members = Object.entries(test);
  const value = members.filter(([name]) => !name.startsWith('$'));
  if (value.length > 0 && !equals(values, Object.fromEntries(value))) return false;
  return members
    .filter(([name]) => name.startsWith('$'))
    .every(([name, operand]) => operator(values, name, { operand, test, rows }));
}

interface OperatorTest {
  operand: Json;
  test: JsonObject;
  rows: Rows;
}

function operator(values: Json[], name: string, { operand, test, rows }: OperatorTest): boolean {
  switch (name) {
    case '$ne':
      return !equals(values, operand);
    case '$in':
      return asList(operand).some((item) => equals(values, item));
    case '$nin':
      return !asList(operand).some((item) => equals(values, item));
    case '$all':
      return asList(operand).length > 0 && asList(operand).every((item) => equals(values, item));
    case '$size':
      return values.some((value) => Array.isArray(value) && value.length === operand);
    case '$exists':
      return values.length > 0 === operand;
    case '$regex':
      return items(values).some(
        (item) => typeof item === 'string' && regex(operand, test).test(item),
      );
    case '$options':
    case '$maxDistanceInKilometers':
    case '$minDistance':
      return true;
    case '$nearSphere':
      return items(values).some((item) => isNear(item, operand, test));
    case '$within':
      return items(values).some((item) => isWithin(item, operand));
    case '$inQuery':
      return isInQuery(values, operand, rows);
    case '$notInQuery':
      return !isInQuery(values, operand, rows);
    case '$select':
      return isSelected(values, operand, rows);
    case '$dontSelect':
      return !isSelected(values, operand, rows);
    default:
      return items(values).some((item) => compares(name, item, operand));
  }
}

function regex(pattern: Json, { $options }: JsonObject): RegExp {
  const quoted = String(pattern).replace(/\\Q([\s\S]*?)(\\E|$)/g, (_all, text: string) =>
    RegExp.escape(text),
  );
  return new RegExp(quoted, typeof $options === 'string' ? $options : '');
}

/** Returns the values. Adds the members of arrays among them. */
const items = (values: Json[]): Json[] =>
  values.flatMap((value) => (Array.isArray(value) ? value : [value]));

function equals(values: Json[], wanted: Json): boolean {
  if (wanted === null && values.length === 0) return true;
  return [...values, ...items(values)].some((value) => stable(value) === stable(wanted));
}

/** Formats JSON so that the order of members does not matter. */
function stable(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(stable).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${stable(member)}`).join()}}`;
}

function compares(name: string, item: Json, operand: Json): boolean {
  const [a, b] = [rankable(item), rankable(operand)];
  if (!a || !b || a.type !== b.type) return false;
  const order =
    a.type === 'string'
      ? Buffer.compare(bytes(a.value), bytes(b.value))
      : Number(a.value) - Number(b.value);
  if (name === '$lt') return order < 0;
  if (name === '$lte') return order <= 0;
  if (name === '$gt') return order > 0;
  if (name === '$gte') return order >= 0;
  throw new Error(`unknown operator ${name}`);
}

const bytes = (value: unknown): Buffer => Buffer.from(String(value));

function rankable(value: Json): { type: string; value: number | string | boolean } | undefined {
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean')
    return { type: typeof value, value };
  if (isJsonObject(value) && value.__type === 'Date' && typeof value.iso === 'string')
    return { type: 'date', value: Date.parse(value.iso) };
  return undefined;
}

function asObject(value: Json | undefined): JsonObject {
  if (!isJsonObject(value)) throw new Error('expected a dictionary');
  return value;
}

const isPoint = (item: Json): item is JsonObject =>
  isJsonObject(item) && item.__type === 'GeoPoint';

/**
 * Computes the distance from the angle between vectors. The compiler uses the haversine formula
 * instead.
 */
function isNear(item: Json, operand: Json, test: JsonObject): boolean {
  if (!isPoint(item)) return false;
  const [a, b] = [vector(item), vector(asObject(operand))];
  const distance = Math.acos(
    Math.min(
      1,
      Math.max(
        -1,
        a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0),
      ),
    ),
  );
  const maxDistance =
    test.$maxDistanceInKilometers === undefined ? 9 : Number(test.$maxDistanceInKilometers) / 6371;
  return distance <= maxDistance && distance >= Number(test.$minDistance ?? 0);
}

function vector(point: JsonObject): number[] {
  const [lat = 0, lng = 0] = [point.latitude, point.longitude].map(
    (x) => (Number(x) * Math.PI) / 180,
  );
  return [Math.cos(lat) * Math.cos(lng), Math.cos(lat) * Math.sin(lng), Math.sin(lat)];
}

function isWithin(item: Json, operand: Json): boolean {
  if (!isPoint(item)) return false;
  const [southwest, northeast] = asList(asObject(operand).$box ?? null).map(asObject);
  const [lat, lng] = [Number(item.latitude), Number(item.longitude)];
  const [west, east] = [Number(southwest?.longitude), Number(northeast?.longitude)];
  const isBetween = west <= east ? lng >= west && lng <= east : lng >= west || lng <= east;
  return isBetween && lat >= Number(southwest?.latitude) && lat <= Number(northeast?.latitude);
}

/** Returns the rows of a sub-query, ordered by `username` or creation. */
function selectRows(query: JsonObject, rows: Rows): JsonObject[] {
  const className = String(query.className ?? '_User');
  const found = (rows[className] ?? []).filter((row) => matches(row, query.where ?? {}, rows));
  const sign = query.order === '-username' ? -1 : 1;
  if (query.order !== undefined)
    found.sort((a, b) => (String(a.username) < String(b.username) ? -sign : sign));
  const skip = Number(query.skip ?? 0);
  return found.slice(skip, skip + Number(query.limit ?? 100));
}

function isInQuery(values: Json[], operand: Json, rows: Rows): boolean {
  const query = asObject(operand);
  const className = query.className ?? '_User';
  const ids = selectRows(query, rows).map((row) => row.objectId);
  return items(values).some(
    (item) =>
      isJsonObject(item) &&
      item.__type === 'Pointer' &&
      item.className === className &&
      ids.includes(item.objectId),
  );
}

function isSelected(values: Json[], operand: Json, rows: Rows): boolean {
  const { key, query } = asObject(operand);
  const selected = selectRows(asObject(query), rows).flatMap((row) =>
    valuesAt(row, String(key).split('.')),
  );
  return [...selected, ...items(selected)].some(
    (one) => one !== null && values.length > 0 && equals(values, one),
  );
}
