import { isJsonObject } from '../../../shared/domain/json.ts';
import type { InnerCall } from './inner-call.ts';

/** Members of a body that say which object is meant. */
const identifyingMembers = [
  'objectId',
  'installationId',
  'deviceToken',
  'username',
  'email',
  'mobilePhoneNumber',
];

/** Where in the path the collection ends: `/1.1/users/…`, `/1.1/classes/_User/…`. */
const collectionLength = (parts: string[]): number => (parts[2] === 'classes' ? 4 : 3);

/** True for a call that reads many objects, of a collection or by a query. */
export function isList({ method, path }: InnerCall): boolean {
  const parts = path.split('/');
  return method === 'GET' && (parts[2] === 'scan' || parts.length <= collectionLength(parts));
}

/** Calls of one kind may overtake each other; where the kind changes, all before it must be done. */
function groupKey({ method, path }: InnerCall): string {
  const parts = path.split('/');
  return method === 'GET' ? method : `${method} ${parts.slice(0, collectionLength(parts)).join('/')}`;
}

/** Splits calls into runs of one kind, in their order; gives their places in the list. */
export function runsOf(calls: (InnerCall | undefined)[]): number[][] {
  const runs: { kind: string; indexes: number[] }[] = [];
  for (const [index, call] of calls.entries()) {
    if (!call) continue;
    const kind = groupKey(call);
    const run = runs.at(-1);
    if (run?.kind === kind) run.indexes.push(index);
    else runs.push({ kind, indexes: [index] });
  }
  return runs.map(({ indexes }) => indexes);
}

/** What a call writes to, as far as it says: calls that share one of these keep their order. */
export function targetsOf({ method, path, body }: InnerCall): string[] {
  if (method === 'GET') return [];
  const parts = path.split('/');
  if (method !== 'POST') return parts[collectionLength(parts)]?.split(',') ?? [];
  if (!isJsonObject(body)) return [];
  return identifyingMembers.flatMap((name) => {
    const value = body[name];
    return typeof value === 'string' ? [`${name} ${value}`] : [];
  });
}
