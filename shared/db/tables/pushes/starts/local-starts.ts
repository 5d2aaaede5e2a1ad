import type { Handle } from '../../../pool.ts';
import { prepare } from '../../../prepared.ts';
import type { SqlCondition } from '../../installations/audience.ts';

interface PushKey {
  appId: string;
  id: number;
}

/** Zones of one audience that are told apart: clients choose the names. Devices of further ones count as without a zone. */
const maxZones = 1000;

/** Devices with the same `timeZone`; null for those without one, or with one of too many. */
export interface ZoneGroup {
  zone: string | null;
  devices: number;
}

/** Counts devices by their time zone, the most frequent first. */
export async function countZones(tx: Handle, condition: SqlCondition): Promise<ZoneGroup[]> {
  const { rows } = await tx.query<ZoneGroup & { total: number }>(
    `SELECT time_zone AS zone, count(*) AS devices, (sum(count(*)) OVER ())::bigint AS total
       FROM installation WHERE ${condition.text}
      GROUP BY time_zone ORDER BY devices DESC, zone LIMIT ${maxZones}`,
    condition.values,
  );
  const groups = rows.map(({ zone, devices }) => ({ zone, devices }));
  const others = (rows[0]?.total ?? 0) - groups.reduce((sum, { devices }) => sum + devices, 0);
  return others > 0 ? [...groups, { zone: null, devices: others }] : groups;
}

/** How far a push at local time is: the start in work, and the one before it. Null before the first one. */
export interface LocalProgress {
  after: Date | null;
  at: Date | null;
}

/** Reads the starts of a push at local time, and the database's clock in epoch milliseconds. */
export async function readLocalProgress(
  db: Handle,
  { appId, id }: PushKey,
): Promise<LocalProgress & { nowMs: number }> {
  const { rows } = await db.query<LocalProgress & { nowMs: number }>(
    `SELECT local_after AS after, local_at AS at, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs"
       FROM notification WHERE app_id = $1 AND id = $2`,
    [appId, id],
  );
  const [row] = rows;
  if (!row) throw new Error('the push was deleted');
  return row;
}

/** One step of planning a start. */
export interface LocalStep {
  from: number;
  through: number;
  devices: number;
  /** The start in work as it is stored, and its time. */
  storedAt: Date | null;
  at: Date;
  /** It ends the start. */
  isLast: boolean;
  /** The next start; null with the last step of the last one. */
  next: Date | null;
}

const advanceStatement = prepare(
  `UPDATE notification
      SET state = 'sending', planned_through = CASE WHEN $7 THEN 0 ELSE $4 END, devices = devices + $5,
          is_planned = $7 AND $9::timestamptz IS NULL,
          local_after = CASE WHEN $7 THEN $8::timestamptz ELSE local_after END,
          local_at = CASE WHEN $7 THEN $9::timestamptz ELSE local_at END,
          push_time = CASE WHEN $7 AND devices + $5 = 0 THEN greatest(push_time, $9::timestamptz) ELSE push_time END,
          updated_at = now()
    WHERE app_id = $1 AND id = $2 AND planned_through = $3 AND NOT is_planned AND state IN ('queued', 'sending')
      AND local_at IS NOT DISTINCT FROM $6::timestamptz`,
);

/**
 * Advances the planning of a push at local time: as `advancePlanning`, and behind the last page of a start to the next one.
 * `push_time` follows as long as no device was found.
 */
export async function advanceLocalPlanning(
  tx: Handle,
  { appId, id }: PushKey,
  { from, through, devices, storedAt, isLast, at, next }: LocalStep,
): Promise<boolean> {
  const values = [appId, id, from, through, devices, storedAt, isLast, at, next];
  const { rowCount } = await tx.query(advanceStatement, values);
  return (rowCount ?? 0) > 0;
}

/** Returns those of some installations, in the order of ids, that batches of a push have already. */
export async function findPlanned(
  tx: Handle,
  { appId, id }: PushKey,
  installations: readonly number[],
): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>(
    `SELECT DISTINCT r.id FROM push_batch b CROSS JOIN LATERAL unnest(b.recipients) AS r (id)
      WHERE b.app_id = $1 AND b.push_id = $2 AND r.id = ANY($3::bigint[])
        AND b.recipients[1] <= $5 AND b.recipients[cardinality(b.recipients)] >= $4`,
    [appId, id, `{${installations.join(',')}}`, installations[0] ?? 0, installations.at(-1) ?? 0],
  );
  return rows.map((row) => row.id);
}
