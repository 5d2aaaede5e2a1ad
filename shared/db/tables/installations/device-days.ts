import type { Handle } from '../../pool.ts';
import { PreparedStatements } from '../../prepared.ts';
import { today } from '../apps/usage.ts';
import type { SqlCondition } from './audience.ts';

const statements = new PreparedStatements();

/**
 * Sorted, so that two pushes to the same devices do not wait for each other. The cap is part of the text: Citus passes no
 * parameters to the conflict clause of rows that it has selected.
 */
const chargeText = (cap: number): string =>
  `INSERT INTO device_day AS d (day, app_id, installation, pushes)
   SELECT ${today}, $1, i.id, 1 FROM unnest($2::bigint[]) AS i (id) ORDER BY i.id
   ON CONFLICT (day, app_id, installation) DO UPDATE SET pushes = d.pushes + 1 WHERE d.pushes < ${Math.trunc(cap)}
   RETURNING installation`;

/**
 * Counts a push for each of these installations that had fewer than `cap` pushes today; returns those. One statement reads and
 * counts, so that any number of dispatchers stays within the cap.
 */
export async function chargeDevices(
  tx: Handle,
  appId: string,
  { ids, cap }: { ids: readonly number[]; cap: number },
): Promise<number[]> {
  const { rows } = await tx.query<{ installation: number }>(statements.of(chargeText(cap)), [
    appId,
    `{${ids.join(',')}}`,
  ]);
  return rows.map(({ installation }) => installation);
}

/** Counts the installations of a condition that had `cap` pushes today. */
export async function countCappedDevices(
  tx: Handle,
  { text, values }: SqlCondition,
  { appId, cap }: { appId: string; cap: number },
): Promise<number> {
  const n = values.length;
  const { rows } = await tx.query<{ n: number }>(
    `SELECT count(*) AS n FROM device_day
      WHERE day = ${today} AND app_id = $${n + 1} AND pushes >= $${n + 2}
        AND installation IN (SELECT id FROM installation WHERE ${text})`,
    [...values, appId, cap],
  );
  return rows[0]?.n ?? 0;
}

/** Returns how many pushes of today count for an installation. */
export async function readDeviceDay(db: Handle, appId: string, installation: number): Promise<number> {
  const { rows } = await db.query<{ pushes: number }>(
    `SELECT pushes FROM device_day WHERE day = ${today} AND app_id = $1 AND installation = $2`,
    [appId, installation],
  );
  return rows[0]?.pushes ?? 0;
}

/** Deletes days before `before`. Returns the number of rows. */
export async function deleteOldDeviceDays(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT day, app_id, installation FROM device_day WHERE day < ($1::timestamptz AT TIME ZONE 'UTC')::date
        ORDER BY day, app_id, installation LIMIT $2)
     DELETE FROM device_day d USING old
      WHERE d.day = old.day AND d.app_id = old.app_id AND d.installation = old.installation`,
    [before, limit],
  );
  return rowCount ?? 0;
}
