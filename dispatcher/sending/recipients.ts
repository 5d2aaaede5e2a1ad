import type { PushMessage, Recipient } from '../../connectors/contract/connector.ts';
import type { Database } from '../../shared/db/pool.ts';
import type { Batch } from '../../shared/db/tables/pushes/batches.ts';
import { incrementBadges, loadRecipients, setBadges } from '../../shared/db/tables/pushes/delivery.ts';
import type { Lease } from './sender-cache.ts';
import type { Tally } from './tally.ts';

/** A batch that is being sent, with its results so far. */
export interface OpenBatch {
  batch: Batch;
  tally: Tally;
}

/** Loads the open recipients of a batch; ends those whose installation was deleted as `dropped`. */
export async function loadOpenRecipients(
  db: Database,
  { batch, tally }: OpenBatch,
  message: PushMessage,
  { connector }: Pick<Lease, 'connector'>,
): Promise<Recipient[]> {
  const open = batch.recipients.filter((_, i) => tally.isOpen(i));
  const rows = await loadRecipients(db, batch.appId, open, connector.tokenField);
  const badges = await badgesOf(db, batch, connector.badge?.(message) ?? null);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const recipients: Recipient[] = [];
  for (const [index, id] of batch.recipients.entries()) {
    if (!tally.isOpen(index)) continue;
    const row = byId.get(id);
    if (!row?.address) {
      tally.fail(index, { outcome: 'dropped', status: 0, reason: 'the installation was deleted' });
      continue;
    }
    recipients.push({
      index,
      id: String(id),
      deviceToken: row.address,
      deviceType: row.device_type,
      vendor: row.vendor_name,
      topic: row.topic,
      teamId: row.team_id,
      badge: badges?.[index] ?? null,
      updatedAtMs: row.updated_at.getTime(),
    });
  }
  return recipients;
}

async function badgesOf(
  db: Database,
  batch: Batch,
  change: 'Increment' | number | null,
): Promise<(number | null)[] | null> {
  if (change === null) return null;
  if (change === 'Increment') {
    batch.badges ??= await db.transaction((tx) => incrementBadges(tx, batch));
    return batch.badges;
  }
  if (batch.attempt === 0) await setBadges(db, batch.appId, batch.recipients, change);
  return null;
}
