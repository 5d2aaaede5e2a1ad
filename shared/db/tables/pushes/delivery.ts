import type { ConnectorId } from '../../../domain/labels.ts';
import type { PushState } from '../../../domain/pushes/record.ts';
import type { Handle } from '../../pool.ts';
import { AppStatement } from '../../sharding.ts';
import type { Grant } from '../apps/usage.ts';
import { rateColumns } from '../gateways/rates.ts';
import { type BatchKey, batchKeyValues } from './batches.ts';
import { openCountSql, type Slot, type SlotRow, sizeSql, slotColumns, toSlot } from './pace.ts';

/** State of a batch and its push for the main thread; a worker thread loads the recipients. */
export interface BatchSnapshot {
  connector: ConnectorId;
  profile: string;
  isSettled: boolean;
  attempt: number;
  /** Tries that reached the gateway, and the reason of the last failure. */
  tries: number;
  lastReason: string | null;
  /** Unanswered requests to its recipients so far. */
  unanswered: number;
  /** Earliest time to send, in ms from now (0 or less: due) and by the database's clock. */
  notBefore: { inMs: number; at: Date } | null;
  state: PushState;
  expiresAt: Date;
  /** Expiry of its own, where it is not that of its push; `expiresAt` is the one that counts. */
  ownExpiry: Date | null;
  /** Translation that its recipients get; null: `data` as it is. */
  language: string | null;
  /** Quiet hours of its recipients (`quietRule`), and the end that they waited for; null for none. */
  quiet: string | null;
  quietUntil: Date | null;
  createdAt: Date;
  pushTime: Date;
  firstSentAt: Date | null;
  profileErrors: Record<string, string>;
  /** Grant of the daily cap; null before the reservation. */
  grant: Grant | null;
  /** Whether its push has flow control, and the slot reserved by it. */
  isPaced: boolean;
  /** Whether its recipients get texts of their own, as a rule one in each request. */
  isPersonal: boolean;
  slot: Slot | null;
  /** Slot reserved by the rate of its gateway. */
  rateSlot: Slot | null;
  /** Number of all recipients, and of the open ones. */
  size: number;
  open: number;
}

interface SnapshotRow extends SlotRow {
  id: number;
  connector: ConnectorId;
  profile: string;
  is_settled: boolean;
  attempt: number;
  tries: number;
  last_reason: string | null;
  unanswered: number;
  not_before: Date | null;
  wait_ms: number | null;
  state: PushState;
  expires_at: Date;
  own_expiry: Date | null;
  language: string | null;
  quiet: string | null;
  quiet_until: Date | null;
  created_at: Date;
  push_time: Date;
  first_sent_at: Date | null;
  halts: Record<string, string>;
  granted: number | null;
  size: number;
  open: number;
  is_paced: boolean;
  is_personal: boolean;
  rate_at: Date | null;
  rate_ms: number | null;
  rate_in_ms: number | null;
}

const snapshotStatement = new AppStatement(
  3,
  (
    andApp,
  ) => `SELECT b.id, b.connector, b.profile, b.is_settled, b.attempt, b.tries, b.last_reason, b.unanswered,
          b.not_before,
          (extract(epoch FROM b.not_before - clock_timestamp()) * 1000)::float8 AS wait_ms, n.state, n.expires_at,
          b.expires_at AS own_expiry, b.language, b.quiet, b.quiet_until,
          n.created_at, n.push_time, n.first_sent_at, n.halts,
          b.granted, ${sizeSql('b')} AS size, ${openCountSql('b')} AS open,
          n.request ->> 'flowControl' IS NOT NULL AS is_paced,
          n.request ? 'variables' AS is_personal, ${slotColumns}, ${rateColumns}
     FROM unnest($1::text[], $2::bigint[]) AS k (app_id, id)
     JOIN push_batch b ON b.app_id = k.app_id AND b.id = k.id
     JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
    WHERE true${andApp('b')}${andApp('n')}`,
  { isPrepared: true },
);

/** Reads the states of batches and their pushes; undefined for a batch that was deleted. */
export async function readBatchSnapshots(
  db: Handle,
  keys: readonly BatchKey[],
): Promise<(BatchSnapshot | undefined)[]> {
  const done = await snapshotStatement.run<SnapshotRow, BatchKey>(db, keys, batchKeyValues);
  const found = new Map(done.flatMap((part) => part.found).map((row) => [row.id, toSnapshot(row)]));
  return keys.map(({ batchId }) => found.get(batchId));
}

const toSnapshot = (row: SnapshotRow): BatchSnapshot => ({
  connector: row.connector,
  profile: row.profile,
  isSettled: row.is_settled,
  attempt: row.attempt,
  tries: row.tries,
  lastReason: row.last_reason,
  unanswered: row.unanswered,
  notBefore: row.not_before && { inMs: row.wait_ms ?? 0, at: row.not_before },
  state: row.state,
  expiresAt: row.own_expiry ?? row.expires_at,
  ownExpiry: row.own_expiry,
  language: row.language,
  quiet: row.quiet,
  quietUntil: row.quiet_until,
  createdAt: row.created_at,
  pushTime: row.push_time,
  firstSentAt: row.first_sent_at,
  profileErrors: row.halts,
  grant: row.granted === null ? null : { granted: row.granted, size: row.size },
  isPaced: row.is_paced,
  isPersonal: row.is_personal,
  slot: toSlot(row),
  rateSlot: toSlot({ slot_at: row.rate_at, slot_ms: row.rate_ms, slot_in_ms: row.rate_in_ms }),
  size: row.size,
  open: row.open,
});
