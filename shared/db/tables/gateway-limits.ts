import type { Handle } from '../pool.ts';
import { lockName, query, sweepOf } from '../query.ts';

/** SQL of the number of recipients of a `push_batch`. Rows of older versions have no `size`. */
export const sizeSql = (alias: string): string =>
  `coalesce(${alias}.size, cardinality(${alias}.recipients))`;

/**
 * SQL of the number of open recipients of a `push_batch`. Only a batch that was delivered before
 * has closed ones.
 */
export const openCountSql = (alias: string): string =>
  `CASE WHEN ${alias}.settled IS NULL THEN ${sizeSql(alias)}
        ELSE (SELECT count(*)::int FROM generate_series(0, length(${alias}.settled) - 1) AS i
               WHERE get_byte(${alias}.settled, i) = 0) END`;

/** Time slot of a batch, reserved by flow control or by the rate of a gateway. */
export interface Slot {
  /** Start, by the database's clock. */
  at: Date;
  /** Milliseconds from now to `at`. Negative if the slot has begun. */
  inMs: number;
  durationMs: number;
}

export interface SlotRow {
  slotAt: Date | null;
  slotInMs: number | null;
  slotMs: number | null;
}

const epochMs = (value: string) => `(extract(epoch FROM ${value}) * 1000)::float8`;

/**
 * Columns of a `SlotRow` from `push_batch b` and `notification n`. Null if the rate of the push was
 * changed after the slot was reserved.
 */
export const slotColumns = `CASE WHEN b.slot_epoch = n.pace_epoch OR b.slot_at < n.pace_epoch_at
       THEN b.slot_at END AS "slotAt",
  ${epochMs('b.slot_at - clock_timestamp()')} AS "slotInMs", b.slot_ms AS "slotMs"`;

export const toSlot = ({ slotAt: at, slotInMs: inMs, slotMs: durationMs }: SlotRow): Slot | null =>
  at === null || inMs === null || durationMs === null ? null : { at, inMs, durationMs };

/**
 * Share of a rate that time slots use. Requests leave and arrive some milliseconds early or late,
 * and no second may carry more than 1.1 times the rate (protocol/delivery.md#promise-5).
 */
export const paceShare = 0.97;

/** Minimum of flow control (protocol/push.md#flow-control). */
const minRate = 1000;
/**
 * SQL of a time as seconds since the epoch, with immutable functions. Citus allows no other
 * functions in an UPDATE that reads columns.
 */
const epochOf = (time: string): string => `extract(epoch FROM ${time} - to_timestamp(0))::float8`;

const rate = `(${paceShare} * greatest(${minRate}, (n.request ->> 'flowControl')::float8))`;

/**
 * Reserves the next time slot of a push for the open recipients of a batch. Each slot starts at the
 * end of the previous slot, so the rate applies to all dispatchers together
 * (protocol/delivery.md#promise-5). A slot starts `leadMs` from now at the earliest, the first slot
 * of a push `firstLeadMs`. Returns undefined if the batch is settled or the push has no flow
 * control.
 */
export function reserveSlot(
  db: Handle,
  batch: { appId: string; batchId: number },
  { leadMs, firstLeadMs }: { leadMs: number; firstLeadMs: number },
): Promise<Slot | undefined> {
  return query(db).row<Slot>(
    `WITH batch AS (
       SELECT b.id, b.push_id, ${openCountSql('b')} AS open
         FROM push_batch b WHERE b.app_id = $1 AND b.id = $2 AND NOT b.is_settled FOR UPDATE),
     pace AS (
       UPDATE notification n
          SET pace_next_at = to_timestamp(batch.open / ${rate} + greatest(
                ${epochOf('n.pace_next_at')},
                ${epochOf('statement_timestamp()')} + CASE WHEN n.pace_next_at IS NULL
                THEN $4::float8 ELSE $3 END / 1000))
         FROM batch
        WHERE n.app_id = $1 AND n.id = batch.push_id AND n.request ->> 'flowControl' IS NOT NULL
       RETURNING n.pace_next_at, n.pace_epoch, batch.open / ${rate} AS seconds),
     slot AS (
       UPDATE push_batch b
          SET slot_at = to_timestamp(${epochOf('pace.pace_next_at')} - pace.seconds),
              slot_ms = ceil(pace.seconds * 1000), slot_epoch = pace.pace_epoch
         FROM batch, pace WHERE b.app_id = $1 AND b.id = batch.id
       RETURNING b.slot_at, b.slot_ms)
     SELECT slot_at AS at, ${epochMs('slot_at - clock_timestamp()')} AS "inMs",
            slot_ms AS "durationMs" FROM slot`,
    [batch.appId, batch.batchId, leadMs, firstLeadMs],
  );
}

