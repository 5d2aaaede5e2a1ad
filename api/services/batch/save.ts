import { refuse } from '../../../shared/domain/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { InnerCall, Perform } from './calls.ts';
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
 * Saves one object after the other, children first, and gives the JSON text of what each `__internalId` became. Throws
 * the first refusal as the answer to the whole: clients of this call look at no other.
 */
export async function saveAll(requests: Json[], perform: Perform): Promise<string> {
  const savings = requests.map(readSaving);
  const saved = new Map<Saving, JsonObject>();
  const replies = new Map<string, JsonObject>();
  for (const saving of inOrder(savings)) {
    const reply = await saveOne(saving, perform, (cid) => idOf(cid, savings, saved));
    saved.set(saving, reply);
    const key = saving.internalId ?? reply.objectId;
    if (typeof key === 'string') replies.set(key, { ...replies.get(key), ...reply });
  }
  return JSON.stringify(Object.fromEntries(replies));
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
  perform: Perform,
  idOfChild: (cid: string) => string,
): Promise<JsonObject> {
  const pointers = children.map(({ cid, className, key }): [string, Json] => [
    key,
    { __type: 'Pointer', className, objectId: idOfChild(cid) },
  ]);
  const outcome = await perform({
    ...call,
    body: Object.fromEntries([...Object.entries(body), ...pointers]),
  });
  if (!outcome.ok) throw outcome.refusal ?? refuse('invalidParameter', 'Functions are not saved.');
  const reply: Json = JSON.parse(outcome.text);
  return isJsonObject(reply) ? reply : {};
}

function idOf(cid: string, savings: Saving[], saved: Map<Saving, JsonObject>): string {
  const child = savings.find(({ internalId }) => internalId === cid);
  const id = child && saved.get(child)?.objectId;
  if (typeof id !== 'string') throw refuse('incorrectType', 'A child is not part of the batch.');
  return id;
}
