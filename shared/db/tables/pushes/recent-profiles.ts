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
  const { rows: pushes } = await db.query<{ app_id: string; id: number }>(
    `SELECT app_id, id FROM notification
      WHERE created_at > to_timestamp($1::float8 / 1000) ORDER BY created_at DESC LIMIT ${pushesRead}`,
    [since.sinceMs],
  );
  const found: (RecentProfile & { last: Date })[] = [];
  // A statement for each app: Citus reads the batches of each push of one app only.
  for (const [appId, ofApp] of [...Map.groupBy(pushes, (push) => push.app_id)].slice(0, since.limit)) {
    const ids = ofApp.map(({ id }) => id);
    found.push(...(await db.query<RecentProfile & { last: Date }>(profilesOfPushes, [appId, ids])).rows);
  }
  found.sort((one, other) => other.last.getTime() - one.last.getTime());
  return found
    .slice(0, since.limit)
    .map(({ appId, connector, profile, prod }) => ({ appId, connector, profile, prod }));
}

const profilesOfPushes = `
  SELECT n.app_id AS "appId", b.connector, b.profile, n.prod, max(n.created_at) AS last
    FROM notification n,
         LATERAL (SELECT connector, profile FROM push_batch
                   WHERE app_id = $1 AND push_id = n.id LIMIT ${batchesRead}) AS b
   WHERE n.app_id = $1 AND n.id = ANY($2::bigint[])
   GROUP BY n.app_id, b.connector, b.profile, n.prod`;
