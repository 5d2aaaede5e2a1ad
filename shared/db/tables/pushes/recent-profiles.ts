import type { Handle } from '../../pool.ts';

/** Profile that recent pushes were sent with. */
export interface RecentProfile {
  appId: string;
  connector: string;
  profile: string;
  prod: 'dev' | 'prod';
}

/** Latest pushes, and batches of each, that are read: an estimate is enough. */
const pushesRead = 1000;
const batchesRead = 20;

/** Returns the profiles of the pushes since a time, the most recently used ones first. */
export async function findRecentProfiles(
  db: Handle,
  since: { sinceMs: number; limit: number },
): Promise<RecentProfile[]> {
  const { rows } = await db.query<RecentProfile & { last: Date }>(
    `SELECT n.app_id AS "appId", b.connector, b.profile, n.prod, max(n.created_at) AS last
       FROM (SELECT app_id, id, prod, created_at FROM notification
              WHERE created_at > to_timestamp($1::float8 / 1000) ORDER BY created_at DESC LIMIT ${pushesRead}) AS n,
            LATERAL (SELECT connector, profile FROM push_batch
                      WHERE app_id = n.app_id AND push_id = n.id LIMIT ${batchesRead}) AS b
      GROUP BY n.app_id, b.connector, b.profile, n.prod ORDER BY last DESC LIMIT $2`,
    [since.sinceMs, since.limit],
  );
  return rows.map(({ appId, connector, profile, prod }) => ({ appId, connector, profile, prod }));
}
