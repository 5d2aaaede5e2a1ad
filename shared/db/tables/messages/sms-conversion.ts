import type { Handle } from '../../pool.ts';

/** Country of codes (`+86`) of an app. */
export interface Prefix {
  appId: string;
  prefix: string;
}

/** Counts a sent or used code in the bucket that begins at `bucket`. */
export async function countConversion(
  tx: Handle,
  { appId, prefix }: Prefix,
  event: 'sent' | 'used',
  bucket: Date,
): Promise<void> {
  await tx.query(
    `INSERT INTO sms_conversion AS c (app_id, prefix, bucket, ${event}) VALUES ($1, $2, $3, 1)
     ON CONFLICT (app_id, prefix, bucket) DO UPDATE SET ${event} = c.${event} + 1`,
    [appId, prefix, bucket],
  );
}

/** Conversion rate of codes, and the state of the breaker. */
export interface Conversion {
  /** Codes sent from the start of the window to `settledBefore`; newer ones may still be used. */
  sent: number;
  used: number;
  /** When the breaker closes again; null when it is closed. */
  openUntil: Date | null;
}

/** Reads the codes sent and used since `from`, or since the breaker last closed if that is later. */
export async function readConversion(
  db: Handle,
  { appId, prefix }: Prefix,
  { from, settledBefore, now }: { from: Date; settledBefore: Date; now: Date },
): Promise<Conversion> {
  const { rows } = await db.query<{ sent: number; used: number; open_until: Date | null }>(
    `SELECT coalesce(sum(c.sent) FILTER (WHERE c.bucket < $4), 0) AS sent, coalesce(sum(c.used), 0) AS used,
            max(b.open_until) FILTER (WHERE b.open_until > $5) AS open_until
       FROM (SELECT $1::text AS app_id, $2::text AS prefix) AS k
       LEFT JOIN sms_breaker b ON b.app_id = k.app_id AND b.prefix = k.prefix
       LEFT JOIN sms_conversion c ON c.app_id = k.app_id AND c.prefix = k.prefix
                                 AND c.bucket > $3 AND c.bucket >= coalesce(b.open_until, $3)`,
    [appId, prefix, from, settledBefore, now],
  );
  const row = rows[0];
  return { sent: Number(row?.sent ?? 0), used: Number(row?.used ?? 0), openUntil: row?.open_until ?? null };
}

/** Opens the breaker. Returns false when a concurrent call opened it first. */
export async function openBreaker(
  db: Handle,
  { appId, prefix }: Prefix,
  { now, until }: { now: Date; until: Date },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `INSERT INTO sms_breaker AS b (app_id, prefix, opened_at, open_until) VALUES ($1, $2, $3, $4)
     ON CONFLICT (app_id, prefix) DO UPDATE SET opened_at = $3, open_until = $4 WHERE b.open_until <= $3`,
    [appId, prefix, now, until],
  );
  return (rowCount ?? 0) > 0;
}

/** Lists open breakers, for the metrics. */
export async function listOpenBreakers(db: Handle, now: Date): Promise<Prefix[]> {
  const { rows } = await db.query<{ app_id: string; prefix: string }>(
    'SELECT app_id, prefix FROM sms_breaker WHERE open_until > $1 LIMIT 1000',
    [now],
  );
  return rows.map((row) => ({ appId: row.app_id, prefix: row.prefix }));
}

export async function deleteOldConversions(db: Handle, before: Date): Promise<void> {
  await db.query('DELETE FROM sms_conversion WHERE bucket < $1', [before]);
  await db.query('DELETE FROM sms_breaker WHERE open_until < $1', [before]);
}
