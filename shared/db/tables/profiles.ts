import { openOrUndefined, type Vault } from '../../crypto.ts';
import {
  type CanaryCounts,
  judgeCanary,
  type RollbackReason,
  type RotationState,
} from '../../domain/apps/canary.ts';
import { sealContexts } from '../../domain/apps/seal-contexts.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Database, Handle } from '../pool.ts';
import { membersOf } from '../prepared.ts';
import { query } from '../query.ts';
import { insertOwnAudit } from './console.ts';

/** The profile to which a rotation belongs. */
export interface RotatedProfile {
  appId: string;
  connector: string;
  name: string;
}

const ofProfile = 'app_id = $1 AND connector = $2 AND name = $3';
const keyOf = ({ appId, connector, name }: RotatedProfile) => [appId, connector, name];
const sealContext = ({ appId, connector, name }: RotatedProfile) =>
  sealContexts.profile(appId, connector, name);

/** A push profile with decrypted credentials. The connector validates them. */
export interface StoredProfile {
  connector: string;
  name: string;
  credentials: unknown;
  /** Members of the vendor by message class; null if the profile has none. */
  messageClasses: JsonObject | null;
  /** Changes with every upload, so that connections with older credentials are closed. */
  updatedAt: Date;
  /** Candidate version that some batches try. Absent without a canary. */
  canary?: { credentials: unknown; stagedAt: Date } | undefined;
}

export interface ProfileEntry {
  connector: string;
  name: string;
  createdAt: Date;
  updatedAt: Date;
  messageClasses: JsonObject | null;
}

const entryColumns = membersOf('p', 'connector, name, created_at, updated_at, message_classes');

/**
 * Stores a profile. Replaces a profile with the same name. Message classes that are undefined are
 * kept. Returns undefined for an unknown app.
 * Locks the app's row, so that the app cannot be deleted until the transaction ends.
 */
export const putProfile = (
  db: Handle,
  vault: Vault,
  profile: RotatedProfile & {
    credentials: unknown;
    messageClasses?: JsonObject | null | undefined;
  },
) =>
  query(db).row<ProfileEntry>(
    `INSERT INTO push_profile AS p (app_id, connector, name, credentials, message_classes)
     SELECT app_id, $2, $3, $4, $5::jsonb FROM app WHERE app_id = $1 FOR KEY SHARE
     ON CONFLICT (app_id, connector, name)
     DO UPDATE SET credentials = excluded.credentials, updated_at = excluded.updated_at,
       message_classes = CASE WHEN $6 THEN p.message_classes ELSE excluded.message_classes END
     RETURNING ${entryColumns}`,
    [
      ...keyOf(profile),
      vault.seal(profile.credentials, sealContext(profile)),
      profile.messageClasses ? JSON.stringify(profile.messageClasses) : null,
      profile.messageClasses === undefined,
    ],
  );

export const listProfiles = (db: Handle, appId: string) =>
  query(db).rows<ProfileEntry>(
    `SELECT ${entryColumns} FROM push_profile p WHERE app_id = $1 ORDER BY connector, name`,
    [appId],
  );

/** A profile of any app, without its credentials. */
export interface ProfileVersion extends RotatedProfile {
  updatedAt: Date;
}

/** Lists the profiles of all apps, at most `limit`. Decrypts nothing. */
export const listProfileVersions = (db: Handle, limit: number) =>
  query(db).rows<ProfileVersion>(
    `SELECT app_id AS "appId", connector, name, updated_at AS "updatedAt" FROM push_profile
      ORDER BY app_id, connector, name LIMIT $1`,
    [limit],
  );

interface SendingRow extends ProfileEntry {
  credentials: Buffer;
  candidate: Buffer | null;
  stagedAt: Date | null;
}

