import { isJsonObject } from '../../../shared/domain/json.ts';
import type { InnerCall } from './inner-call.ts';

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
  const parts = path.split('/');
  return method === 'GET' && (parts[2] === 'scan' || parts.length <= collectionLength(parts));
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
