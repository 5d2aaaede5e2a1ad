import type { Handle } from '../../../pool.ts';
import { prepare } from '../../../prepared.ts';

interface PushKey {
  appId: string;
  id: number;
}

/** Locks in the order of ids, so that two redrives do not wait for each other. */
const claimStatement = prepare(
  `WITH own AS MATERIALIZED (
     SELECT installation FROM push_failure
      WHERE app_id = $1 AND push_id = $2 AND installation = ANY($4::bigint[]) AND redriven_by IS NULL
      ORDER BY installation FOR UPDATE),
   claimed AS (
     UPDATE push_failure f SET redriven_by = $3 FROM own
      WHERE f.app_id = $1 AND f.push_id = $2 AND f.installation = own.installation
     RETURNING f.installation),
   counted AS (
     UPDATE notification SET redriven = redriven + (SELECT count(*) FROM claimed) WHERE app_id = $1 AND id = $2)
   SELECT installation FROM claimed`,
);

/**
 * Gives failures of a push to a redrive (`id`), each to one redrive only, and counts them on the record of the push. Returns
 * the installations that it got.
 */
export async function claimFailures(
  tx: Handle,
  { appId, id, failedId }: PushKey & { failedId: number },
  installations: readonly number[],
): Promise<number[]> {
  const values = [appId, failedId, id, `{${installations.join(',')}}`];
  const { rows } = await tx.query<{ installation: number }>(claimStatement, values);
  return rows.map(({ installation }) => installation);
}

/** Push that sends to recipients of a locked one again. */
export interface RivalPush {
  objectId: string;
  /** False: it was sent by a process of the version before, which notes no recipients. */
  isRedrive: boolean;
}

/**
 * Locks a push until `tx` ends. Returns a push other than `objectId` that prevents a redrive: one that is not planned yet,
 * so that its recipients are not known, or one of the version before.
 */
export async function lockForRedrive(
  tx: Handle,
  { appId, id }: PushKey,
  objectId: string,
): Promise<RivalPush | undefined> {
  await tx.query('SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR UPDATE', [appId, id]);
  const { rows } = await tx.query<RivalPush>(
    `SELECT object_id AS "objectId", redrive_of IS NOT NULL AS "isRedrive" FROM notification
      WHERE app_id = $1 AND object_id <> $3
        AND ((redrive_of = $2 AND NOT is_planned AND state IN ('scheduled', 'queued', 'sending', 'paused'))
          OR (redrive_of IS NULL
              AND object_id = (SELECT resent_as FROM notification WHERE app_id = $1 AND id = $2)))
      LIMIT 1`,
    [appId, id, objectId],
  );
  return rows[0];
}

/** Notes the newest redrive of a push, so that a process of the version before does not send it again. */
export async function noteRedrive(tx: Handle, { appId, id }: PushKey, objectId: string): Promise<void> {
  await tx.query('UPDATE notification SET resent_as = $3 WHERE app_id = $1 AND id = $2', [
    appId,
    id,
    objectId,
  ]);
}

/** Redrives of one push that a record names. */
const maxRedrives = 100;

/** Lists the redrives of a push, newest first. */
export async function listRedrives(db: Handle, { appId, id }: PushKey): Promise<string[]> {
  const { rows } = await db.query<{ objectId: string }>(
    `SELECT object_id AS "objectId" FROM notification WHERE app_id = $1 AND redrive_of = $2
      ORDER BY id DESC LIMIT ${maxRedrives}`,
    [appId, id],
  );
  return rows.map(({ objectId }) => objectId);
}
