import type { RecurringPush } from '../../../../shared/db/tables/apps/recurring-pushes.ts';
import { hasRole, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { shortenTokens } from '../../../../shared/domain/admin/shortened.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';

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

/** Returns a recurring push for a caller; tokens in its body are shortened below sender. */
export function shownRecurring({ role }: Operator, one: RecurringPush): JsonObject {
  const { body, ...definition } = definitionOf(one);
  const visible = hasRole(role, 'sender') ? one.body : shortenTokens(one.body);
  return {
    ...definition,
    body: visible,
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
