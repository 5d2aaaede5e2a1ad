/** Ids of messages, with which a later message replaces an earlier one (`Connector.identityOf`). */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { deepMerge } from './values.ts';

/**
 * Returns the ids in an object: the members with these names, null for an absent one. Returns null
 * if all are absent.
 */
export function idsIn(object: Json | undefined, names: readonly string[]): JsonObject | null {
  if (!isJsonObject(object)) return null;
  const ids = names.map((name): [string, Json] => [name, object[name] ?? null]);
  return ids.every(([, value]) => value === null) ? null : Object.fromEntries(ids);
}

/** Sets the ids of the replaced message in an object. A null removes an id. */
export const withIds = (object: JsonObject, ids: Json | undefined): JsonObject =>
  isJsonObject(ids) ? deepMerge(object, ids) : object;
