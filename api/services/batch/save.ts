import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseExactly,
} from '../../../shared/domain/json.ts';
import { failed, type InnerCall, type InnerFailure, type RunBudgeted, readItem } from './calls.ts';

/** Object that an SDK saves (protocol/objects.md#saving-in-batches). */
interface SaveItem {
  /** Index of the item in the batch. */
  index: number;
  /** Undefined if the item is invalid. */
  call: InnerCall | undefined;
  /** Reason why the item is invalid. */
  failure: InnerFailure | undefined;
  /** Id of the object in the client. */
  internalId: string | undefined;
  body: JsonObject;
  children: Child[];
}

/** Member that points to an object that the same batch creates. */
interface Child {
  cid: string;
  className: string;
  key: string;
}

/** Members that control the save and are not stored. */
const directives = new Set(['__internalId', '__children']);

/** Result of the saves of one object. A batch may save an object in several parts. */
type Result = { ok: true; text: string } | InnerFailure;

/**
 * Saves objects one after another, children first. Returns the members of a JSON dictionary from
 * `__internalId` to the reply, as texts, which use far less memory than objects. If an object
 * fails, its reply is `{"error":{"code","error"}}`, and only the objects that point to it fail too.
 * Throws the first refusal if no object was saved, because clients that save one object read only
 * a refusal of the whole call.
 */
export async function saveAll(
  requests: Json[],
  runInnerCall: RunBudgeted,
  errorOf: (failure: InnerFailure) => JsonObject,
): Promise<string[]> {
  const results = new Map<string, Result>();
  const items = childrenFirst(
    requests.map(readSaveItem),
    (item, failure) => void results.set(resultKey(item), failure),
  );
  for (const item of items) {
    // A later part that succeeds must not hide that an earlier part of the object failed.
    if (results.get(resultKey(item))?.ok === false) continue;
    const result = item.failure ?? (await saveOne(item, runInnerCall, results));
    const key = resultKey(item, result);
    const before = results.get(key);
    results.set(
      key,
      result.ok && before?.ok ? { ok: true, text: mergeReplies(before.text, result.text) } : result,
    );
  }
  const failures = [...results.values()].filter((result) => !result.ok);
  const [first] = failures;
  if (first && failures.length === results.size)
    throw first.refusal ?? refuse('invalidParameter', 'Functions are not saved.');
  return [...results].map(
    ([key, result]) =>
      `${JSON.stringify(key)}:${result.ok ? result.text : JSON.stringify({ error: errorOf(result) })}`,
  );
}

/**
 * Returns the key of an object in the reply: its `__internalId`, otherwise the id in the path or
 * the reply, otherwise its index.
 */
function resultKey({ internalId, call, index }: SaveItem, result?: Result): string {
  const key = internalId ?? call?.path.match(objectIdInPath)?.[1];
  const { objectId } = key === undefined && result?.ok ? dictionaryOf(result.text) : {};
  return key ?? (typeof objectId === 'string' ? objectId : String(index));
}

const objectIdInPath = /^\/1\.1\/(?:classes\/[^/]+|users|installations|roles)\/([^/]+)$/;

/** Merges the replies to two saves of an object. Members of the later reply win. */
function mergeReplies(earlier: string, later: string): string {
  return JSON.stringify({ ...dictionaryOf(earlier), ...dictionaryOf(later) });
}

function dictionaryOf(text: string): JsonObject {
  const value = parseExactly(text);
  return isJsonObject(value) ? value : {};
}

function readSaveItem(request: Json, index: number): SaveItem {
  const body = isJsonObject(request) && isJsonObject(request.body) ? request.body : {};
  const { __internalId } = body;
  const internalId = typeof __internalId === 'string' ? __internalId : undefined;
  const item = { index, call: undefined, failure: undefined, internalId, body: {}, children: [] };
  try {
    return { ...item, ...parseSaveItem(request) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { ...item, failure: failed(error) };
  }
}

function parseSaveItem(item: Json): Pick<SaveItem, 'call' | 'body' | 'children'> {
  const call = readItem(item);
  if (call.method !== 'POST' && call.method !== 'PUT')
    throw refuse('invalidParameter', 'batch/save takes POST and PUT only.');
  const sent = call.body ?? {};
  if (!isJsonObject(sent)) throw refuse('malformedJson');
  const { __children: children } = sent;
  return {
    call,
    body: Object.fromEntries(Object.entries(sent).filter(([name]) => !directives.has(name))),
    children: (Array.isArray(children) ? children : []).map(readChild),
  };
}

function readChild(value: Json): Child {
  const { cid, className, key } = isJsonObject(value) ? value : {};
  if (typeof cid !== 'string' || typeof className !== 'string' || typeof key !== 'string')
    throw refuse('incorrectType', 'A child has a className, a cid and a key.');
  return { cid, className, key };
}

/**
 * Sorts items so that children come first. Refuses items with 1 if they are children of each other.
 */
function childrenFirst(
  items: SaveItem[],
  refuseOne: (item: SaveItem, failure: InnerFailure) => void,
): SaveItem[] {
  const byInternalId = Map.groupBy(items, ({ internalId }) => internalId);
  const ordered = new Set<SaveItem>();
  const open = new Set<SaveItem>();
  const add = (item: SaveItem): void => {
    if (ordered.has(item)) return;
    if (open.has(item)) {
      refuseOne(item, failed(refuse('invalidParameter', 'Objects are children of each other.')));
      return;
    }
    open.add(item);
    for (const cid of new Set(item.children.map((child) => child.cid)))
      for (const child of byInternalId.get(cid) ?? []) add(child);
    ordered.add(item);
  };
  for (const item of items) add(item);
  return [...ordered];
}

async function saveOne(
  { call, body, children }: SaveItem,
  runInnerCall: RunBudgeted,
  results: ReadonlyMap<string, Result>,
): Promise<Result> {
  if (!call) throw new Error('a call that was not read has failed');
  const pointers: [string, Json][] = [];
  // A reply may be large, and thousands of members may point to its object.
  const objectIds = new Map<string, Json | undefined>();
  for (const { cid, className, key } of children) {
    const child = results.get(cid);
    if (child && !child.ok) return child;
    if (child && !objectIds.has(cid)) objectIds.set(cid, dictionaryOf(child.text).objectId);
    const objectId = objectIds.get(cid);
    if (typeof objectId !== 'string')
      return failed(refuse('incorrectType', 'A child is not part of the batch.'));
    pointers.push([key, { __type: 'Pointer', className, objectId }]);
  }
  return runInnerCall({
    ...call,
    body: Object.fromEntries([...Object.entries(body), ...pointers]),
  });
}
