/**
 * Encoding of dates in typed values (protocol/functions.md#object-encoding). Other typed values
 * stay unchanged.
 */
import { isJsonObject } from '../../shared/domain/json.ts';

/** Limit on the depth of arguments and results. */
const maxDepth = 64;

/** Replaces each `{"__type":"Date","iso"}` with a Date, at any depth. */
export function decodeDates(value: unknown, depth = 0): unknown {
  if (depth > maxDepth)
    throw Object.assign(new Error('The arguments are too deep.'), { code: 107 });
  if (Array.isArray(value)) return value.map((item) => decodeDates(item, depth + 1));
  if (!isJsonObject(value)) return value;
  if (value.__type === 'Date' && typeof value.iso === 'string') return new Date(value.iso);
  return mapMembers(value, (member) => decodeDates(member, depth + 1));
}

/** Replaces each Date with `{"__type":"Date","iso"}`, at any depth. */
export function encodeDates(value: unknown, depth = 0): unknown {
  if (depth > maxDepth) throw new Error('the result is too deep');
  if (value instanceof Date) return { __type: 'Date', iso: value.toISOString() };
  if (Array.isArray(value)) return value.map((item) => encodeDates(item, depth + 1));
  const isPlain = typeof value === 'object' && value !== null && !('toJSON' in value);
  return isPlain ? mapMembers(value, (member) => encodeDates(member, depth + 1)) : value;
}

const mapMembers = (value: object, map: (member: unknown) => unknown): object =>
  Object.fromEntries(Object.entries(value).map(([name, member]) => [name, map(member)]));
