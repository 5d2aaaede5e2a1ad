import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { failed, type InnerCall, type InnerFailure, type RunBudgeted } from './inner-call.ts';
import { readItem } from './items.ts';

/** An object that an SDK saves (protocol/objects.md#saving-in-batches). */
interface SaveItem {
  /** Where it stands in the batch. */
  index: number;
  /** Undefined where the item is no such call. */
  call: InnerCall | undefined;
  /** Why it is not to be saved. */
  failure: InnerFailure | undefined;
  /** Under what its client knows it. */
  internalId: string | undefined;
  body: JsonObject;
  children: Child[];
}

/** A member that points to an object which the same batch makes. */
interface Child {
  cid: string;
  className: string;
  key: string;
}

/** Members that say how to save, and are not saved. */
const directives = new Set(['__internalId', '__children']);

/** What became of an object, of which a batch may save parts one after the other. */
type Result = { ok: true; text: string } | InnerFailure;

/**
 * Saves one object after the other, children first, and gives the members of a JSON dictionary: what each `__internalId`
 * became, as text, which takes far less memory than the objects. One that fails fails no other, but for those that point
 * to it: it is `{"error":{"code","error"}}` by `errorOf`. Throws the first refusal as the answer to the whole where nothing
 * was saved: clients that save one object look at no other.
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
    // What is left of an object whose first part failed would hide that.
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

/** Under what a client finds its object again: its own id, else that of the path or the reply, else the place in the batch. */
function resultKey({ internalId, call, index }: SaveItem, result?: Result): string {
  const key = internalId ?? call?.path.match(objectIdInPath)?.[1];
  const { objectId } = key === undefined && result?.ok ? dictionaryOf(result.text) : {};
  return key ?? (typeof objectId === 'string' ? objectId : String(index));
}

const objectIdInPath = /^\/1\.1\/(?:classes\/[^/]+|users|installations|roles)\/([^/]+)$/;

/** An object that was saved twice has the members of both replies, the later ones first. */
function mergeReplies(earlier: string, later: string): string {
  return JSON.stringify({ ...dictionaryOf(earlier), ...dictionaryOf(later) });
}

function dictionaryOf(text: string): JsonObject {
  const value: Json = JSON.parse(text);
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

/** As they came, but each after its children. Those that are children of each other, in a ring, are refused with 1. */
function childrenFirst(
  items: SaveItem[],
  refuseOne: (item: SaveItem, failure: InnerFailure) => void,
): SaveItem[] {
  const ordered = new Set<SaveItem>();
  const open = new Set<SaveItem>();
  const add = (item: SaveItem): void => {
    if (ordered.has(item)) return;
    if (open.has(item)) {
      refuseOne(item, failed(refuse('invalidParameter', 'Objects are children of each other.')));
      return;
    }
    open.add(item);
    for (const { cid } of item.children)
      for (const child of items.filter(({ internalId }) => internalId === cid)) add(child);
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
  for (const { cid, className, key } of children) {
    const child = results.get(cid);
    if (child && !child.ok) return child;
    const objectId = child && dictionaryOf(child.text).objectId;
    if (typeof objectId !== 'string')
      return failed(refuse('incorrectType', 'A child is not part of the batch.'));
    pointers.push([key, { __type: 'Pointer', className, objectId }]);
  }
  return runInnerCall({ ...call, body: Object.fromEntries([...Object.entries(body), ...pointers]) });
}
