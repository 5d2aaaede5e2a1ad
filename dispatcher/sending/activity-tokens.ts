import type { Handle } from '../../shared/db/pool.ts';
import type { Batch } from '../../shared/db/tables/batches.ts';
import { readClock, readTokens } from '../../shared/db/tables/live-activities.ts';
import type { RecipientGroup } from '../../shared/db/tables/recipients.ts';
import {
  type LiveActivity,
  timestampOf,
  tokensOfTarget,
} from '../../shared/domain/pushes/live-activity.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import { reason } from '../../shared/domain/reasons.ts';
import { updateTokenSince } from '../../shared/query/targets/targets.ts';

/** Recipients of a batch with their tokens, and why recipients without a token get no message. */
export interface TokenGroups {
  groups: RecipientGroup[];
  withoutToken: string;
}

const superseded = reason('activitySuperseded');
const tokenGone = reason('activityTokenGone');

/** A time in PostgreSQL's binary form, for a recipient that no device has saved. */
const noTime = Buffer.alloc(8);

/**
 * Replaces the device tokens of a batch by tokens of Live Activities. A broadcast has its channel
 * as the only token. A later attempt sends nothing if a newer state of the activity exists, because
 * devices would ignore the older state.
 */
export async function activityGroups(
  db: Handle,
  { batch, groups, nowMs }: { batch: Batch; groups: RecipientGroup[]; nowMs: number },
  push: OpenPush & { pushOrder: { liveActivity: LiveActivity } },
): Promise<TokenGroups> {
  const { appId, pushOrder } = push;
  const { target } = pushOrder.liveActivity;
  if (batch.attempt > 0 && target.kind !== 'type') {
    const newest = await readClock(db, { appId, kind: target.kind, name: target.name });
    if (newest > timestampOf(pushOrder.data)) return { groups: [], withoutToken: superseded };
  }
  const selected = tokensOfTarget(target);
  if (selected === null) {
    const device = { deviceType: 'ios', vendor: null, topic: null, teamId: null };
    const lists = { ids: [...batch.recipients], tokens: [target.name], savedAt: noTime };
    return { groups: [{ ...device, ...lists }], withoutToken: tokenGone };
  }
  const tokens = await readTokens(
    db,
    { appId, ...selected },
    { installations: batch.recipients, since: updateTokenSince(nowMs) },
  );
  const replaced = groups.map((group) => ({
    ...group,
    tokens: group.ids.map((id) => tokens.get(id)?.token ?? ''),
    savedAt: Buffer.concat(group.ids.map((id) => tokens.get(id)?.reportedAt ?? noTime)),
  }));
  return { groups: replaced, withoutToken: tokenGone };
}
