import type { Handle } from '../../pool.ts';

/** Notice that the credentials of a profile end. */
export interface CredentialNotice {
  appId: string;
  connector: string;
  profile: string;
  endsAt: Date;
  /** Step: the number of days before the end from which on it is told. */
  days: number;
}

/** Notes that a step is told. Returns false if it was told before, or if the profile was deleted. */
export async function noteNotice(
  tx: Handle,
  { appId, connector, profile, endsAt, days }: CredentialNotice,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `INSERT INTO credential_notice AS n (app_id, connector, name, ends_at, days)
     SELECT app_id, connector, name, $4, $5 FROM push_profile WHERE app_id = $1 AND connector = $2 AND name = $3
     ON CONFLICT (app_id, connector, name) DO UPDATE SET ends_at = excluded.ends_at, days = excluded.days
      WHERE n.ends_at <> excluded.ends_at OR n.days > excluded.days`,
    [appId, connector, profile, endsAt, days],
  );
  return (rowCount ?? 0) > 0;
}
