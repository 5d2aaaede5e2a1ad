import type { OperatorRole } from '../../../domain/admin/operator.ts';
import type { Handle } from '../../pool.ts';

/** Session of the console with the permissions of its token; `tokenId` is null for CARILLON_ADMIN_TOKEN. */
export interface ConsoleSession {
  id: number;
  tokenId: number | null;
  /** Name, role and apps of the token; null without one. */
  name: string | null;
  role: OperatorRole | null;
  apps: string[] | null;
  tokenExpiresAt: Date | null;
  address: string;
  agent: string;
  createdAt: Date;
  seenAt: Date;
}

/** Times that bound a valid session. */
export interface SessionBounds {
  now: Date;
  seenAfter: Date;
  createdAfter: Date;
}

/**
 * Most sessions of one token at a time; a further one replaces its own that was used longest ago.
 * So no token ends the sessions of another.
 */
const maxSessionsOfToken = 20;
/** Login codes of one token that wait at a time. */
const maxCodesOfToken = 10;

const columns = `s.id, s.token_id AS "tokenId", t.name, t.role, t.apps, t.expires_at AS "tokenExpiresAt",
  s.address, s.agent, s.created_at AS "createdAt", s.seen_at AS "seenAt"`;

/** Condition of valid sessions, with the parameters $1 to $4 of `validity`. */
const isValid = `s.admin_mark = ANY($1) AND s.seen_at > $2 AND s.created_at > $3
  AND (t.expires_at IS NULL OR t.expires_at > $4)`;

const validity = (marks: readonly Buffer[], { seenAfter, createdAfter, now }: SessionBounds): unknown[] => [
  marks,
  seenAfter,
  createdAfter,
  now,
];

export interface NewSession {
  digest: Buffer;
  adminMark: Buffer;
  tokenId: number | null;
  address: string;
  agent: string;
  now: Date;
}

export async function insertSession(tx: Handle, session: NewSession): Promise<number> {
  await tx.query(
    `DELETE FROM console_session WHERE id IN (
       SELECT id FROM console_session WHERE token_id IS NOT DISTINCT FROM $2
        ORDER BY seen_at DESC, id DESC OFFSET $1)`,
    [maxSessionsOfToken - 1, session.tokenId],
  );
  const { rows } = await tx.query<{ id: number }>(
    `INSERT INTO console_session (digest, admin_mark, token_id, address, agent, created_at, seen_at)
     VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING id`,
    [session.digest, session.adminMark, session.tokenId, session.address, session.agent, session.now],
  );
  return rows[0]?.id ?? 0;
}

/** Finds a valid session by the digest of its cookie. `marks` are those of the current CARILLON_ADMIN_TOKEN. */
export async function findSession(
  db: Handle,
  digest: Buffer,
  { marks, ...bounds }: SessionBounds & { marks: readonly Buffer[] },
): Promise<ConsoleSession | undefined> {
  const { rows } = await db.query<ConsoleSession>(
    `SELECT ${columns} FROM console_session s LEFT JOIN console_token t ON t.id = s.token_id
      WHERE s.digest = $5 AND ${isValid}`,
    [...validity(marks, bounds), digest],
  );
  return rows[0];
}

/** Tells whether a session is valid, by its id. */
export async function hasSession(
  db: Handle,
  id: number,
  { marks, ...bounds }: SessionBounds & { marks: readonly Buffer[] },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `SELECT FROM console_session s LEFT JOIN console_token t ON t.id = s.token_id WHERE s.id = $5 AND ${isValid}`,
    [...validity(marks, bounds), id],
  );
  return (rowCount ?? 0) > 0;
}

export async function touchSession(db: Handle, id: number, now: Date): Promise<void> {
  await db.query('UPDATE console_session SET seen_at = $2 WHERE id = $1', [id, now]);
}

/** Lists valid sessions, the newest first. */
export async function listSessions(
  db: Handle,
  page: { before: number | null; limit: number },
  { marks, ...bounds }: SessionBounds & { marks: readonly Buffer[] },
): Promise<ConsoleSession[]> {
  const { rows } = await db.query<ConsoleSession>(
    `SELECT ${columns} FROM console_session s LEFT JOIN console_token t ON t.id = s.token_id
      WHERE ${isValid} AND ($5::bigint IS NULL OR s.id < $5) ORDER BY s.id DESC LIMIT $6`,
    [...validity(marks, bounds), page.before, page.limit],
  );
  return rows;
}

/** Deletes a session. Returns false when no session has this id. */
export async function deleteSession(tx: Handle, id: number): Promise<boolean> {
  const { rowCount } = await tx.query('DELETE FROM console_session WHERE id = $1', [id]);
  return (rowCount ?? 0) > 0;
}

/** Deletes ended sessions and login codes. */
export async function deleteEndedSessions(
  db: Handle,
  { seenAfter, createdAfter, now }: SessionBounds,
): Promise<void> {
  await db.query('DELETE FROM console_session WHERE seen_at <= $1 OR created_at <= $2', [
    seenAfter,
    createdAfter,
  ]);
  await db.query('DELETE FROM console_login_code WHERE expires_at <= $1', [now]);
}

/** Stores a login code; replaces the oldest ones of its token beyond the limit. */
export async function insertLoginCode(
  tx: Handle,
  code: { digest: Buffer; adminMark: Buffer; tokenId: number | null; expiresAt: Date },
): Promise<void> {
  await tx.query(
    `DELETE FROM console_login_code WHERE digest IN (
       SELECT digest FROM console_login_code WHERE token_id IS NOT DISTINCT FROM $2
        ORDER BY expires_at DESC OFFSET $1)`,
    [maxCodesOfToken - 1, code.tokenId],
  );
  await tx.query(
    'INSERT INTO console_login_code (digest, admin_mark, token_id, expires_at) VALUES ($1, $2, $3, $4)',
    [code.digest, code.adminMark, code.tokenId, code.expiresAt],
  );
}

/** Uses up a login code; of concurrent calls one gets it. Undefined for an unknown, used or expired one. */
export async function spendLoginCode(
  tx: Handle,
  digest: Buffer,
  { marks, now }: { marks: readonly Buffer[]; now: Date },
): Promise<{ tokenId: number | null } | undefined> {
  const { rows } = await tx.query<{ tokenId: number | null }>(
    `DELETE FROM console_login_code WHERE digest = $1 AND admin_mark = ANY($2) AND expires_at > $3
     RETURNING token_id AS "tokenId"`,
    [digest, marks, now],
  );
  return rows[0];
}
