import type { Handle } from '../../pool.ts';

/** Use of a gateway by a profile on a day in China; a class is closed once its quota is used up. */
export interface ProfileUse {
  connector: string;
  profile: string;
  /** Empty: all messages of the profile. */
  class: string;
  requests: number;
  recipients: number;
  closedReason: string | null;
}

/** Lists an app's use of its gateways on a day in China (`YYYY-MM-DD`), at most `limit` rows. */
export async function listProfileUse(
  db: Handle,
  appId: string,
  { day, limit }: { day: string; limit: number },
): Promise<ProfileUse[]> {
  const { rows } = await db.query<ProfileUse>(
    `SELECT connector, profile, class, requests, recipients, closed_reason AS "closedReason" FROM gateway_day
      WHERE app_id = $1 AND day = $2::date ORDER BY connector, profile, class LIMIT $3`,
    [appId, day, limit],
  );
  return rows;
}