/**
 * Slots that start within this time stay valid after a change, because their batches are already in
 * the threads.
 */
const heldSeconds = 1;

/**
 * Changes the flow control of an unfinished push; null removes it. Slots that start within a second
 * stay valid. Later slots are void, and their batches reserve new slots when they are delivered
 * (`findVoidSlots`). Returns false if the push is finished.
 */
export const changePace = (tx: Handle, appId: string, pushId: number, flowControl: number | null) =>
  query(tx).hasRows(
    `UPDATE notification
        SET request = jsonb_set(request, '{flowControl}', $3::jsonb),
            pace_epoch = pace_epoch + 1, updated_at = now(),
            pace_epoch_at = statement_timestamp() + make_interval(secs => ${heldSeconds}),
            pace_next_at = least(pace_next_at,
            statement_timestamp() + make_interval(secs => ${heldSeconds}))
      WHERE app_id = $1 AND id = $2 AND state IN ('scheduled', 'queued', 'sending', 'paused')`,
    [appId, pushId, JSON.stringify(flowControl && Math.max(flowControl, minRate))],
  );

/** Batch of a test push (protocol/push.md#test-pushes). */
type TestBatch = {
  appId: string;
  connector: string;
  pushId: number;
  batchId: number;
  devices: number;
};

/** Today in China by the database's clock. All gateway quotas use this day. */
const today = `(now() AT TIME ZONE 'Asia/Shanghai')::date`;

/** The profile to which a quota applies. */
export interface ProfileKey {
  appId: string;
  connector: string;
  profile: string;
}

export const valuesOfKey = ({ appId, connector, profile }: ProfileKey) => [
  appId,
  connector,
  profile,
];

/** Returns why a message class is closed for the rest of the day; null if it is open. */
export async function closedReason(
  db: Handle,
  key: ProfileKey,
  messageClass: string,
): Promise<string | null> {
  const reason = await query(db).value<string | null>(
    `SELECT closed_reason FROM gateway_day
      WHERE app_id = $1 AND connector = $2 AND profile = $3 AND class = $4 AND day = ${today}`,
    [...valuesOfKey(key), messageClass],
  );
  return reason ?? null;
}

/** Closes a message class until midnight in China. Keeps the first reason. */
export const closeClass = (
  db: Handle,
  key: ProfileKey,
  { messageClass, reason }: { messageClass: string; reason: string },
) =>
  query(db).run(
    `INSERT INTO gateway_day AS d (app_id, connector, profile, class, day, closed_reason)
     VALUES ($1, $2, $3, $4, ${today}, $5)
     ON CONFLICT (app_id, connector, profile, class, day)
     DO UPDATE SET closed_reason = coalesce(d.closed_reason, excluded.closed_reason)`,
    [...valuesOfKey(key), messageClass, reason],
  );

/** Answered requests, and recipients that the gateway accepted. */
export interface GatewayUse {
  requests: number;
  recipients: number;
}

/** Adds to today's use. Commits asynchronously, so a crash may lose the counts of a moment. */
export const addGatewayUse = (db: Handle, key: ProfileKey, { requests, recipients }: GatewayUse) =>
  query(db).run(
    `INSERT INTO gateway_day AS d (app_id, connector, profile, class, day, requests, recipients)
     SELECT $1, $2, $3, '', ${today}, $4, $5
       FROM (SELECT set_config('synchronous_commit', 'off', true)) AS setting
     ON CONFLICT (app_id, connector, profile, class, day)
     DO UPDATE SET requests = d.requests + excluded.requests,
       recipients = d.recipients + excluded.recipients`,
    [...valuesOfKey(key), requests, recipients],
  );

