import type { Handle } from '../../pool.ts';
import { type Slot, type SlotRow, toSlot } from '../pushes/pace.ts';
import type { ProfileKey } from './daily-use.ts';

/** Rate limit of a profile, in the units of its gateway. */
export interface RateLimit {
  perSecond: number;
  burst: number;
  rampMs: number;
}

interface RateRow {
  now_ms: number;
  began_ms: number;
  units: number;
  busy_ms: number;
}

/** Requested units, sent evenly over the slot, or at once when the rate allows. */
export interface RateRequest {
  units: number;
  isEven: boolean;
}

/** Time for handing a batch to a thread and loading its recipients. */
const leadMs = 100;

const epochMs = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;

/**
 * Reserves a slot for a batch, so that all dispatchers together keep to a profile's rate: each reservation starts at the
 * end of the one before. After a pause as long as the ramp (at least a second) the ramp restarts. Saves the slot on the
 * batch, which keeps it when it is retaken. Needs a transaction.
 */
export async function reserveRate(
  tx: Handle,
  key: ProfileKey & { batchId: number },
  limit: RateLimit,
  wanted: RateRequest,
): Promise<Slot> {
  const row = await lockRate(tx, key);
  const isIdle = row.now_ms - row.busy_ms > Math.max(limit.rampMs, 1000);
  const beganMs = isIdle ? row.now_ms : row.began_ms;
  // Unused units beyond the burst are lost.
  const used = isIdle ? 0 : Math.max(row.units, allowedUnits(limit, row.now_ms - beganMs) - limit.burst);
  const endMs = beganMs + msUntilAllowed(limit, used + wanted.units);
  const isAtOnce = endMs <= row.now_ms;
  const firstMs = Math.max(row.now_ms + (isAtOnce ? 0 : leadMs), beganMs + msUntilAllowed(limit, used));
  const lastMs = Math.max(firstMs, endMs);
  const startMs = wanted.isEven ? firstMs : lastMs;
  const { rows } = await tx.query<SlotRow>(
    `WITH rate AS (
       UPDATE gateway_rate SET began_at = to_timestamp($4::float8 / 1000), units = $5,
              busy_until = to_timestamp($6::float8 / 1000)
        WHERE app_id = $1 AND connector = $2 AND profile = $3),
     slot AS (
       UPDATE push_batch SET rate_at = to_timestamp($8::float8 / 1000), rate_ms = $9 WHERE app_id = $1 AND id = $7
       RETURNING rate_at AS slot_at, rate_ms AS slot_ms)
     SELECT slot_at, slot_ms, ${epochMs('slot_at - clock_timestamp()')} AS slot_in_ms FROM slot`,
    [
      ...[key.appId, key.connector, key.profile, beganMs, used + wanted.units, lastMs],
      ...[key.batchId, startMs, Math.ceil(lastMs - startMs)],
    ],
  );
  const slot = rows.map(toSlot)[0];
  if (!slot) throw new Error('the batch of this rate does not exist');
  return slot;
}

/**
 * Locks the row of a profile until the end of the transaction. Commits asynchronously, because all batches wait for this
 * row; a crash of the database loses a moment's reservations.
 */
async function lockRate(tx: Handle, key: ProfileKey): Promise<RateRow> {
  const known = await readRate(tx, key);
  if (known) return known;
  await tx.query(
    `INSERT INTO gateway_rate (app_id, connector, profile, began_at, units, busy_until)
     VALUES ($1, $2, $3, to_timestamp(0), 0, to_timestamp(0)) ON CONFLICT DO NOTHING`,
    [key.appId, key.connector, key.profile],
  );
  const made = await readRate(tx, key);
  if (!made) throw new Error('the rate was deleted concurrently');
  return made;
}

async function readRate(tx: Handle, { appId, connector, profile }: ProfileKey): Promise<RateRow | undefined> {
  const { rows } = await tx.query<RateRow>(
    `WITH setting AS (SELECT set_config('synchronous_commit', 'off', true)),
          held AS (SELECT * FROM gateway_rate WHERE app_id = $1 AND connector = $2 AND profile = $3 FOR UPDATE)
     SELECT ${epochMs('clock_timestamp()')} AS now_ms, ${epochMs('began_at')} AS began_ms, units,
            ${epochMs('busy_until')} AS busy_ms FROM held, setting`,
    [appId, connector, profile],
  );
  return rows[0];
}

/** Returns the units allowed until a time after the start of the ramp: the burst, and the area under the rate. */
export function allowedUnits({ perSecond, burst, rampMs }: RateLimit, ms: number): number {
  if (ms < rampMs) return burst + (perSecond * ms * ms) / (2 * rampMs) / 1000;
  return burst + (perSecond * (ms - rampMs / 2)) / 1000;
}

/** Returns the milliseconds after the start of the ramp until so many units are allowed: the inverse of `allowedUnits`. */
export function msUntilAllowed({ perSecond, burst, rampMs }: RateLimit, units: number): number {
  if (units <= burst) return 0;
  const ramped = (units - burst) * 1000;
  const ofRamp = (perSecond * rampMs) / 2;
  return ramped < ofRamp ? Math.sqrt((ramped * 2 * rampMs) / perSecond) : ramped / perSecond + rampMs / 2;
}

/** Columns of the slot that the gateway's rate reserved, from `push_batch b`. */
export const rateColumns = `b.rate_at, b.rate_ms, ${epochMs('b.rate_at - clock_timestamp()')} AS rate_in_ms`;

/** Deletes the rates of profiles that have not sent since: their ramps restart anyway. */
export async function deleteOldRates(db: Handle, before: Date): Promise<void> {
  await db.query('DELETE FROM gateway_rate WHERE busy_until < $1', [before]);
}
