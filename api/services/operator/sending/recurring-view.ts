import type { RecurringPush } from '../../../../shared/db/tables/scheduled-pushes.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { visibleTo } from '../access/conditions.ts';

/** Returns what a caller decides, for replies and the audit. */
export const definitionOf = (one: RecurringPush): JsonObject => ({
  id: one.id,
  name: one.name,
  expression: one.expression,
  timeZone: one.timeZone,
  startsAt: one.startsAt?.toISOString() ?? null,
  endsAt: one.endsAt?.toISOString() ?? null,
  isEnabled: one.isEnabled,
  body: one.body,
});

/** Returns a recurring push for a caller; tokens in its body are shortened below operator. */
export function shownRecurring(operator: Operator, one: RecurringPush): JsonObject {
  const { body: _, ...definition } = definitionOf(one);
  return {
    ...definition,
    body: visibleTo(operator, one.body),
    nextAt: one.nextAt?.toISOString() ?? null,
    lastAt: one.lastAt?.toISOString() ?? null,
    lastPush: one.lastPush,
    starts: one.starts,
    missed: one.missed,
    heldBack: one.heldBack,
    createdBy: one.createdBy,
    createdAt: one.createdAt.toISOString(),
    changedBy: one.changedBy,
    changedAt: one.changedAt.toISOString(),
  };
}