/** Lists the profiles of an app with their credentials, for sending. */
export async function openProfiles(
  db: Handle,
  vault: Vault,
  appId: string,
): Promise<StoredProfile[]> {
  const rows = await query(db).rows<SendingRow>(
    `SELECT ${entryColumns}, p.credentials, r.candidate, r.staged_at AS "stagedAt"
      FROM push_profile p
       LEFT JOIN profile_rotation r ON r.app_id = p.app_id AND r.connector = p.connector
         AND r.name = p.name AND r.state = 'canary'
      WHERE p.app_id = $1 ORDER BY p.connector, p.name`,
    [appId],
  );
  return rows.map(({ credentials, candidate, stagedAt, ...entry }) => {
    const context = sealContext({ appId, ...entry });
    // If no key can decrypt the candidate, the current version sends.
    const canary =
      candidate && stagedAt
        ? openOrUndefined(() => ({ credentials: vault.open(candidate, context), stagedAt }))
        : undefined;
    return { ...entry, credentials: vault.open(credentials, context), canary };
  });
}

interface RotationOf {
  /** State of its last rotation. Null if it was never rotated. */
  rotation: RotationState | null;
}

/**
 * Finds a profile with its credentials. `isLocked` locks it until the transaction ends. Throws
 * `SealError` if the credentials cannot be decrypted.
 */
export async function openProfile(
  db: Handle,
  vault: Vault,
  profile: RotatedProfile,
  { isLocked = false } = {},
): Promise<(StoredProfile & Pick<ProfileEntry, 'createdAt'> & RotationOf) | undefined> {
  const row = await query(db).row<ProfileEntry & RotationOf & { credentials: Buffer }>(
    `SELECT ${entryColumns}, p.credentials, (SELECT r.state FROM profile_rotation r
                   WHERE r.app_id = $1 AND r.connector = p.connector
                     AND r.name = p.name) AS rotation
       FROM push_profile p WHERE ${ofProfile}${isLocked ? ' FOR UPDATE' : ''}`,
    keyOf(profile),
  );
  return row && { ...row, credentials: vault.open(row.credentials, sealContext(profile)) };
}

export const deleteProfile = (db: Handle, appId: string, connector: string, name: string) =>
  query(db).hasRows(`DELETE FROM push_profile WHERE ${ofProfile}`, [appId, connector, name]);

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

/**
 * Stores a candidate, and replaces an earlier one. Returns undefined if the profile does not exist.
 */
export async function stageCandidate(
  tx: Handle,
  vault: Vault,
  profile: RotatedProfile & { credentials: unknown },
): Promise<ProfileRotation | undefined> {
  const sealed = vault.seal(profile.credentials, sealContext(profile));
  await touchProfile(tx, profile);
  return query(tx).row(
    `INSERT INTO profile_rotation AS r (app_id, connector, name, state, candidate, staged_at,
      changed_at)
     SELECT app_id, connector, name, 'staged', $4, statement_timestamp(), statement_timestamp()
       FROM push_profile WHERE ${ofProfile}
     ON CONFLICT (app_id, connector, name) DO UPDATE
        SET state = 'staged', candidate = excluded.candidate, previous = NULL,
            staged_at = excluded.staged_at, changed_at = excluded.changed_at, reason = NULL,
            detail = NULL, batches_seen = 0, batches = 0, asked = 0, accepted = 0, refused = 0,
            worse = 0
     RETURNING ${columns}`,
    [...keyOf(profile), sealed],
  );
}

export const findRotation = (db: Handle, profile: RotatedProfile) =>
  query(db).row<ProfileRotation>(
    `SELECT ${columns} FROM profile_rotation WHERE ${ofProfile}`,
    keyOf(profile),
  );

/** Like `findRotation`. Locks the rotation until the transaction ends. */
export async function lockRotation(
  tx: Handle,
  profile: RotatedProfile,
): Promise<ProfileRotation | undefined> {
  // Locks the profile first, like every change of a profile, so that two transactions cannot
  // deadlock.
  await touchProfile(tx, profile);
  return query(tx).row(
    `SELECT ${columns} FROM profile_rotation WHERE ${ofProfile} FOR UPDATE`,
    keyOf(profile),
  );
}

/**
 * Saves the result of the check of a candidate. Returns undefined if another candidate has replaced
 * it.
 */
