import type { PushOrder } from '../../domain/pushes/push.ts';
import type { Condition } from '../condition.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema/classes.ts';
import { masterViewer } from '../viewer.ts';

/** Tests that an index serves (README.md "SQL"). */
const indexed = new Set(['equal', 'in', 'all']);

/** Returns whether no index can serve any part of a push's condition, whatever the statistics say. */
export function needsTableScan(pushOrder: PushOrder): boolean {
  const condition = conditionOf(pushOrder);
  return condition !== undefined && needsScan(condition);
}

/** Returns whether a push has no condition: its targets are all devices of the app. */
export function isToAll(pushOrder: PushOrder): boolean {
  const condition = conditionOf(pushOrder);
  return condition !== undefined && isEmpty(condition);
}

/** Returns whether a push has no condition, or one that `needsTableScan`. */
export function isUnselective(pushOrder: PushOrder): boolean {
  const condition = conditionOf(pushOrder);
  return condition !== undefined && (isEmpty(condition) || needsScan(condition));
}

/** Returns the condition of a push that has nothing else to choose devices by. */
function conditionOf({ target }: PushOrder): Condition | undefined {
  return hasOnlyWhere(target) ? parseWhere(target.where, installationClass, masterViewer('')) : undefined;
}

const isEmpty = (condition: Condition): boolean => condition.kind === 'and' && condition.all.length === 0;

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
