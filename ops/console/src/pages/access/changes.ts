import type { AuditEntry } from '../../../../client/operations.ts';
import { toCsv } from '../../kit/data/csv.ts';

/** Member that a change has set, removed or replaced; absent values are undefined. */
export interface MemberChange {
  path: string;
  before: string | undefined;
  after: string | undefined;
}

type Members = AuditEntry['before'];

/** Returns the members that differ before and after a change, by their paths. */
export function changesOf({ before, after }: Pick<AuditEntry, 'before' | 'after'>): MemberChange[] {
  const [old, now] = [leavesOf(before), leavesOf(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .map((path) => ({ path, before: old.get(path), after: now.get(path) }))
    .filter((change) => change.before !== change.after || change.before === '"•••"');
}

/** Returns the values of members without members of their own, as JSON. */
function leavesOf(members: Members | unknown, path = ''): Map<string, string> {
  if (members === null && path === '') return new Map();
  if (typeof members !== 'object' || members === null || Array.isArray(members))
    return new Map([[path, JSON.stringify(members)]]);
  const entries = Object.entries(members);
  if (entries.length === 0) return path === '' ? new Map() : new Map([[path, '{}']]);
  return new Map(
    entries.flatMap(([name, value]) => [...leavesOf(value, path === '' ? name : `${path}.${name}`)]),
  );
}

const columns = [
  'id',
  'at',
  'name',
  'role',
  'address',
  'action',
  'appId',
  'target',
  'before',
  'after',
  'requestId',
];

/** Returns entries as CSV with a line of headings. */
export function auditCsv(entries: readonly AuditEntry[]): string {
  const rows = entries.map(({ id, at, actor, action, appId, target, before, after, requestId }) => [
    ...[id, at, actor.name, actor.role, actor.address, action, appId ?? '', target],
    ...[before, after].map((members) => (members === null ? '' : JSON.stringify(members))),
    requestId,
  ]);
  return toCsv([columns, ...rows]);
}

/** Returns entries as one JSON document a line. */
export const toJsonLines = (entries: readonly AuditEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