/**
 * Reserves devices of a test push for a batch. Returns their number. A batch that is delivered
 * again keeps its reservation. Limits the test pushes per app and day, and the devices per push.
 * Needs a transaction.
 */
export async function grantTest(
  tx: Handle,
  { appId, connector, pushId, batchId, devices }: TestBatch,
  limit: { pushesPerDay: number; devicesPerPush: number },
): Promise<number> {
  await lockName(tx, `gateway test ${appId} ${connector}`);
  const granted = await query(tx).value<number>(
    `WITH used AS (
       SELECT count(DISTINCT push_id) FILTER (WHERE push_id <> $3 AND devices > 0
         AND day = ${today}) AS pushes,
              coalesce(sum(devices) FILTER (WHERE push_id = $3), 0) AS of_push
         FROM gateway_test WHERE app_id = $1 AND connector = $2)
     INSERT INTO gateway_test AS t (app_id, connector, day, push_id, batch_id, devices)
     SELECT $1, $2, ${today}, $3, $4,
            CASE WHEN used.pushes >= $6 THEN 0 ELSE greatest(0, least($5, $7 - used.of_push)) END
            FROM used
      WHERE NOT EXISTS (SELECT FROM gateway_test
                         WHERE app_id = $1 AND connector = $2 AND push_id = $3 AND batch_id = $4)
     RETURNING devices`,
    [appId, connector, pushId, batchId, devices, limit.pushesPerDay, limit.devicesPerPush],
  );
  if (granted !== undefined) return granted;
  return query(tx).number(
    `SELECT devices FROM gateway_test WHERE app_id = $1 AND connector = $2 AND push_id = $3
      AND batch_id = $4`,
    [appId, connector, pushId, batchId],
  );
}

/** The day of the time `$1` in China. */
const chinaDay = `($1::timestamptz AT TIME ZONE 'Asia/Shanghai')::date`;
const dayKey = ['app_id', 'connector', 'profile', 'class', 'day'];
const testKey = ['app_id', 'connector', 'day', 'push_id', 'batch_id'];

/** Delete days before a time. */
export const gatewayDaySweeps = [
  sweepOf({ table: 'gateway_day', key: dayKey, column: 'day', bound: chinaDay }),
  sweepOf({ table: 'gateway_test', key: testKey, column: 'day', bound: chinaDay }),
];

/** Rate limit of a profile, in the units that its gateway counts. */
interface RateLimit {
  perSecond: number;
  burst: number;
  rampMs: number;
}

interface RateRow {
  nowMs: number;
  beganMs: number;
  units: number;
  busyMs: number;
}

/** Time to hand a batch to a thread and to load its recipients. */
const leadMs = 100;

/**
 * Reserves a time slot for a batch, so that all dispatchers together stay within the rate of a
 * profile. Each slot starts at the end of the previous slot. After a pause as long as the ramp, at
 * least a second, the ramp starts again. `isEven`: the units are spread over the slot, not sent at
 * once. Saves the slot on the batch, which keeps it when it is delivered again. Needs a
 * transaction.
 */
export async function reserveRate(
  tx: Handle,
  key: ProfileKey & { batchId: number },
  limit: RateLimit,
  request: { units: number; isEven: boolean },
): Promise<Slot> {
  const { nowMs, units, busyMs, ...rate } = await lockRate(tx, key);
  const isIdle = nowMs - busyMs > Math.max(limit.rampMs, 1000);
  const beganMs = isIdle ? nowMs : rate.beganMs;
  // Unused units beyond the burst expire.
  const used = isIdle ? 0 : Math.max(units, allowedUnits(limit, nowMs - beganMs) - limit.burst);
  const endMs = beganMs + msUntilAllowed(limit, used + request.units);
  const isAtOnce = endMs <= nowMs;
  const firstMs = Math.max(nowMs + (isAtOnce ? 0 : leadMs), beganMs + msUntilAllowed(limit, used));
  const lastMs = Math.max(firstMs, endMs);
  const startMs = request.isEven ? firstMs : lastMs;
  return query(tx).one<Slot>(
    `WITH rate AS (
       UPDATE gateway_rate SET began_at = to_timestamp($4::float8 / 1000), units = $5,
              busy_until = to_timestamp($6::float8 / 1000)
        WHERE app_id = $1 AND connector = $2 AND profile = $3),
     slot AS (
       UPDATE push_batch SET rate_at = to_timestamp($8::float8 / 1000), rate_ms = $9
         WHERE app_id = $1 AND id = $7
       RETURNING rate_at, rate_ms)
     SELECT rate_at AS at, ${epochMs('rate_at - clock_timestamp()')} AS "inMs",
            rate_ms AS "durationMs" FROM slot`,
    [
      ...[...valuesOfKey(key), beganMs, used + request.units, lastMs],
      ...[key.batchId, startMs, Math.ceil(lastMs - startMs)],
    ],
  );
}

