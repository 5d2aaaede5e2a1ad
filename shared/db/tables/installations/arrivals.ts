import type { Handle } from '../../pool.ts';

/** Devices and users that are counted; an app with more has at least so many. */
export const maxCounted = 1_000_000;

/** Devices of an app by where they come from, and users by what they need of the service. */
export interface Arrivals {
  /** Devices that an import wrote. */
  imported: number;
  /** Devices among them whose app has called this service since. */
  seen: number;
  /** Devices that registered here by themselves. */
  registered: number;
  users: number;
  withEmail: number;
  withPhone: number;
}

/** Counts the devices and users of an app; at most `maxCounted` of each. */
export async function countArrivals(tx: Handle, appId: string): Promise<Arrivals> {
  const { rows } = await tx.query<Arrivals>(
    `SELECT d.*, u.* FROM
       (SELECT count(imported_at) AS imported, count(*) FILTER (WHERE updated_at > imported_at) AS seen,
               count(*) FILTER (WHERE imported_at IS NULL) AS registered
          FROM (SELECT imported_at, updated_at FROM installation WHERE app_id = $1 LIMIT $2) AS device) AS d,
       (SELECT count(*) AS users, count(email) AS "withEmail", count(mobile_phone_number) AS "withPhone"
          FROM (SELECT email, mobile_phone_number FROM app_user WHERE app_id = $1 LIMIT $2) AS one) AS u`,
    [appId, maxCounted],
  );
  return rows[0] ?? { imported: 0, seen: 0, registered: 0, users: 0, withEmail: 0, withPhone: 0 };
}

/** Devices whose app called last on a day in UTC, `YYYY-MM-DD`. */
export interface DayOfArrivals {
  day: string;
  /** Devices that an import wrote. */
  moved: number;
  /** Devices that registered here. */
  registered: number;
}

/** Returns the days since a time on which devices called last, the oldest first; of at most `maxCounted` devices. */
export async function listArrivalDays(tx: Handle, appId: string, since: Date): Promise<DayOfArrivals[]> {
  const { rows } = await tx.query<DayOfArrivals>(
    `SELECT to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, count(imported_at) AS moved,
            count(*) FILTER (WHERE imported_at IS NULL) AS registered
       FROM (SELECT imported_at, updated_at FROM installation WHERE app_id = $1 LIMIT $2) AS device
      WHERE updated_at >= $3 AND (imported_at IS NULL OR updated_at > imported_at)
      GROUP BY 1 ORDER BY 1`,
    [appId, maxCounted, since],
  );
  return rows;
}
