import type { OperatorRole } from '../../../domain/admin/operator.ts';
import type { Handle } from '../../pool.ts';

/** Token for the admin API, without its secret. */
export interface ConsoleToken {
  id: number;
  name: string;
  role: OperatorRole;
  apps: string[] | null;
  createdBy: string;
  createdAt: Date;
  expiresAt: Date | null;
  /** When it was used last, to the minute; null before the first use. */
  usedAt: Date | null;
}

const columns = `id, name, role, apps, created_by AS "createdBy", created_at AS "createdAt",
  expires_at AS "expiresAt", used_at AS "usedAt"`;

/** Interval in which a use is written. */
const usedEveryMs = 60_000;

export async function insertToken(
  tx: Handle,
  token: Omit<ConsoleToken, 'id' | 'usedAt'> & { digest: Buffer },
): Promise<ConsoleToken> {
  const { rows } = await tx.query<ConsoleToken>(
    `INSERT INTO console_token (digest, name, role, apps, created_by, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${columns}`,
    [token.digest, token.name, token.role, token.apps, token.createdBy, token.createdAt, token.expiresAt],
  );
  const [inserted] = rows;
  if (!inserted) throw new Error('the database returned no row');
  return inserted;
}

/** Finds a token that has not expired by the digest of its secret. */
export async function findToken(db: Handle, digest: Buffer, now: Date): Promise<ConsoleToken | undefined> {
  const { rows } = await db.query<ConsoleToken>(
    `SELECT ${columns} FROM console_token WHERE digest = $1 AND (expires_at IS NULL OR expires_at > $2)`,
    [digest, now],
  );
  return rows[0];
}

/** Tells whether a token exists and has not expired. */
export async function hasToken(db: Handle, id: number, now: Date): Promise<boolean> {
  const { rowCount } = await db.query(
    'SELECT FROM console_token WHERE id = $1 AND (expires_at IS NULL OR expires_at > $2)',
    [id, now],
  );
  return (rowCount ?? 0) > 0;
}

/** Writes that a token is used, at most once a minute. */
export async function touchToken(db: Handle, { id, usedAt }: ConsoleToken, now: Date): Promise<void> {
  if (usedAt !== null && now.getTime() - usedAt.getTime() < usedEveryMs) return;
  await db.query('UPDATE console_token SET used_at = $2 WHERE id = $1', [id, now]);
}

/** Lists tokens, the newest first, also expired ones. */
export async function listTokens(
  db: Handle,
  page: { before: number | null; limit: number },
): Promise<ConsoleToken[]> {
  const { rows } = await db.query<ConsoleToken>(
    `SELECT ${columns} FROM console_token WHERE $1::bigint IS NULL OR id < $1 ORDER BY id DESC LIMIT $2`,
    [page.before, page.limit],
  );
  return rows;
}

export async function countTokens(db: Handle): Promise<number> {
  const { rows } = await db.query<{ n: number }>('SELECT count(*) AS n FROM console_token');
  return rows[0]?.n ?? 0;
}

/** Deletes a token with its sessions and login codes, and returns it. Needs a transaction with the audit. */
export async function deleteToken(tx: Handle, id: number): Promise<ConsoleToken | undefined> {
  const { rows } = await tx.query<ConsoleToken>(
    `DELETE FROM console_token WHERE id = $1 RETURNING ${columns}`,
    [id],
  );
  return rows[0];
}

/** Counts tokens of the admin API: valid ones, those of them that end within 30 days, and expired ones. */
export async function countTokenStates(
  db: Handle,
): Promise<{ valid: number; ending: number; expired: number }> {
  const { rows } = await db.query<{ valid: number; ending: number; expired: number }>(
    `SELECT count(*) FILTER (WHERE expires_at IS NULL OR expires_at > now()) AS valid,
            count(*) FILTER (WHERE expires_at > now() AND expires_at <= now() + interval '30 days') AS ending,
            count(*) FILTER (WHERE expires_at <= now()) AS expired
       FROM console_token`,
  );
  return rows[0] ?? { valid: 0, ending: 0, expired: 0 };
}
