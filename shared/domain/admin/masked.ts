import { isJsonObject, type Json, type JsonObject } from '../json.ts';

/** Text in place of a secret. */
export const maskText = '•••';

/** Replaces every text, number and flag of an object by dots, at any depth: the names of members stay. */
export function masked(value: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, maskedValue(member)]));
}

function maskedValue(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(maskedValue);
  return isJsonObject(value) ? masked(value) : maskText;
}
