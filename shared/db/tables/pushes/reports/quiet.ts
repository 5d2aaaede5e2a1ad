import type { Handle } from '../../../pool.ts';
import type { BatchSnapshot } from '../delivery.ts';

/** Adds recipients that wait for the end of their quiet hours to those of a push. */
export async function addQuietWaits(
  tx: Handle,
  { appId, id }: { appId: string; id: number },
  recipients: number,
): Promise<void> {
  if (recipients === 0) return;
  await tx.query(
    'UPDATE notification SET quiet_waits = coalesce(quiet_waits, 0) + $3 WHERE app_id = $1 AND id = $2',
    [appId, id, recipients],
  );
}

/** A batch that waits, as it was read, and until when. */
interface QuietWait {
  appId: string;
  pushId: number;
  batchId: number;
  stored: Pick<BatchSnapshot, 'quietUntil' | 'open'>;
  until: Date;
}

/** Notes that a batch waits for the end of quiet hours; its recipients are counted the first time. */
export async function recordQuietWait(
  tx: Handle,
  { appId, pushId, batchId, stored, until }: QuietWait,
): Promise<void> {
  const { rowCount } = await tx.query(
    `UPDATE push_batch SET quiet_until = $3
      WHERE app_id = $1 AND id = $2 AND NOT is_settled AND quiet_until IS NOT DISTINCT FROM $4`,
    [appId, batchId, until, stored.quietUntil],
  );
  if (rowCount === 1 && stored.quietUntil === null)
    await addQuietWaits(tx, { appId, id: pushId }, stored.open);
}
