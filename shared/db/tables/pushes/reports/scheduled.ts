import type { Push } from '../../../../domain/pushes/record.ts';
import type { Handle } from '../../../pool.ts';
import { type PushRow, toPush } from '../pushes.ts';

/** Lists up to `limit` pushes of an app that are scheduled before a time, the next one first, and counts all of them. */
export async function listScheduledBefore(
  db: Handle,
  appId: string,
  { until, limit }: { until: Date; limit: number },
): Promise<{ pushes: Push[]; count: number }> {
  const { rows } = await db.query<PushRow & { total: number }>(
    `SELECT n.*, (count(*) OVER ())::bigint AS total
       FROM scheduled_push s JOIN notification n ON n.app_id = s.app_id AND n.id = s.push_id
      WHERE s.app_id = $1 AND n.state = 'scheduled' AND s.push_time < $2 ORDER BY s.push_time, s.id LIMIT $3`,
    [appId, until, limit],
  );
  return { pushes: rows.map(toPush), count: rows[0]?.total ?? 0 };
}
