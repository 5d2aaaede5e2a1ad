import type { Vault } from '../../../crypto.ts';
import type { CanaryCounts, RollbackReason, RotationState } from '../../../domain/apps/canary.ts';
import { sealContexts } from '../../../domain/apps/seal-contexts.ts';
import type { Handle } from '../../pool.ts';

/** Profile that a rotation belongs to. */
export interface RotatedProfile {
  appId: string;
  connector: string;
  name: string;
}

/** Last rotation of the credentials of a profile. */
export interface ProfileRotation extends RotatedProfile, CanaryCounts {
  state: RotationState;
  stagedAt: Date;
  changedAt: Date;
  reason: string | null;
  detail: string | null;
  batchesSeen: number;
  /** Whether the replaced credentials are kept, so that a promotion can be rolled back. */
  hasPrevious: boolean;
}

const columns = `app_id AS "appId", connector, name, state, staged_at AS "stagedAt", changed_at AS "changedAt", reason, detail,
  batches_seen AS "batchesSeen", batches, asked, accepted, refused, worse, previous IS NOT NULL AS "hasPrevious"`;
const ofProfile = 'app_id = $1 AND connector = $2 AND name = $3';
const keyOf = ({ appId, connector, name }: RotatedProfile) => [appId, connector, name];

/** Stores a candidate in place of an earlier one. Returns undefined if the profile does not exist. */
export async function stageCandidate(
  tx: Handle,
  vault: Vault,
  profile: RotatedProfile & { credentials: unknown },
): Promise<ProfileRotation | undefined> {
  const { appId, connector, name, credentials } = profile;
  const sealed = vault.seal(credentials, sealContexts.profile(appId, connector, name));
  await touchProfile(tx, profile);
  const { rows } = await tx.query<ProfileRotation>(
    `INSERT INTO profile_rotation AS r (app_id, connector, name, state, candidate, staged_at, changed_at)
     SELECT app_id, connector, name, 'staged', $4, statement_timestamp(), statement_timestamp() FROM push_profile WHERE ${ofProfile}
     ON CONFLICT (app_id, connector, name) DO UPDATE
        SET state = 'staged', candidate = excluded.candidate, previous = NULL, staged_at = excluded.staged_at,
            changed_at = excluded.changed_at, reason = NULL, detail = NULL, batches_seen = 0, batches = 0, asked = 0,
            accepted = 0, refused = 0, worse = 0
     RETURNING ${columns}`,
    [...keyOf(profile), sealed],
  );
  return rows[0];
}

export async function findRotation(
  db: Handle,
  profile: RotatedProfile,
): Promise<ProfileRotation | undefined> {
  const { rows } = await db.query<ProfileRotation>(
    `SELECT ${columns} FROM profile_rotation WHERE ${ofProfile}`,
    keyOf(profile),
  );
  return rows[0];
}

/** As `findRotation`, and locks it for the transaction. */
export async function lockRotation(
  tx: Handle,
  profile: RotatedProfile,
): Promise<ProfileRotation | undefined> {
  // The profile first, as every change of it does: a concurrent upload or deletion waits, and not the other way round.
  await touchProfile(tx, profile);
  const { rows } = await tx.query<ProfileRotation>(
    `SELECT ${columns} FROM profile_rotation WHERE ${ofProfile} FOR UPDATE`,
    keyOf(profile),
  );
  return rows[0];
}

/** Writes the result of the check of the candidate that was staged at `stagedAt`; undefined if another replaced it. */
export async function saveCheck(
  tx: Handle,
  profile: RotatedProfile,
  {
    stagedAt,
    reason,
    detail,
    to,
  }: Pick<ProfileRotation, 'stagedAt' | 'reason' | 'detail'> & { to: RotationState },
): Promise<ProfileRotation | undefined> {
  await touchProfile(tx, profile);
  const { rows } = await tx.query<ProfileRotation>(
    `UPDATE profile_rotation SET state = $5, reason = $6, detail = $7, changed_at = statement_timestamp()
      WHERE ${ofProfile} AND staged_at = $4 AND state = 'staged' RETURNING ${columns}`,
    [...keyOf(profile), stagedAt, to, reason, detail],
  );
  return rows[0];
}

/** Makes the candidate of a locked rotation the current version, and keeps the replaced one. */
export async function promoteCandidate(tx: Handle, profile: RotatedProfile): Promise<void> {
  await tx.query(
    `WITH old AS (SELECT credentials FROM push_profile WHERE ${ofProfile}),
          new AS (SELECT candidate FROM profile_rotation WHERE ${ofProfile}),
          changed AS (UPDATE push_profile SET credentials = new.candidate, updated_at = statement_timestamp() FROM new WHERE ${ofProfile})
     UPDATE profile_rotation SET state = 'promoted', candidate = NULL, previous = old.credentials, reason = NULL, detail = NULL,
            changed_at = statement_timestamp()
       FROM old WHERE ${ofProfile}`,
    keyOf(profile),
  );
}