export async function saveCheck(
  tx: Handle,
  profile: RotatedProfile,
  check: Pick<ProfileRotation, 'stagedAt' | 'reason' | 'detail'> & { to: RotationState },
): Promise<ProfileRotation | undefined> {
  await touchProfile(tx, profile);
  return query(tx).row(
    `UPDATE profile_rotation SET state = $5, reason = $6, detail = $7,
      changed_at = statement_timestamp()
      WHERE ${ofProfile} AND staged_at = $4 AND state = 'staged' RETURNING ${columns}`,
    [...keyOf(profile), check.stagedAt, check.to, check.reason, check.detail],
  );
}

/** Makes the candidate of a locked rotation the current version, and keeps the replaced version. */
export const promoteCandidate = (tx: Handle, profile: RotatedProfile) =>
  query(tx).run(
    `WITH old AS (SELECT credentials FROM push_profile WHERE ${ofProfile}),
          new AS (SELECT candidate FROM profile_rotation WHERE ${ofProfile}),
          changed AS (UPDATE push_profile SET credentials = new.candidate,
            updated_at = statement_timestamp() FROM new WHERE ${ofProfile})
     UPDATE profile_rotation SET state = 'promoted', candidate = NULL, previous = old.credentials,
            reason = NULL, detail = NULL, changed_at = statement_timestamp()
       FROM old WHERE ${ofProfile}`,
    keyOf(profile),
  );

/**
 * Ends a locked rotation. After a promotion, the replaced version becomes the current one again.
 */
export const rollBackCandidate = (
  tx: Handle,
  profile: RotatedProfile,
  { reason, detail = null }: { reason: RollbackReason; detail?: string | null },
) =>
  query(tx).run(
    `WITH kept AS (SELECT previous FROM profile_rotation WHERE ${ofProfile} AND state = 'promoted'
      AND previous IS NOT NULL),
          changed AS (UPDATE push_profile SET credentials = kept.previous,
            updated_at = statement_timestamp() FROM kept WHERE ${ofProfile})
     UPDATE profile_rotation SET state = 'rolled_back', candidate = NULL, previous = NULL,
            reason = $4, detail = $5, changed_at = statement_timestamp()
      WHERE ${ofProfile}`,
    [...keyOf(profile), reason, detail],
  );

/** Ends an open rotation of a profile that is uploaded again, and deletes the replaced version. */
export const endRotation = (tx: Handle, profile: RotatedProfile) =>
  query(tx).run(
    `UPDATE profile_rotation
        SET state = CASE WHEN state = 'promoted' THEN state ELSE 'rolled_back' END,
            reason = CASE WHEN state IN ('promoted', 'rolled_back') THEN reason ELSE 'replaced' END,
            candidate = NULL, previous = NULL, changed_at = statement_timestamp()
      WHERE ${ofProfile}`,
    keyOf(profile),
  );

/**
 * Counts the next `count` batches of a profile during a canary. Returns the number of batches
 * before them, or undefined if the canary has ended.
 */
export const claimBatches = (db: Handle, profile: RotatedProfile, count: number) =>
  query(db).value<number>(
    `UPDATE profile_rotation SET batches_seen = batches_seen + $4 WHERE ${ofProfile}
      AND state = 'canary'
     RETURNING batches_seen - $4 AS before`,
    [...keyOf(profile), count],
  );

/** Lists canaries by their start, for decisions that depend on their age. */
export const listCanaries = (db: Handle, limit: number) =>
  query(db).rows<ProfileRotation>(
    `SELECT ${columns} FROM profile_rotation WHERE state = 'canary' ORDER BY changed_at LIMIT $1`,
    [limit],
  );

/** Lists all open rotations, and rotations that changed since `after`, newest first. */
export const listRotations = (db: Handle, after: Date, limit: number) =>
  query(db).rows<ProfileRotation>(
    `SELECT ${columns} FROM profile_rotation
      WHERE state IN ('staged', 'checked', 'canary') OR changed_at > $1 ORDER BY changed_at DESC
        LIMIT $2`,
    [after, limit],
  );

/** Deletes credentials that promotions replaced before `before`. Returns their number. */
export const forgetPrevious = (db: Handle, before: Date) =>
  query(db).rowCount(
    `UPDATE profile_rotation SET previous = NULL WHERE previous IS NOT NULL AND changed_at < $1`,
    [before],
  );

