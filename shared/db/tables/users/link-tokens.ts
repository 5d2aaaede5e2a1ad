import type { Handle } from '../../pool.ts';

export type LinkPurpose = 'verifyEmail' | 'resetPassword';

/** Link in a mail to a user. */
export interface Link {
  appId: string;
  purpose: LinkPurpose;
  /** Internal id of the user. */
  userId: number;
  /** Address that the link was sent to. */
  email: string;
}

export async function insertLink(
  tx: Handle,
  link: Link,
  { digest, expiresAt }: { digest: Buffer; expiresAt: Date },
): Promise<void> {
  await tx.query(
    `INSERT INTO link_token (app_id, purpose, user_id, email, digest, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [link.appId, link.purpose, link.userId, link.email, digest, expiresAt],
  );
}

interface LinkRow {
  app_id: string;
  purpose: LinkPurpose;
  user_id: number;
  email: string;
}

const toLink = (row: LinkRow): Link => ({
  appId: row.app_id,
  purpose: row.purpose,
  userId: row.user_id,
  email: row.email,
});

/** Finds the link of a token. Does not spend it. */
export async function findLink(
  db: Handle,
  purpose: LinkPurpose,
  { digest, now }: { digest: Buffer; now: Date },
): Promise<Link | undefined> {
  const { rows } = await db.query<LinkRow>(
    `SELECT app_id, purpose, user_id, email FROM link_token
      WHERE digest = $1 AND purpose = $2 AND expires_at > $3`,
    [digest, purpose, now],
  );
  return rows.map(toLink)[0];
}

/** Spends a token; of concurrent calls one gets the link. */
export async function spendLink(
  tx: Handle,
  purpose: LinkPurpose,
  { digest, now }: { digest: Buffer; now: Date },
): Promise<Link | undefined> {
  const { rows } = await tx.query<LinkRow>(
    `DELETE FROM link_token WHERE digest = $1 AND purpose = $2 AND expires_at > $3
     RETURNING app_id, purpose, user_id, email`,
    [digest, purpose, now],
  );
  return rows.map(toLink)[0];
}

/** Deletes a user's links of a purpose. */
export async function deleteLinksOfUser(
  tx: Handle,
  { appId, userId, purpose }: Pick<Link, 'appId' | 'userId' | 'purpose'>,
): Promise<void> {
  await tx.query('DELETE FROM link_token WHERE app_id = $1 AND user_id = $2 AND purpose = $3', [
    appId,
    userId,
    purpose,
  ]);
}

export async function deleteExpiredLinks(db: Handle, now: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, digest FROM link_token WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
     DELETE FROM link_token t USING old WHERE t.app_id = old.app_id AND t.digest = old.digest`,
    [now, limit],
  );
  return rowCount ?? 0;
}
