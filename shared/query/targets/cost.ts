import type { PushOrder } from '../../domain/pushes/push.ts';
import type { Condition } from '../condition.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema/classes.ts';
import { masterViewer } from '../viewer.ts';

/** What an index answers: equality, and membership in a list (README.md "Indexes"). */
const indexed = new Set(['equal', 'in', 'all']);

/** True when no part of a push's condition could be answered by an index, whatever the statistics say. */
export function needsTableScan({ target }: PushOrder): boolean {
  if (target.kind === 'devices' || (target.channels !== null && target.channels.length > 0)) return false;
  return needsScan(parseWhere(target.where, installationClass, masterViewer('')));
}

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
