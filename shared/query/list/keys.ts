import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import { parseNames } from '../parse/operators.ts';
import { type ClassSchema, parsePath } from '../schema.ts';

/**
 * Parsed `keys=a,b.c,-d`: the members of a reply (protocol/queries.md#keys). If `included` is
 * empty, all members are included.
 */
export interface Keys {
  included: string[][];
  excluded: string[][];
}

/** Members of every reply, unless `keys` excludes them by name. */
const always = ['objectId', 'createdAt', 'updatedAt'];
const maxKeys = 100;

/**
 * Parses `keys`. Returns undefined if it is absent or empty. Throws error 102 if the list is
 * malformed, error 105 if a name is invalid or hidden.
 */
export function parseKeys(value: unknown): Keys | undefined {
  if (value === undefined || value === '') return undefined;
  const names = parseNames(value, 'keys', maxKeys);
  const isExclusion = (name: string) => name.startsWith('-');
  return {
    included: names.filter((name) => !isExclusion(name)).map(parsePath),
    excluded: names.filter(isExclusion).map((name) => parsePath(name.slice(1))),
  };
}

/**
 * Reduces a document to the members of `keys`. An alias selects the member under its stored name.
 */
export function project(
  document: JsonObject,
  keys: Keys | undefined,
  cls: ClassSchema,
): JsonObject {
  if (!keys) return document;
  const included =
    keys.included.length === 0 ? undefined : [...keys.included, ...always.map((name) => [name])];
  const members = Object.entries(document).flatMap(([name, value]): [string, Json][] => {
    const kept = included ? keep(value, partsFor(name, included, cls)) : value;
    const left = kept === undefined ? undefined : drop(kept, partsFor(name, keys.excluded, cls));
    return left === undefined ? [] : [[name, left]];
  });
  return Object.fromEntries(members);
}

/** Returns the paths below a member, without their first part. */
function partsFor(name: string, paths: string[][], cls: ClassSchema): string[][] {
  const column = cls.columns.get(name);
  return paths
    .filter(
      ([first = '']) =>
        first === name || (column !== undefined && cls.columns.get(first) === column),
    )
    .map((path) => path.slice(1));
}

const inside = (name: string, paths: string[][]): string[][] =>
  paths.filter(([first]) => first === name).map((path) => path.slice(1));

const onlyType = new Set(['__type']);
/** Members that an included pointer always keeps. `keys=owner.name` does not name them. */
const ofPointer = new Set(['__type', 'className', ...always]);

function keep(value: Json, paths: string[][]): Json | undefined {
  if (paths.length === 0) return undefined;
  if (paths.some((path) => path.length === 0)) return value;
  if (Array.isArray(value))
    return value.map((item) => keep(item, paths)).filter((item) => item !== undefined);
  if (!isJsonObject(value)) return undefined;
  const whole = value.__type === 'Pointer' ? ofPointer : onlyType;
  return mapMembers(value, (name, member) =>
    whole.has(name) ? member : keep(member, inside(name, paths)),
  );
}

function drop(value: Json, paths: string[][]): Json | undefined {
  if (paths.some((path) => path.length === 0)) return undefined;
  if (paths.length === 0) return value;
  if (Array.isArray(value))
    return value.map((item) => drop(item, paths)).filter((item) => item !== undefined);
  if (!isJsonObject(value)) return value;
  return mapMembers(value, (name, member) => drop(member, inside(name, paths)));
}

function mapMembers(
  object: JsonObject,
  map: (name: string, value: Json) => Json | undefined,
): JsonObject {
  const members = Object.entries(object).flatMap(([name, value]): [string, Json][] => {
    const mapped = map(name, value);
    return mapped === undefined ? [] : [[name, mapped]];
  });
  return Object.fromEntries(members);
}