/**
 * Locks the row of a profile until the end of the transaction. Commits asynchronously, because all
 * batches wait for this row. A crash of the database loses the reservations of a moment.
 */
async function lockRate(tx: Handle, key: ProfileKey): Promise<RateRow> {
  const known = await readRate(tx, key);
  if (known) return known;
  await tx.query(
    `INSERT INTO gateway_rate (app_id, connector, profile, began_at, units, busy_until)
     VALUES ($1, $2, $3, to_timestamp(0), 0, to_timestamp(0)) ON CONFLICT DO NOTHING`,
    valuesOfKey(key),
  );
  const inserted = await readRate(tx, key);
  if (!inserted) throw new Error('the rate was deleted concurrently');
  return inserted;
}

const readRate = (tx: Handle, key: ProfileKey) =>
  query(tx).row<RateRow>(
    `WITH setting AS (SELECT set_config('synchronous_commit', 'off', true)),
          held AS (SELECT * FROM gateway_rate WHERE app_id = $1 AND connector = $2 AND profile = $3
            FOR UPDATE)
     SELECT ${epochMs('clock_timestamp()')} AS "nowMs", ${epochMs('began_at')} AS "beganMs", units,
            ${epochMs('busy_until')} AS "busyMs" FROM held, setting`,
    valuesOfKey(key),
  );

/** Returns the number of units that are allowed until a time after the start of the ramp. */
export function allowedUnits({ perSecond, burst, rampMs }: RateLimit, ms: number): number {
  if (ms < rampMs) return burst + (perSecond * ms * ms) / (2 * rampMs) / 1000;
  return burst + (perSecond * (ms - rampMs / 2)) / 1000;
}

/** Returns the time after which a number of units is allowed: the inverse of `allowedUnits`. */
export function msUntilAllowed({ perSecond, burst, rampMs }: RateLimit, units: number): number {
  if (units <= burst) return 0;
  const ramped = (units - burst) * 1000;
  const ofRamp = (perSecond * rampMs) / 2;
  return ramped < ofRamp
    ? Math.sqrt((ramped * 2 * rampMs) / perSecond)
    : ramped / perSecond + rampMs / 2;
}

/** Columns of the time slot that the gateway's rate reserved, from `push_batch b`. */
export const rateColumns = `b.rate_at AS "rateAt", b.rate_ms AS "rateMs",
  ${epochMs('b.rate_at - clock_timestamp()')} AS "rateInMs"`;

/**
 * Deletes the rates of profiles that have not sent since `before`. Their ramp would start again
 * anyway.
 */
export const deleteOldRates = (db: Handle, before: Date) =>
  query(db).run('DELETE FROM gateway_rate WHERE busy_until < $1', [before]);

/** Use of a gateway by a profile on a day in China. A class is closed once its quota is used up. */
export interface ProfileUse {
  connector: string;
  profile: string;
  /** Message class. Empty: all messages of the profile. */
  class: string;
  requests: number;
  recipients: number;
  closedReason: string | null;
}

/** Lists an app's use of its gateways on a day in China (`YYYY-MM-DD`), at most `limit` rows. */
export const listProfileUse = (
  db: Handle,
  appId: string,
  { day, limit }: { day: string; limit: number },
) =>
  query(db).rows<ProfileUse>(
    `SELECT connector, profile, class, requests, recipients, closed_reason AS "closedReason"
      FROM gateway_day
      WHERE app_id = $1 AND day = $2::date ORDER BY connector, profile, class LIMIT $3`,
    [appId, day, limit],
  );
