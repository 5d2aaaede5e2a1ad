import { refuse } from '../../../shared/domain/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { InnerCall, PerformWithin } from './calls.ts';
import { readItem } from './items.ts';

/** An object that an SDK saves (compat.md 3.5 "batch/save"). */
interface Saving {
  call: InnerCall;
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
const hints = new Set(['__internalId', '__children']);

/**
 * Saves one object after the other, children first, and gives the members of a JSON dictionary: what each
 * `__internalId` became, as text, which takes far less memory than the objects. Throws the first refusal as the answer
 * to the whole: clients of this call look at no other.
 */
export async function saveAll(requests: Json[], perform: PerformWithin): Promise<string[]> {
  const savings = requests.map(readSaving);
  const ids = new Map<Saving, string>();
  const replies = new Map<string, string>();
  for (const saving of inOrder(savings)) {
    const text = await saveOne(saving, perform, (cid) => idOf(cid, savings, ids));
    const { objectId } = dictionaryOf(text);
    if (typeof objectId === 'string') ids.set(saving, objectId);
    const key = saving.internalId ?? objectId;
    if (typeof key === 'string') replies.set(key, together(replies.get(key), text));
  }
  return [...replies].map(([key, text]) => `${JSON.stringify(key)}:${text}`);
}

/** An object that was saved twice has the members of both replies, the later ones first. */
function together(earlier: string | undefined, later: string): string {
  if (earlier === undefined) return later;
  return JSON.stringify({ ...dictionaryOf(earlier), ...dictionaryOf(later) });
}

function dictionaryOf(text: string): JsonObject {
  const value: Json = JSON.parse(text);
  return isJsonObject(value) ? value : {};
}

function readSaving(item: Json): Saving {
  const call = readItem(item);
  if (call.method !== 'POST' && call.method !== 'PUT')
    throw refuse('invalidParameter', 'batch/save takes POST and PUT only.');
  const sent = call.body ?? {};
  if (!isJsonObject(sent)) throw refuse('malformedJson');
  const { __internalId: internalId, __children: children } = sent;
  return {
    call,
    internalId: typeof internalId === 'string' ? internalId : undefined,
    body: Object.fromEntries(Object.entries(sent).filter(([name]) => !hints.has(name))),
    children: (Array.isArray(children) ? children : []).map(readChild),
  };
}

function readChild(value: Json): Child {
  const { cid, className, key } = isJsonObject(value) ? value : {};
  if (typeof cid !== 'string' || typeof className !== 'string' || typeof key !== 'string')
    throw refuse('incorrectType', 'A child has a className, a cid and a key.');
  return { cid, className, key };
}

/** As they came, but each after its children. Throws 1 where children go round in a ring. */
function inOrder(savings: Saving[]): Saving[] {
  const ordered = new Set<Saving>();
  const open = new Set<Saving>();
  const add = (saving: Saving): void => {
    if (ordered.has(saving)) return;
    if (open.has(saving)) throw refuse('invalidParameter', 'Objects are children of each other.');
    open.add(saving);
    for (const { cid } of saving.children)
      for (const child of savings.filter(({ internalId }) => internalId === cid)) add(child);
    ordered.add(saving);
  };
  for (const saving of savings) add(saving);
  return [...ordered];
}

async function saveOne(
  { call, body, children }: Saving,
  perform: PerformWithin,
  idOfChild: (cid: string) => string,
): Promise<string> {
  const pointers = children.map(({ cid, className, key }): [string, Json] => [
    key,
    { __type: 'Pointer', className, objectId: idOfChild(cid) },
  ]);
  const outcome = await perform({
    ...call,
    body: Object.fromEntries([...Object.entries(body), ...pointers]),
  });
  if (!outcome.ok) throw outcome.refusal ?? refuse('invalidParameter', 'Functions are not saved.');
  return outcome.text;
}

function idOf(cid: string, savings: Saving[], ids: Map<Saving, string>): string {
  const child = savings.find(({ internalId }) => internalId === cid);
  const id = child && ids.get(child);
  if (id === undefined) throw refuse('incorrectType', 'A child is not part of the batch.');
  return id;
}
