import { z } from 'zod';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { readFlag } from '../../shared/domain/plain-values.ts';

/** Query parameters of a call that reads or writes objects; the service checks them and ignores unknown ones. */
export const anyQuery = z.record(z.string(), z.unknown());
export type AnyQuery = z.infer<typeof anyQuery>;

/** JSON object whose members the service checks. */
export const anyObject = z.custom<JsonObject>(isJsonObject);

/**
 * Tells whether the reply to a write has the new values (protocol/objects.md#replies-with-values). The JavaScript SDK sends
 * `new`, the others `fetchWhenSave`. Throws as `readFlag`; ask before the write.
 */
export const isFetching = (query: AnyQuery): boolean =>
  [readFlag(query, 'fetchWhenSave'), readFlag(query, 'new')].includes(true);