/** Ends a locked rotation: drops its candidate, and after a promotion makes the kept version the current one again. */
export async function rollBackCandidate(
  tx: Handle,
  profile: RotatedProfile,
  { reason, detail = null }: { reason: RollbackReason; detail?: string | null },
): Promise<void> {
  await tx.query(
    `WITH kept AS (SELECT previous FROM profile_rotation WHERE ${ofProfile} AND state = 'promoted' AND previous IS NOT NULL),
          changed AS (UPDATE push_profile SET credentials = kept.previous, updated_at = statement_timestamp() FROM kept WHERE ${ofProfile})
     UPDATE profile_rotation SET state = 'rolled_back', candidate = NULL, previous = NULL, reason = $4, detail = $5,
            changed_at = statement_timestamp()
      WHERE ${ofProfile}`,
    [...keyOf(profile), reason, detail],
  );
}

/** Ends an open rotation of a profile that is uploaded again, and forgets the version before. */
export async function endRotation(tx: Handle, profile: RotatedProfile): Promise<void> {
  await tx.query(
    `UPDATE profile_rotation
        SET state = CASE WHEN state = 'promoted' THEN state ELSE 'rolled_back' END,
            reason = CASE WHEN state IN ('promoted', 'rolled_back') THEN reason ELSE 'replaced' END,
            candidate = NULL, previous = NULL, changed_at = statement_timestamp()
      WHERE ${ofProfile}`,
    keyOf(profile),
  );
}

/**
 * Counts the next `count` batches of a profile during a canary. Returns the number of batches before them; undefined if
 * the canary has ended.
 */
export async function claimBatches(
  db: Handle,
  profile: RotatedProfile,
  count: number,
): Promise<number | undefined> {
  const { rows } = await db.query<{ before: number }>(
    `UPDATE profile_rotation SET batches_seen = batches_seen + $4 WHERE ${ofProfile} AND state = 'canary'
     RETURNING batches_seen - $4 AS before`,
    [...keyOf(profile), count],
  );
  return rows[0]?.before;
}

/** Adds the answers of a batch to a locked canary, and returns it; undefined if that has ended or began later. */
export async function addCanaryCounts(
  tx: Handle,
  profile: RotatedProfile,
  { batches, asked, accepted, refused, worse, stagedAt }: CanaryCounts & { stagedAt: Date },
): Promise<ProfileRotation | undefined> {
  const { rows } = await tx.query<ProfileRotation>(
    `UPDATE profile_rotation
        SET batches = batches + $5, asked = asked + $6, accepted = accepted + $7, refused = refused + $8, worse = worse + $9
      WHERE ${ofProfile} AND state = 'canary' AND staged_at = $4 RETURNING ${columns}`,
    [...keyOf(profile), stagedAt, batches, asked, accepted, refused, worse],
  );
  return rows[0];
}

/** Lists canaries by their beginning, for the decisions that depend on their age. */
export async function listCanaries(db: Handle, limit: number): Promise<ProfileRotation[]> {
  const { rows } = await db.query<ProfileRotation>(
    `SELECT ${columns} FROM profile_rotation WHERE state = 'canary' ORDER BY changed_at LIMIT $1`,
    [limit],
  );
  return rows;
}

/** Lists rotations that changed since `after`, and all open ones, the newest first. */
export async function listRotations(db: Handle, after: Date, limit: number): Promise<ProfileRotation[]> {
  const { rows } = await db.query<ProfileRotation>(
    `SELECT ${columns} FROM profile_rotation
      WHERE state IN ('staged', 'checked', 'canary') OR changed_at > $1 ORDER BY changed_at DESC LIMIT $2`,
    [after, limit],
  );
  return rows;
}

/** Forgets credentials that promotions replaced before `before`. Returns their number. */
export async function forgetPrevious(db: Handle, before: Date): Promise<number> {
  const { rowCount } = await db.query(
    `UPDATE profile_rotation SET previous = NULL WHERE previous IS NOT NULL AND changed_at < $1`,
    [before],
  );
  return rowCount ?? 0;
}

/** Changes the version of a profile without changing it: caches read its rotation with it, and only then. */
async function touchProfile(tx: Handle, profile: RotatedProfile): Promise<void> {
  await tx.query(`UPDATE push_profile SET updated_at = updated_at WHERE ${ofProfile}`, keyOf(profile));
}
