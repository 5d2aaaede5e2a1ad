import { z } from 'zod';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';

/** Parameters of a call that reads or writes objects; the service reads those it knows. */
export const anyQuery = z.record(z.string(), z.unknown());
export type AnyQuery = z.infer<typeof anyQuery>;

/** A body whose members the service checks. */
export const anyObject = z.custom<JsonObject>(isJsonObject);

/** A switch of a query: `true` or `1`, as SDKs send it. */
export const isOn = (value: unknown): boolean => ['true', '1'].includes(String(value));

/**
 * Tells whether a write answers with the new values: `new` of the JavaScript SDK and `fetchWhenSave` of the others mean
 * the same (protocol/objects.md#replies-with-values).
 */
export const isFetching = (query: AnyQuery): boolean => isOn(query.fetchWhenSave) || isOn(query.new);
