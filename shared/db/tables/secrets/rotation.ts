import { z } from 'zod';
import type { Handle } from '../../pool.ts';
import { type SealedCounts, sealedCounts } from './counts.ts';

/** Rotation of CARILLON_SECRET to a first key. */
export interface SecretRotation {
  keyId: string;
  requestedAt: Date;
  finishedAt: Date | null;
  /** Passes over all values; 0 before the first. */
  pass: number;
  /** App whose values are read; null at the beginning of a pass. */
  appId: string | null;
  /** Index in `sealedPlaces`. */
  place: number;
  /** Key of the row after which to go on. */
  position: string[] | null;
  /** Values under other keys at the beginning. */
  expected: number;
  changed: number;
  /** Values of the last pass that no key decrypts, by place. */
  unreadable: Record<string, number>;
  counts: SealedCounts | null;
  countedAt: Date | null;
}

const stored = z.object({
  position: z.array(z.string()).nullable(),
  unreadable: z.record(z.string(), z.number()),
  counts: sealedCounts.nullable(),
});

const columns = `key_id AS "keyId", requested_at AS "requestedAt", finished_at AS "finishedAt", pass, app_id AS "appId",
  place, position, expected, changed, unreadable, counts, counted_at AS "countedAt"`;

const toRotation = (row: SecretRotation): SecretRotation => ({ ...row, ...stored.parse(row) });

/** Finds the rotation to a first key. */
export async function findSecretRotation(db: Handle, keyId: string): Promise<SecretRotation | undefined> {
  const { rows } = await db.query<SecretRotation>(
    `SELECT ${columns} FROM secret_rotation WHERE key_id = $1`,
    [keyId],
  );
  return rows.map(toRotation)[0];
}

/** Requests a rotation. Changes nothing if it runs. Returns whether it begins. Forgets rotations to other keys. */
export async function requestSecretRotation(tx: Handle, keyId: string): Promise<boolean> {
  await tx.query('DELETE FROM secret_rotation WHERE key_id <> $1', [keyId]);
  const { rowCount } = await tx.query(
    `INSERT INTO secret_rotation AS r (key_id, requested_at) VALUES ($1, clock_timestamp())
     ON CONFLICT (key_id) DO UPDATE
        SET requested_at = excluded.requested_at, finished_at = NULL, pass = 0, app_id = NULL, place = 0, position = NULL,
            expected = 0, changed = 0, unreadable = '{}', counts = NULL, counted_at = NULL
      WHERE r.finished_at IS NOT NULL`,
    [keyId],
  );
  return (rowCount ?? 0) > 0;
}

/**
 * Locks the rotation to a first key for the transaction, if it was requested and has not finished; undefined while another
 * process holds it.
 */
export async function lockSecretRotation(tx: Handle, keyId: string): Promise<SecretRotation | undefined> {
  const { rows } = await tx.query<SecretRotation>(
    `SELECT ${columns} FROM secret_rotation WHERE key_id = $1 AND finished_at IS NULL FOR UPDATE SKIP LOCKED`,
    [keyId],
  );
  return rows.map(toRotation)[0];
}

/** Writes the state of a locked rotation; `isFinished` ends it, `isCounted` says that `counts` are new. */
export async function saveSecretRotation(
  tx: Handle,
  rotation: SecretRotation,
  { isFinished = false, isCounted = false } = {},
): Promise<void> {
  const { keyId, pass, appId, place, position, expected, changed, unreadable, counts } = rotation;
  await tx.query(
    `UPDATE secret_rotation
        SET pass = $2, app_id = $3, place = $4, position = $5, expected = $6, changed = $7, unreadable = $8, counts = $9,
            counted_at = CASE WHEN $10 THEN clock_timestamp() ELSE counted_at END,
            finished_at = CASE WHEN $11 THEN clock_timestamp() END
      WHERE key_id = $1`,
    [
      ...[keyId, pass, appId, place, position && JSON.stringify(position), expected, changed],
      ...[JSON.stringify(unreadable), counts && JSON.stringify(counts), isCounted, isFinished],
    ],
  );
}

/** Returns the id of the next app in the order of ids. */
export async function nextAppId(db: Handle, after: string | null): Promise<string | undefined> {
  const { rows } = await db.query<{ app_id: string }>(
    'SELECT app_id FROM app WHERE app_id > $1 ORDER BY app_id LIMIT 1',
    [after ?? ''],
  );
  return rows[0]?.app_id;
}
