import type { Handle } from '../../pool.ts';

/** Today in China, the day of all gateway quotas, by the database's clock. */
const today = `(now() AT TIME ZONE 'Asia/Shanghai')::date`;

/** Profile of a quota. */
export interface ProfileKey {
  appId: string;
  connector: string;
  profile: string;
}

/** Returns why a class of messages is closed for the rest of the day; null if it is open. */
export async function closedReason(
  db: Handle,
  { appId, connector, profile }: ProfileKey,
  messageClass: string,
): Promise<string | null> {
  const { rows } = await db.query<{ closed_reason: string | null }>(
    `SELECT closed_reason FROM gateway_day
      WHERE app_id = $1 AND connector = $2 AND profile = $3 AND class = $4 AND day = ${today}`,
    [appId, connector, profile, messageClass],
  );
  return rows[0]?.closed_reason ?? null;
}

/** Closes a class until midnight in China; keeps the first reason. */
export async function closeClass(
  db: Handle,
  { appId, connector, profile }: ProfileKey,
  { messageClass, reason }: { messageClass: string; reason: string },
): Promise<void> {
  await db.query(
    `INSERT INTO gateway_day AS d (app_id, connector, profile, class, day, closed_reason)
     VALUES ($1, $2, $3, $4, ${today}, $5)
     ON CONFLICT (app_id, connector, profile, class, day)
     DO UPDATE SET closed_reason = coalesce(d.closed_reason, excluded.closed_reason)`,
    [appId, connector, profile, messageClass, reason],
  );
}

/** Answered requests, and recipients accepted by the gateway. */
export interface GatewayUse {
  requests: number;
  recipients: number;
}

/** Adds to today's use. Commits asynchronously: a crash may lose a moment's counts. */
export async function addGatewayUse(
  db: Handle,
  { appId, connector, profile }: ProfileKey,
  { requests, recipients }: GatewayUse,
): Promise<void> {
  await db.query(
    `INSERT INTO gateway_day AS d (app_id, connector, profile, class, day, requests, recipients)
     SELECT $1, $2, $3, '', ${today}, $4, $5 FROM (SELECT set_config('synchronous_commit', 'off', true)) AS setting
     ON CONFLICT (app_id, connector, profile, class, day)
     DO UPDATE SET requests = d.requests + excluded.requests, recipients = d.recipients + excluded.recipients`,
    [appId, connector, profile, requests, recipients],
  );
}

/** Returns an app's use of its gateways on a day in China (`YYYY-MM-DD`), by connector. */
export async function readGatewayUse(
  db: Handle,
  appId: string,
  day: string,
): Promise<(GatewayUse & { connector: string })[]> {
  const { rows } = await db.query<GatewayUse & { connector: string }>(
    `SELECT connector, sum(requests)::bigint AS requests, sum(recipients)::bigint AS recipients FROM gateway_day
      WHERE app_id = $1 AND day = $2::date AND class = '' GROUP BY connector ORDER BY connector`,
    [appId, day],
  );
  return rows;
}

/** Batch of a test push (protocol/push.md#test-pushes). */
export interface TestBatch {
  appId: string;
  connector: string;
  pushId: number;
  batchId: number;
  devices: number;
}

/**
 * Reserves devices of a test push for a batch and returns their number; a retaken batch keeps its reservation. Limits
 * the pushes per app and day, and the devices per push. Needs a transaction.
 */
export async function grantTest(
  tx: Handle,
  { appId, connector, pushId, batchId, devices }: TestBatch,
  limit: { pushesPerDay: number; devicesPerPush: number },
): Promise<number> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `gateway test ${appId} ${connector}`,
  ]);
  const { rows } = await tx.query<{ devices: number }>(
    `WITH used AS (
       SELECT count(DISTINCT push_id) FILTER (WHERE push_id <> $3 AND devices > 0 AND day = ${today}) AS pushes,
              coalesce(sum(devices) FILTER (WHERE push_id = $3), 0) AS of_push
         FROM gateway_test WHERE app_id = $1 AND connector = $2)
     INSERT INTO gateway_test AS t (app_id, connector, day, push_id, batch_id, devices)
     SELECT $1, $2, ${today}, $3, $4,
            CASE WHEN used.pushes >= $6 THEN 0 ELSE greatest(0, least($5, $7 - used.of_push)) END FROM used
      WHERE NOT EXISTS (SELECT FROM gateway_test
                         WHERE app_id = $1 AND connector = $2 AND push_id = $3 AND batch_id = $4)
     RETURNING devices`,
    [appId, connector, pushId, batchId, devices, limit.pushesPerDay, limit.devicesPerPush],
  );
  if (rows[0]) return rows[0].devices;
  const known = await tx.query<{ devices: number }>(
    `SELECT devices FROM gateway_test WHERE app_id = $1 AND connector = $2 AND push_id = $3 AND batch_id = $4`,
    [appId, connector, pushId, batchId],
  );
  return known.rows[0]?.devices ?? 0;
}

/** Deletes days before `before`; returns the number of rows. */
export async function deleteOldGatewayDays(db: Handle, before: Date, limit: number): Promise<number> {
  const days = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, connector, profile, class, day FROM gateway_day
        WHERE day < ($1::timestamptz AT TIME ZONE 'Asia/Shanghai')::date LIMIT $2)
     DELETE FROM gateway_day d USING old
      WHERE d.app_id = old.app_id AND d.connector = old.connector AND d.profile = old.profile
        AND d.class = old.class AND d.day = old.day`,
    [before, limit],
  );
  const tests = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, connector, day, push_id, batch_id FROM gateway_test
        WHERE day < ($1::timestamptz AT TIME ZONE 'Asia/Shanghai')::date LIMIT $2)
     DELETE FROM gateway_test t USING old
      WHERE t.app_id = old.app_id AND t.connector = old.connector AND t.day = old.day
        AND t.push_id = old.push_id AND t.batch_id = old.batch_id`,
    [before, limit],
  );
  return Math.max(days.rowCount ?? 0, tests.rowCount ?? 0);
}
