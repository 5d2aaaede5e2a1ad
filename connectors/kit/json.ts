import { isJsonObject, type Json, type JsonObject, parseExactly } from '../../shared/domain/json.ts';

/** Merges two objects recursively; the second one wins, and its nulls remove members. Changes neither. */
export function deepMerge(base: JsonObject, over: JsonObject): JsonObject {
  const merged = new Map<string, Json>(Object.entries(base));
  for (const [name, value] of Object.entries(over)) {
    const known = merged.get(name);
    if (value === null) merged.delete(name);
    else merged.set(name, isJsonObject(known) && isJsonObject(value) ? deepMerge(known, value) : value);
  }
  return Object.fromEntries(merged);
}

/** Returns the JSON object in a text; undefined when the text is something else. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value = parseExactly(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
