import type { Handle } from '../../../shared/db/pool.ts';
import { readTotals } from '../../../shared/db/tables/push-progress.ts';
import {
  countRecalled,
  findRecalls,
  type RecallCounts,
  type StoredRecall,
} from '../../../shared/db/tables/recalls.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';
import type { ConnectorTotals, Push } from '../../../shared/domain/pushes/record.ts';

/** Number of devices by what happened to their message. */
export type RecallTotals = { recalled: number; replaced: number };

/**
 * Returns the counts of a recall for a reply, without zeros. Devices that the push was sent to and
 * that are neither recalled nor replaced keep the message. They are counted only if `isFinal`.
 */
export function replyRecall(
  sent: ConnectorTotals,
  counts: readonly ({ connector: string } & RecallTotals)[],
  isFinal = true,
): JsonObject {
  const connectors: JsonObject = {};
  for (const connector of connectorIds) {
    const { recalled = 0, replaced = 0 } =
      counts.find((count) => count.connector === connector) ?? {};
    const devices = sent[connector]?.sent ?? 0;
    const impossible = isFinal ? Math.max(0, devices - recalled - replaced) : 0;
    const own = Object.entries({ recalled, replaced, impossible }).filter(([, n]) => n > 0);
    if (own.length > 0) connectors[connector] = Object.fromEntries(own);
  }
  return connectors;
}

/** Returns the newest recall of each push, as records contain it. */
export async function readRecalls(
  db: Handle,
  appId: string,
  pushes: readonly Pick<Push, 'id' | 'totals'>[],
): Promise<Map<number, JsonObject>> {
  const replies = new Map<number, JsonObject>();
  const recalls = await findRecalls(
    db,
    appId,
    pushes.map(({ id }) => id),
  );
  const counts = await countRecalled(
    db,
    appId,
    [...recalls.values()].map(({ id }) => id),
  );
  for (const { id, totals } of pushes) {
    const recall = recalls.get(id);
    if (!recall) continue;
    const sent = totals ?? (await readTotals(db, { appId, id })).totals;
    replies.set(id, toReply(recall, sent, counts.get(recall.id) ?? []));
  }
  return replies;
}

const statuses = {
  done: 'done',
  failed: 'done',
  cancelled: 'cancelled',
  paused: 'paused',
} as const;

function toReply(
  { objectId, state, createdAt, finishedAt, hasReplacement }: StoredRecall,
  sent: ConnectorTotals,
  counts: readonly RecallCounts[],
): JsonObject {
  const status = state in statuses ? statuses[state as keyof typeof statuses] : 'in-queue';
  return {
    objectId,
    status,
    isReplacement: hasReplacement,
    createdAt: createdAt.toISOString(),
    finishedAt: finishedAt?.toISOString() ?? null,
    connectors: replyRecall(sent, counts, finishedAt !== null),
  };
}
