import { readable, type Vault } from '../../../crypto.ts';
import type { RotationState } from '../../../domain/apps/canary.ts';
import { sealContexts } from '../../../domain/apps/seal-contexts.ts';
import type { Handle } from '../../pool.ts';

/** Push profile with decrypted credentials. The connector validates their shape. */
export interface StoredProfile {
  connector: string;
  name: string;
  credentials: unknown;
  /** Changes with every upload of the profile, so that connections with older credentials are closed. */
  updatedAt: Date;
  /** Second version that is tried on some batches; absent without a canary. */
  canary?: { credentials: unknown; stagedAt: Date };
}

export interface ProfileEntry {
  connector: string;
  name: string;
  createdAt: Date;
  updatedAt: Date;
}

interface ProfileRow {
  connector: string;
  name: string;
  credentials: Buffer;
  created_at: Date;
  updated_at: Date;
}

const toEntry = (row: ProfileRow): ProfileEntry => ({
  connector: row.connector,
  name: row.name,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/**
 * Stores a profile; replaces one with the same name. Returns undefined for an unknown app. Locks the app's row, so that
 * the app is not deleted concurrently.
 */
export async function putProfile(
  db: Handle,
  vault: Vault,
  profile: { appId: string; connector: string; name: string; credentials: unknown },
): Promise<ProfileEntry | undefined> {
  const { appId, connector, name } = profile;
  const { rows } = await db.query<ProfileRow>(
    `INSERT INTO push_profile (app_id, connector, name, credentials)
     SELECT app_id, $2, $3, $4 FROM app WHERE app_id = $1 FOR KEY SHARE
     ON CONFLICT (app_id, connector, name)
     DO UPDATE SET credentials = excluded.credentials, updated_at = excluded.updated_at
     RETURNING *`,
    [appId, connector, name, vault.seal(profile.credentials, sealContexts.profile(appId, connector, name))],
  );
  return rows.map(toEntry)[0];
}

export async function listProfiles(db: Handle, appId: string): Promise<ProfileEntry[]> {
  const { rows } = await db.query<ProfileRow>(
    'SELECT * FROM push_profile WHERE app_id = $1 ORDER BY connector, name',
    [appId],
  );
  return rows.map(toEntry);
}

/** Profile of any app, without its credentials. */
export interface ProfileVersion {
  appId: string;
  connector: string;
  name: string;
  updatedAt: Date;
}

/** Lists the profiles of all apps, at most `limit`; decrypts nothing. */
export async function listProfileVersions(db: Handle, limit: number): Promise<ProfileVersion[]> {
  const { rows } = await db.query<ProfileVersion>(
    `SELECT app_id AS "appId", connector, name, updated_at AS "updatedAt" FROM push_profile
      ORDER BY app_id, connector, name LIMIT $1`,
    [limit],
  );
  return rows;
}

interface SendingRow extends ProfileRow {
  candidate: Buffer | null;
  staged_at: Date | null;
}

/** Lists the profiles of an app with their credentials, for sending. */
export async function openProfiles(db: Handle, vault: Vault, appId: string): Promise<StoredProfile[]> {
  const { rows } = await db.query<SendingRow>(
    `SELECT p.*, r.candidate, r.staged_at FROM push_profile p
       LEFT JOIN profile_rotation r ON r.app_id = p.app_id AND r.connector = p.connector AND r.name = p.name AND r.state = 'canary'
      WHERE p.app_id = $1 ORDER BY p.connector, p.name`,
    [appId],
  );
  return rows.map((row) => ({
    ...canaryOf(row, vault, appId),
    connector: row.connector,
    name: row.name,
    credentials: vault.open(row.credentials, sealContexts.profile(appId, row.connector, row.name)),
    updatedAt: row.updated_at,
  }));
}

/** Returns the candidate of a profile. One that no key decrypts is not tried: the current version sends. */
function canaryOf(row: SendingRow, vault: Vault, appId: string): Pick<StoredProfile, 'canary'> {
  const { candidate, staged_at: stagedAt } = row;
  if (!candidate || !stagedAt) return {};
  const context = sealContexts.profile(appId, row.connector, row.name);
  return readable(() => ({ canary: { credentials: vault.open(candidate, context), stagedAt } })) ?? {};
}

interface RotationOf {
  /** State of its last rotation; null if it was never rotated. */
  rotation: RotationState | null;
}

/** Finds a profile with its credentials. Throws `SealError` when they cannot be decrypted. */
export async function openProfile(
  db: Handle,
  vault: Vault,
  profile: { appId: string; connector: string; name: string },
): Promise<(StoredProfile & Pick<ProfileEntry, 'createdAt'> & RotationOf) | undefined> {
  const { appId, connector, name } = profile;
  const { rows } = await db.query<ProfileRow & RotationOf>(
    `SELECT p.*, (SELECT r.state FROM profile_rotation r
                   WHERE r.app_id = p.app_id AND r.connector = p.connector AND r.name = p.name) AS rotation
       FROM push_profile p WHERE p.app_id = $1 AND p.connector = $2 AND p.name = $3`,
    [appId, connector, name],
  );
  return rows.map((row) => ({
    connector: row.connector,
    name: row.name,
    credentials: vault.open(row.credentials, sealContexts.profile(appId, row.connector, row.name)),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    rotation: row.rotation,
  }))[0];
}

export async function deleteProfile(
  db: Handle,
  appId: string,
  connector: string,
  name: string,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'DELETE FROM push_profile WHERE app_id = $1 AND connector = $2 AND name = $3',
    [appId, connector, name],
  );
  return (rowCount ?? 0) > 0;
}
