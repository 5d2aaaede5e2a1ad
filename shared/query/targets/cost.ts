import type { PushOrder } from '../../domain/pushes/push.ts';
import type { Condition } from '../condition.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema/classes.ts';
import { masterViewer } from '../viewer.ts';

/** Tests that an index serves (README.md "SQL"). */
const indexed = new Set(['equal', 'in', 'all']);

/** Returns whether no index can serve any part of a push's condition, whatever the statistics say. */
export function needsTableScan({ target }: PushOrder): boolean {
  return hasOnlyWhere(target) && needsScan(parseWhere(target.where, installationClass, masterViewer('')));
}

/** Returns whether a push has no condition, or one that `needsTableScan`. */
export function isUnselective({ target }: PushOrder): boolean {
  if (!hasOnlyWhere(target)) return false;
  const condition = parseWhere(target.where, installationClass, masterViewer(''));
  return needsScan(condition) || (condition.kind === 'and' && condition.all.length === 0);
}

type Target = PushOrder['target'];

const hasOnlyWhere = (target: Target): target is Extract<Target, { kind: 'query' }> =>
  target.kind === 'query' && (target.channels === null || target.channels.length === 0);

function needsScan(condition: Condition): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.all.length > 0 && condition.all.every(needsScan);
    case 'or':
      return condition.any.some(needsScan);
    case 'related':
    case 'members':
      return false;
    case 'field':
      return !indexed.has(condition.test.op);
  }
}
