import { isJsonObject } from '../../../shared/domain/json.ts';
import type { InnerCall } from './inner-call.ts';

/** Members of a body that say which object is meant. */
const naming = ['objectId', 'installationId', 'deviceToken', 'username', 'email', 'mobilePhoneNumber'];

/** Where in the path the collection ends: `/1.1/users/…`, `/1.1/classes/_User/…`. */
const endOfCollection = (parts: string[]): number => (parts[2] === 'classes' ? 4 : 3);

/** True for a call that reads many objects, of a collection or by a query. */
export function isList({ method, path }: InnerCall): boolean {
  const parts = path.split('/');
  return method === 'GET' && (parts[2] === 'scan' || parts.length <= endOfCollection(parts));
}

/** Calls of one kind may overtake each other; where the kind changes, all before it must be done. */
function kindOf({ method, path }: InnerCall): string {
  const parts = path.split('/');
  return method === 'GET' ? method : `${method} ${parts.slice(0, endOfCollection(parts)).join('/')}`;
}

/** Splits calls into runs of one kind, in their order; gives their places in the list. */
export function runsOf(calls: (InnerCall | undefined)[]): number[][] {
  const runs: { kind: string; places: number[] }[] = [];
  for (const [place, call] of calls.entries()) {
    if (!call) continue;
    const kind = kindOf(call);
    const run = runs.at(-1);
    if (run?.kind === kind) run.places.push(place);
    else runs.push({ kind, places: [place] });
  }
  return runs.map(({ places }) => places);
}

/** What a call writes to, as far as it says: calls that share one of these keep their order. */
export function targetsOf({ method, path, body }: InnerCall): string[] {
  if (method === 'GET') return [];
  const parts = path.split('/');
  if (method !== 'POST') return parts[endOfCollection(parts)]?.split(',') ?? [];
  if (!isJsonObject(body)) return [];
  return naming.flatMap((name) => {
    const value = body[name];
    return typeof value === 'string' ? [`${name} ${value}`] : [];
  });
}
