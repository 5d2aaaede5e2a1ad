import type { Identity } from '../../../domain/users/auth-data.ts';
import type { Handle } from '../../pool.ts';

const columnsOf = (identities: Identity[]): [string[], string[]] => [
  identities.map(({ platform }) => platform),
  identities.map(({ uid }) => uid),
];

/** Finds the ids of the users of these third-party accounts, each once. */
export async function findUsersOfIdentities(
  db: Handle,
  appId: string,
  identities: Identity[],
): Promise<number[]> {
  if (identities.length === 0) return [];
  const { rows } = await db.query<{ user_id: number }>(
    `SELECT DISTINCT user_id FROM user_identity
       JOIN unnest($2::text[], $3::text[]) AS wanted (platform, uid) USING (platform, uid)
      WHERE app_id = $1`,
    [appId, ...columnsOf(identities)],
  );
  return rows.map((row) => row.user_id);
}

/**
 * Replaces the third-party accounts of a locked user. Returns those that belong to another user. Inserts in index order
 * and before deleting, so that concurrent calls do not deadlock: a delete waits for no lock.
 */
export async function setIdentities(
  tx: Handle,
  appId: string,
  { userId, identities }: { userId: number; identities: Identity[] },
): Promise<Identity[]> {
  const values = [appId, userId, ...columnsOf(identities)];
  const taken = identities.length === 0 ? [] : await addIdentities(tx, values);
  await tx.query(
    `DELETE FROM user_identity
      WHERE app_id = $1 AND user_id = $2
        AND (platform, uid) NOT IN (SELECT * FROM unnest($3::text[], $4::text[]))`,
    values,
  );
  return taken;
}

async function addIdentities(tx: Handle, values: unknown[]): Promise<Identity[]> {
  await tx.query(
    `INSERT INTO user_identity (app_id, user_id, platform, uid)
     SELECT $1, $2, platform, uid FROM unnest($3::text[], $4::text[]) AS wanted (platform, uid)
      ORDER BY platform, uid
     ON CONFLICT DO NOTHING`,
    values,
  );
  const { rows } = await tx.query<Identity>(
    `SELECT platform, uid FROM user_identity
       JOIN unnest($3::text[], $4::text[]) AS wanted (platform, uid) USING (platform, uid)
      WHERE app_id = $1 AND user_id <> $2`,
    values,
  );
  return rows;
}

/** Returns those of the identities that a user has. */
export async function heldIdentities(
  tx: Handle,
  appId: string,
  { userId, identities }: { userId: number; identities: Identity[] },
): Promise<Identity[]> {
  if (identities.length === 0) return [];
  const { rows } = await tx.query<Identity>(
    `SELECT platform, uid FROM user_identity
       JOIN unnest($3::text[], $4::text[]) AS wanted (platform, uid) USING (platform, uid)
      WHERE app_id = $1 AND user_id = $2`,
    [appId, userId, ...columnsOf(identities)],
  );
  return rows;
}

/**
 * Takes UnionIDs from users whose entries of them all have `main_account: false`. Returns whether
 * there was one.
 */
export async function releaseOtherAccounts(tx: Handle, appId: string, unions: Identity[]): Promise<boolean> {
  if (unions.length === 0) return false;
  const { rowCount } = await tx.query(
    `DELETE FROM user_identity i USING app_user u, unnest($2::text[], $3::text[]) AS wanted (platform, uid)
      WHERE i.app_id = $1 AND i.platform = wanted.platform AND i.uid = wanted.uid
        AND u.app_id = $1 AND u.id = i.user_id AND NOT EXISTS (
          SELECT 1 FROM jsonb_each(u.auth_data) AS e
           WHERE e.value ->> 'unionid' = i.uid AND i.platform = '_' || (e.value ->> 'platform') || '_unionid'
             AND coalesce(e.value ->> 'main_account', 'true') = 'true')`,
    [appId, ...columnsOf(unions)],
  );
  return (rowCount ?? 0) > 0;
}

const maxPlatformsRead = 1000;

/** Lists the platforms of an app's users, at most a thousand. Reads one index entry per platform. */
export async function listPlatforms(db: Handle, appId: string): Promise<string[]> {
  const { rows } = await db.query<{ platform: string | null }>(
    `WITH RECURSIVE known AS (
       SELECT min(platform) AS platform FROM user_identity WHERE app_id = $1
       UNION ALL
       SELECT (SELECT min(platform) FROM user_identity WHERE app_id = $1 AND platform > known.platform)
         FROM known WHERE known.platform IS NOT NULL)
     SELECT platform FROM known LIMIT $2`,
    [appId, maxPlatformsRead],
  );
  return rows.flatMap(({ platform }) => platform ?? []);
}
