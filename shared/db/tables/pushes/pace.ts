import type { Handle } from '../../pool.ts';

/** SQL expression for the number of recipients of `push_batch` under an alias; rows of older versions have no `size`. */
export const sizeSql = (alias: string): string => `coalesce(${alias}.size, cardinality(${alias}.recipients))`;

/** SQL expression for the number of open recipients of `push_batch` under an alias; only a retaken batch has closed ones. */
export const openCountSql = (alias: string): string =>
  `CASE WHEN ${alias}.settled IS NULL THEN ${sizeSql(alias)}
        ELSE (SELECT count(*)::int FROM generate_series(0, length(${alias}.settled) - 1) AS i
               WHERE get_byte(${alias}.settled, i) = 0) END`;

/** Time slot of a batch, reserved by flow control or a gateway's rate. */
export interface Slot {
  /** Start, by the database's clock. */
  at: Date;
  /** Milliseconds from now to `at`; negative after the start. */
  inMs: number;
  durationMs: number;
}

export interface SlotRow {
  slot_at: Date | null;
  slot_in_ms: number | null;
  slot_ms: number | null;
}

/** Columns of a `SlotRow` from `push_batch b` and `notification n`; nulls if the pace has changed since. */
export const slotColumns = `CASE WHEN b.slot_epoch = n.pace_epoch OR b.slot_at < n.pace_epoch_at
       THEN b.slot_at END AS slot_at,
  (extract(epoch FROM b.slot_at - clock_timestamp()) * 1000)::float8 AS slot_in_ms, b.slot_ms`;

export function toSlot(row: SlotRow): Slot | null {
  const { slot_at: at, slot_in_ms: inMs, slot_ms: durationMs } = row;
  return at === null || inMs === null || durationMs === null ? null : { at, inMs, durationMs };
}

/**
 * Share of a rate that slots use: groups leave and arrive some milliseconds early or late, and no
 * second may carry more than 1.1 times the rate (protocol/delivery.md#promise-5).
 */
export const paceShare = 0.97;

/** Minimum of flow control (protocol/push.md#flow-control). */
const minRate = 1000;
/** Returns the seconds of a time since the epoch by functions that Citus lets an UPDATE call with columns: immutable ones. */
const epochOf = (time: string): string => `extract(epoch FROM ${time} - to_timestamp(0))::float8`;

const rate = `(${paceShare} * greatest(${minRate}, (n.request ->> 'flowControl')::float8))`;

/**
 * Reserves the next slot of a push for the open recipients of a batch. The rate holds over all dispatchers, because each
 * slot starts at the end of the last one (protocol/delivery.md#promise-5). A slot starts `leadMs` from now at the
 * earliest, the first one of a push `firstLeadMs`. Undefined if the batch is settled or the push has no flow control.
 */
export async function reserveSlot(
  db: Handle,
  batch: { appId: string; batchId: number },
  { leadMs, firstLeadMs }: { leadMs: number; firstLeadMs: number },
): Promise<Slot | undefined> {
  const { rows } = await db.query<SlotRow>(
    `WITH batch AS (
       SELECT b.id, b.push_id, ${openCountSql('b')} AS open
         FROM push_batch b WHERE b.app_id = $1 AND b.id = $2 AND NOT b.is_settled FOR UPDATE),
     pace AS (
       UPDATE notification n
          SET pace_next_at = to_timestamp(batch.open / ${rate} + greatest(
                ${epochOf('n.pace_next_at')},
                ${epochOf('statement_timestamp()')} + CASE WHEN n.pace_next_at IS NULL THEN $4::float8 ELSE $3 END / 1000))
         FROM batch
        WHERE n.app_id = $1 AND n.id = batch.push_id AND n.request ->> 'flowControl' IS NOT NULL
       RETURNING n.pace_next_at, n.pace_epoch, batch.open / ${rate} AS seconds),
     slot AS (
       UPDATE push_batch b
          SET slot_at = to_timestamp(${epochOf('pace.pace_next_at')} - pace.seconds),
              slot_ms = ceil(pace.seconds * 1000), slot_epoch = pace.pace_epoch
         FROM batch, pace WHERE b.app_id = $1 AND b.id = batch.id
       RETURNING b.slot_at, b.slot_ms)
     SELECT slot_at, slot_ms, (extract(epoch FROM slot_at - clock_timestamp()) * 1000)::float8 AS slot_in_ms FROM slot`,
    [batch.appId, batch.batchId, leadMs, firstLeadMs],
  );
  return rows.map(toSlot)[0] ?? undefined;
}

/** Slots within this time keep their pace after a change: their batches are already in the threads. */
const heldSeconds = 1;

/**
 * Changes the flow control of an unfinished push; null removes it. Slots that start within a second
 * stay, later ones are void: their batches reserve again when they are fetched (`startVoidSlots`). Returns
 * false for a push that is finished.
 */
export async function changePace(
  tx: Handle,
  appId: string,
  pushId: number,
  flowControl: number | null,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification
        SET request = jsonb_set(request, '{flowControl}', $3::jsonb),
            pace_epoch = pace_epoch + 1, updated_at = now(),
            pace_epoch_at = statement_timestamp() + make_interval(secs => ${heldSeconds}),
            pace_next_at = least(pace_next_at, statement_timestamp() + make_interval(secs => ${heldSeconds}))
      WHERE app_id = $1 AND id = $2 AND state IN ('scheduled', 'queued', 'sending', 'paused')`,
    [appId, pushId, JSON.stringify(flowControl && Math.max(flowControl, minRate))],
  );
  return (rowCount ?? 0) > 0;
}
