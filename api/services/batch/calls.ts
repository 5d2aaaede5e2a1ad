import { type Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';

/** Call inside a batch. It has the keys, the session and the address of the batch call. */
export interface InnerCall {
  method: string;
  /** Path without the query. */
  path: string;
  query: Record<string, string>;
  body: Json | undefined;
}

/**
 * Result of a call inside a batch. A refusal is returned and not thrown, so that other calls
 * continue.
 */
export type InnerOutcome = { ok: true; text: string } | InnerFailure;

/** Refusal by Carillon, or error that a function host returned. */
export type InnerFailure =
  | { ok: false; refusal: Refusal }
  | { ok: false; refusal: undefined; error: { code: number; error: string } };

export const failed = (refusal: Refusal): InnerFailure => ({ ok: false, refusal });

/** Memory that the reply of a call may take. */
export interface ReplyAllowance {
  /** Grows the allowance to `bytes`. Returns false if they exceed the memory. */
  growTo(bytes: number): boolean;
}

/**
 * Runs a call inside a batch, with the same admission, rate limits and checks as a single call
 * (api/app.ts).
 */
export type RunInnerCall = (call: InnerCall, room: ReplyAllowance) => Promise<InnerOutcome>;

/** Runs a call within the time and memory of its batch. */
export type RunBudgeted = (call: InnerCall) => Promise<InnerOutcome>;

/**
 * Maximum number of calls in a batch. LeanCloud has no limit and recommends a hundred
 * (protocol/objects.md#batches).
 */
export const maxItems = 1000;
const maxPathLength = 16_384;

/**
 * Returns the list of requests. Throws error 107 if the value is not a list, error 116 if the list
 * is too long.
 */
export function readRequests({ requests }: JsonObject): Json[] {
  if (!Array.isArray(requests)) throw refuse('malformedJson', 'requests must be a list.');
  if (requests.length > maxItems)
    throw refuse('tooLarge', `A batch holds at most ${maxItems} requests.`);
  return requests;
}

/**
 * Parses a request as a call. `params` are added to the query of the path. Throws error 107 or 1.
 */
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

/** Members of a body that identify an object. */
const identifyingMembers = [
  'objectId',
  'installationId',
  'deviceToken',
  'username',
  'email',
  'mobilePhoneNumber',
];

/**
 * Returns the number of path segments of the collection, as in `/1.1/users/…` and
 * `/1.1/classes/_User/…`.
 */
const collectionLength = (parts: string[]): number => (parts[2] === 'classes' ? 4 : 3);

/** Returns whether a call reads many objects, from a collection or by a query. */
export function isListCall({ method, path }: InnerCall): boolean {
  if (method !== 'GET') return false;
  const parts = path.split('/');
  const isQuery = parts[2] === 'scan' || parts[3] === 'strictlyQuery';
  return isQuery || parts.length <= collectionLength(parts);
}

/**
 * Returns a key that calls share if they may run in parallel: reads, or writes of one method to one
 * collection.
 */
function groupKey({ method, path }: InnerCall): string {
  const parts = path.split('/');
  return method === 'GET'
    ? method
    : `${method} ${parts.slice(0, collectionLength(parts)).join('/')}`;
}

/**
 * Splits calls into groups that run one after another. Returns the indexes of each group's calls.
 */
export function parallelGroups(calls: (InnerCall | undefined)[]): number[][] {
  const groups: { kind: string; indexes: number[] }[] = [];
  for (const [index, call] of calls.entries()) {
    if (!call) continue;
    const kind = groupKey(call);
    const last = groups.at(-1);
    if (last?.kind === kind) last.indexes.push(index);
    else groups.push({ kind, indexes: [index] });
  }
  return groups.map(({ indexes }) => indexes);
}

/** Returns keys of the objects that a call writes to. Calls that share a key keep their order. */
export function writeTargets({ method, path, body }: InnerCall): string[] {
  if (method === 'GET') return [];
  const parts = path.split('/');
  if (method !== 'POST') return parts[collectionLength(parts)]?.split(',') ?? [];
  if (!isJsonObject(body)) return [];
  return identifyingMembers.flatMap((name) => {
    const value = body[name];
    return typeof value === 'string' ? [`${name} ${value}`] : [];
  });
}
