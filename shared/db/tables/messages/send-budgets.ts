import { dayMs, hourMs } from '../../../clock.ts';
import type { SendKind } from '../../../domain/messages/sms.ts';
import type { Handle } from '../../pool.ts';

/** Limit on a count. `key` identifies the counted item within its scope, such as a network address. */
export interface Budget {
  appId: string;
  scope: 'address' | 'block' | 'app' | 'free' | 'mail' | 'mailAddress' | 'codeAlone';
  key: string;
  /** Largest count within the window. */
  limit: number;
  /** The window begins with its first count. */
  windowMs: number;
}

/**
 * Counts one against a budget, in one statement. Returns false, and counts nothing, when it is used up. Other calls for the
 * same key wait until `tx` ends.
 */
export async function takeBudget(tx: Handle, budget: Budget, now: Date): Promise<boolean> {
  const { appId, scope, key, limit, windowMs } = budget;
  if (limit < 1) return false;
  const { rowCount } = await tx.query(
    `INSERT INTO send_budget AS b (app_id, scope, key, since, n) VALUES ($1, $2, $3, $4, 1)
     ON CONFLICT (app_id, scope, key) DO UPDATE
        SET n = CASE WHEN b.since <= $5 THEN 1 ELSE b.n + 1 END,
            since = CASE WHEN b.since <= $5 THEN excluded.since ELSE b.since END
      WHERE b.since <= $5 OR b.n < $6`,
    [appId, scope, key, now, new Date(now.getTime() - windowMs), limit],
  );
  return (rowCount ?? 0) > 0;
}

/** Recent messages to a number. */
export interface NumberHistory {
  /** Milliseconds since the last message of any kind; infinite without one in the last day. */
  sinceLastMs: number;
  /** The same for messages that share a limit with the new one, and their numbers. */
  sinceLastOfKindMs: number;
  sameKindInHour: number;
  sameKindInDay: number;
}

/**
 * Reads the messages to a number in the last day. Locks the number until `tx` ends, so the caller may decide on the result
 * and insert a message. Voice calls share a limit whatever their signature.
 */
export async function readNumberHistory(
  tx: Handle,
  { appId, number, kind, sign }: { appId: string; number: string; kind: SendKind; sign: string },
  now: Date,
): Promise<NumberHistory> {
  // A statement of its own, so that its snapshot begins after the lock was granted.
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`sms ${appId} ${number}`]);
  const { rows } = await tx.query<{ sent_at: Date; is_same_kind: boolean }>(
    `SELECT sent_at, kind = $3 AND (kind = 'voice' OR sign = $4) AS is_same_kind
       FROM sms_send WHERE app_id = $1 AND number = $2 AND sent_at > $5`,
    [appId, number, kind, sign, new Date(now.getTime() - dayMs)],
  );
  const ages = (some: typeof rows) => some.map((row) => now.getTime() - row.sent_at.getTime());
  const sameKind = ages(rows.filter((row) => row.is_same_kind));
  return {
    sinceLastMs: Math.min(Number.POSITIVE_INFINITY, ...ages(rows)),
    sinceLastOfKindMs: Math.min(Number.POSITIVE_INFINITY, ...sameKind),
    sameKindInHour: sameKind.filter((age) => age < hourMs).length,
    sameKindInDay: sameKind.length,
  };
}

export async function insertSend(
  tx: Handle,
  { appId, number, kind, sign }: { appId: string; number: string; kind: SendKind; sign: string },
  now: Date,
): Promise<void> {
  await tx.query('INSERT INTO sms_send (app_id, number, kind, sign, sent_at) VALUES ($1, $2, $3, $4, $5)', [
    appId,
    number,
    kind,
    sign,
    now,
  ]);
}

/**
 * Charges the app's balance (option `smsBalance`, else `defaultBalance`). Returns false, and charges nothing, when it is too
 * low.
 */
export async function chargeBalance(
  tx: Handle,
  appId: string,
  price: number,
  defaultBalance: number,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE app SET options = jsonb_set(options, '{smsBalance}',
              to_jsonb(coalesce((options ->> 'smsBalance')::numeric, $3::numeric) - $2::numeric))
      WHERE app_id = $1 AND coalesce((options ->> 'smsBalance')::numeric, $3::numeric) >= $2::numeric`,
    [appId, price, defaultBalance],
  );
  return (rowCount ?? 0) > 0;
}

/** Deletes rows that no window counts. Returns the larger number of both tables. */
export async function deleteOldSends(db: Handle, before: Date, limit: number): Promise<number> {
  const sends = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT DISTINCT app_id, number, sent_at FROM (
         SELECT app_id, number, sent_at FROM sms_send WHERE sent_at < $1 ORDER BY sent_at LIMIT $2) AS oldest)
     DELETE FROM sms_send s USING old
      WHERE s.app_id = old.app_id AND s.number = old.number AND s.sent_at = old.sent_at`,
    [before, limit],
  );
  const budgets = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, scope, key FROM send_budget WHERE since < $1 AND scope <> 'free' ORDER BY since LIMIT $2)
     DELETE FROM send_budget b USING old
      WHERE b.app_id = old.app_id AND b.scope = old.scope AND b.key = old.key AND b.since < $1`,
    [before, limit],
  );
  return Math.max(sends.rowCount ?? 0, budgets.rowCount ?? 0);
}
