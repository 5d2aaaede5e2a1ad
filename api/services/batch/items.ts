import { refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { InnerCall } from './inner-call.ts';

/**
 * Maximum number of calls in a batch. The public service has no limit and recommends a hundred
 * (protocol/objects.md#batches).
 */
export const maxItems = 1000;
const maxPathLength = 16_384;

/**
 * Returns the list of requests. Throws 107 if the value is not a list, 116 if the list is too long.
 */
export function readRequests({ requests }: JsonObject): Json[] {
  if (!Array.isArray(requests)) throw refuse('malformedJson', 'requests must be a list.');
  if (requests.length > maxItems)
    throw refuse('tooLarge', `A batch holds at most ${maxItems} requests.`);
  return requests;
}

/** Parses a request as a call. `params` are added to the query of the path. Throws 107 or 1. */
export function readItem(item: Json): InnerCall {
  if (!isJsonObject(item)) throw refuse('malformedJson');
  const { method = 'GET', path, params = {}, body } = item;
  if (typeof method !== 'string') throw refuse('invalidParameter', 'method must be a text.');
  if (typeof path !== 'string' || path.length > maxPathLength)
    throw refuse('invalidParameter', 'path must be a text.');
  if (params !== null && !isJsonObject(params))
    throw refuse('malformedJson', 'params must be a dictionary.');
  const [pathname = '', ...search] = path.split('?');
  return {
    method: method.toUpperCase(),
    path: pathname,
    query: {
      ...Object.fromEntries(new URLSearchParams(search.join('?'))),
      ...textsOf(params ?? {}),
    },
    body: body ?? undefined,
  };
}

/**
 * Converts parameters to the form that they have in a URL: texts stay, other values become JSON.
 * Null means absent.
 */
function textsOf(params: JsonObject): Record<string, string> {
  const present = Object.entries(params).filter(([, value]) => value !== null);
  return Object.fromEntries(
    present.map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
}