/** Changes the version of a profile, so that caches load its rotation again. */
const touchProfile = (tx: Handle, profile: RotatedProfile) =>
  query(tx).run(
    `UPDATE push_profile SET updated_at = updated_at WHERE ${ofProfile}`,
    keyOf(profile),
  );

interface CredentialNotice {
  appId: string;
  connector: string;
  profile: string;
  endsAt: Date;
  /** Step: the number of days before the expiry from which the operator is notified. */
  days: number;
}

/**
 * Records that a step was notified. Returns false if it was notified before, or if the profile does
 * not exist.
 */
export const saveNotice = (
  tx: Handle,
  { appId, connector, profile, endsAt, days }: CredentialNotice,
) =>
  query(tx).hasRows(
    `INSERT INTO credential_notice AS n (app_id, connector, name, ends_at, days)
     SELECT app_id, connector, name, $4, $5 FROM push_profile WHERE app_id = $1 AND connector = $2
       AND name = $3
     ON CONFLICT (app_id, connector, name) DO UPDATE
       SET ends_at = excluded.ends_at, days = excluded.days
      WHERE n.ends_at <> excluded.ends_at OR n.days > excluded.days`,
    [appId, connector, profile, endsAt, days],
  );

/** Answers of one batch to a candidate. */
export interface CanaryAnswers extends Omit<CanaryCounts, 'batches'> {
  /** The first answer that was no acceptance, for the operator. Contains no token. */
  detail: string | null;
}

/**
 * Adds the answers of a batch to the canary that was staged at `stagedAt`. If the answers suffice,
 * promotes it or rolls it back. Returns the resulting state, or undefined without a decision.
 */
export function recordCanary(
  db: Pick<Database, 'transaction'>,
  profile: RotatedProfile & { stagedAt: Date },
  { detail, nowMs, asked, accepted, refused, worse }: CanaryAnswers & { nowMs: number },
): Promise<RotationState | undefined> {
  return db.transaction(async (tx) => {
    await touchProfile(tx, profile);
    const rotation = await query(tx).row<ProfileRotation>(
      `UPDATE profile_rotation
          SET batches = batches + 1, asked = asked + $5, accepted = accepted + $6,
            refused = refused + $7, worse = worse + $8
        WHERE ${ofProfile} AND state = 'canary' AND staged_at = $4 RETURNING ${columns}`,
      [...keyOf(profile), profile.stagedAt, asked, accepted, refused, worse],
    );
    return rotation && settle(tx, rotation, { nowMs, detail });
  });
}

/** Decides about a canary by its age. Returns undefined without a decision. */
export function reviewCanary(
  db: Pick<Database, 'transaction'>,
  profile: RotatedProfile,
  nowMs: number,
): Promise<RotationState | undefined> {
  return db.transaction(async (tx) => {
    const rotation = await lockRotation(tx, profile);
    if (rotation?.state !== 'canary') return undefined;
    return settle(tx, rotation, { nowMs, detail: null });
  });
}

/**
 * Promotes or rolls back a locked canary, if its counts or its age require it, with an audit entry.
 */
async function settle(
  tx: Handle,
  rotation: ProfileRotation,
  { nowMs, detail }: { nowMs: number; detail: string | null },
): Promise<RotationState | undefined> {
  const verdict = judgeCanary(rotation, nowMs - rotation.changedAt.getTime());
  if (!verdict) return undefined;
  const isPromoted = verdict.to === 'promoted';
  if (isPromoted) await promoteCandidate(tx, rotation);
  else await rollBackCandidate(tx, rotation, { reason: verdict.reason, detail });
  const { appId, connector, name, asked, accepted, refused, worse } = rotation;
  const reason = isPromoted ? null : verdict.reason;
  await insertOwnAudit(tx, {
    by: '(canary)',
    actorRole: 'operator',
    appId,
    action: isPromoted ? 'profile.promote' : 'profile.rollback',
    target: `${connector}/${name}`,
    before: { state: 'canary' },
    after: { state: verdict.to, reason, asked, accepted, refused, worse },
  });
  return verdict.to;
}
