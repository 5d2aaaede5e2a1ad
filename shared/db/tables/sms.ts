import { dayMs, hourMs } from '../../clock.ts';
import type { SendKind, TemplateType } from '../../domain/messages/sms.ts';
import type { TemplateProviders } from '../../domain/messages/sms-provider.ts';
import type { Handle } from '../pool.ts';
import { membersOf } from '../prepared.ts';
import { lockName, query, sweepOf } from '../query.ts';

export interface SmsSignature {
  name: string;
  isApproved: boolean;
  createdAt: Date;
  updatedAt: Date;
}

const signatureColumns = membersOf('s', 'name, is_approved, created_at, updated_at');

/**
 * Writes a signature. An approved signature stays approved. Returns undefined for an unknown app.
 */
export const putSignature = (db: Handle, appId: string, name: string) =>
  query(db).row<SmsSignature>(
    `INSERT INTO sms_signature AS s (app_id, name) SELECT app_id, $2 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, name) DO UPDATE SET updated_at = excluded.updated_at
       RETURNING ${signatureColumns}`,
    [appId, name],
  );

/** Lists signatures, oldest first. */
export const listSignatures = (db: Handle, appId: string) =>
  query(db).rows<SmsSignature>(
    `SELECT ${signatureColumns} FROM sms_signature s WHERE app_id = $1 ORDER BY created_at, name`,
    [appId],
  );

export const findSignature = (db: Handle, appId: string, name: string) =>
  query(db).row<SmsSignature>(
    `SELECT ${signatureColumns} FROM sms_signature s WHERE app_id = $1 AND name = $2`,
    [appId, name],
  );

/**
 * Finds the default signature among the approved ones: `ownName` if approved, otherwise the oldest.
 */
export const defaultSignature = (db: Handle, appId: string, ownName: string) =>
  query(db).value<string>(
    `SELECT name FROM sms_signature WHERE app_id = $1 AND is_approved
      ORDER BY name = $2 DESC, created_at, name LIMIT 1`,
    [appId, ownName],
  );

export const approveSignature = (db: Handle, appId: string, name: string) =>
  query(db).row<SmsSignature>(
    `UPDATE sms_signature AS s SET is_approved = true, updated_at = now()
      WHERE app_id = $1 AND name = $2 RETURNING ${signatureColumns}`,
    [appId, name],
  );

export const deleteSignature = (db: Handle, appId: string, name: string) =>
  query(db).hasRows('DELETE FROM sms_signature WHERE app_id = $1 AND name = $2', [appId, name]);

/** Text of a template, its kind of message, and the templates of providers for it. */
export interface TemplateText {
  type: TemplateType;
  text: string;
  providers?: TemplateProviders | undefined;
}

export interface SmsTemplate {
  name: string;
  /** Text in use. */
  active: TemplateText | null;
  /** Text that waits for approval, and then replaces the active one. */
  pending: TemplateText | null;
  createdAt: Date;
  updatedAt: Date;
}

/** SQL of a text as JSON. `prefix` is the prefix of its columns. Absent providers are left out. */
const textSql = (prefix: '' | 'pending_') =>
  `CASE WHEN t.${prefix}type IS NOT NULL AND t.${prefix}text IS NOT NULL THEN jsonb_strip_nulls(
    jsonb_build_object('type', t.${prefix}type, 'text', t.${prefix}text,
      'providers', t.${prefix}providers)) END`;
const templateColumns = `${membersOf('t', 'name, created_at, updated_at')},
  ${textSql('')} AS active, ${textSql('pending_')} AS pending`;

/** Submits a text for review. The active text stays in use. */
export const putTemplate = (
  db: Handle,
  appId: string,
  name: string,
  { type, text, providers }: TemplateText,
) =>
  query(db).row<SmsTemplate>(
    `INSERT INTO sms_template AS t (app_id, name, pending_type, pending_text, pending_providers)
     SELECT app_id, $2, $3, $4, $5 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, name)
     DO UPDATE SET pending_type = excluded.pending_type, pending_text = excluded.pending_text,
       pending_providers = excluded.pending_providers, updated_at = excluded.updated_at
     RETURNING ${templateColumns}`,
    [appId, name, type, text, providers === undefined ? null : JSON.stringify(providers)],
  );

export const listTemplates = (db: Handle, appId: string) =>
  query(db).rows<SmsTemplate>(
    `SELECT ${templateColumns} FROM sms_template t WHERE app_id = $1 ORDER BY created_at, name`,
    [appId],
  );

export const findTemplate = (db: Handle, appId: string, name: string) =>
  query(db).row<SmsTemplate>(
    `SELECT ${templateColumns} FROM sms_template t WHERE app_id = $1 AND name = $2`,
    [appId, name],
  );

/** Finds the first of these templates that has a text in use. */
export const findActiveTemplate = (db: Handle, appId: string, names: readonly string[]) =>
  query(db).row<SmsTemplate>(
    `SELECT ${templateColumns} FROM sms_template t
      WHERE app_id = $1 AND name = ANY($2::text[]) AND text IS NOT NULL
      ORDER BY array_position($2::text[], name) LIMIT 1`,
    [appId, names],
  );

/** Activates the pending text, if there is one. Returns undefined for an unknown template. */
export const approveTemplate = (db: Handle, appId: string, name: string) =>
  query(db).row<SmsTemplate>(
    // A sharded database makes JSON in a query, not in RETURNING.
    `WITH t AS (
       UPDATE sms_template
          SET type = coalesce(pending_type, type), text = coalesce(pending_text, text),
              providers = CASE WHEN pending_text IS NULL THEN providers ELSE pending_providers END,
              pending_type = NULL, pending_text = NULL, pending_providers = NULL, updated_at = now()
        WHERE app_id = $1 AND name = $2 RETURNING *)
     SELECT ${templateColumns} FROM t`,
    [appId, name],
  );

export const deleteTemplate = (db: Handle, appId: string, name: string) =>
  query(db).hasRows('DELETE FROM sms_template WHERE app_id = $1 AND name = $2', [appId, name]);

/** An app, and a country prefix of phone numbers (`+86`). */
export interface Prefix {
  appId: string;
  prefix: string;
}

/** Counts a sent or used code in the time bucket that begins at `bucket`. */
export const countConversion = (
  tx: Handle,
  { appId, prefix }: Prefix,
  event: 'sent' | 'used',
  bucket: Date,
) =>
  query(tx).run(
    `INSERT INTO sms_conversion AS c (app_id, prefix, bucket, ${event}) VALUES ($1, $2, $3, 1)
     ON CONFLICT (app_id, prefix, bucket) DO UPDATE SET ${event} = c.${event} + 1`,
    [appId, prefix, bucket],
  );

/** Conversion rate of codes, and the state of the SMS breaker. */
interface Conversion {
  /** Codes sent from the start of the window to `settledBefore`. Newer codes may still be used. */
  sent: number;
  used: number;
  /** When the breaker closes again. Null if it is closed. */
  openUntil: Date | null;
}

/** Reads the codes sent and used since `from`, or since the breaker last closed. */
export const readConversion = (
  db: Handle,
  { appId, prefix }: Prefix,
  { from, settledBefore, now }: { from: Date; settledBefore: Date; now: Date },
) =>
  query(db).one<Conversion>(
    `SELECT coalesce(sum(c.sent) FILTER (WHERE c.bucket < $4), 0)::bigint AS sent,
            coalesce(sum(c.used), 0)::bigint AS used,
            max(b.open_until) FILTER (WHERE b.open_until > $5) AS "openUntil"
       FROM (SELECT $1::text AS app_id, $2::text AS prefix) AS k
       LEFT JOIN sms_breaker b ON b.app_id = k.app_id AND b.prefix = k.prefix
       LEFT JOIN sms_conversion c ON c.app_id = k.app_id AND c.prefix = k.prefix
                                 AND c.bucket > $3 AND c.bucket >= coalesce(b.open_until, $3)`,
    [appId, prefix, from, settledBefore, now],
  );

/** Opens the breaker. Returns false if a concurrent call opened it first. */
export const openBreaker = (
  db: Handle,
  { appId, prefix }: Prefix,
  { now, until }: { now: Date; until: Date },
) =>
  query(db).hasRows(
    `INSERT INTO sms_breaker AS b (app_id, prefix, opened_at, open_until) VALUES ($1, $2, $3, $4)
     ON CONFLICT (app_id, prefix) DO UPDATE SET opened_at = $3, open_until = $4
       WHERE b.open_until <= $3`,
    [appId, prefix, now, until],
  );

/** Lists open breakers, for the metrics. */
export const listOpenBreakers = (db: Handle, now: Date) =>
  query(db).rows<Prefix>(
    'SELECT app_id AS "appId", prefix FROM sms_breaker WHERE open_until > $1 LIMIT 1000',
    [now],
  );

export async function deleteOldConversions(db: Handle, before: Date): Promise<void> {
  await db.query('DELETE FROM sms_conversion WHERE bucket < $1', [before]);
  await db.query('DELETE FROM sms_breaker WHERE open_until < $1', [before]);
}

/** A limit on a count. `key` identifies what is counted, such as a network address. */
export interface Budget {
  appId: string;
  scope: 'address' | 'block' | 'app' | 'free' | 'mail' | 'mailAddress' | 'codeAlone';
  key: string;
  /** Maximum count within the window. */
  limit: number;
  /** Duration in ms. The window begins with its first count. */
  windowMs: number;
}

/**
 * Counts one against a budget, in one statement. If the budget is used up, counts nothing and
 * returns false. Other calls with the same key wait until `tx` ends.
 */
export async function takeBudget(tx: Handle, budget: Budget, now: Date): Promise<boolean> {
  const { appId, scope, key, limit, windowMs } = budget;
  if (limit < 1) return false;
  return query(tx).hasRows(
    `INSERT INTO send_budget AS b (app_id, scope, key, since, n) VALUES ($1, $2, $3, $4, 1)
     ON CONFLICT (app_id, scope, key) DO UPDATE
        SET n = CASE WHEN b.since <= $5 THEN 1 ELSE b.n + 1 END,
            since = CASE WHEN b.since <= $5 THEN excluded.since ELSE b.since END
      WHERE b.since <= $5 OR b.n < $6`,
    [appId, scope, key, now, new Date(now.getTime() - windowMs), limit],
  );
}

interface NumberHistory {
  /**
   * Milliseconds since the last message of any kind. Infinity if there was none in the last day.
   */
  sinceLastMs: number;
  /**
   * Milliseconds since the last message that shares a limit with the new message. The other members
   * are the numbers of such messages.
   */
  sinceLastOfKindMs: number;
  sameKindInHour: number;
  sameKindInDay: number;
}

/**
 * Reads the messages to a number in the last day. Locks the number until `tx` ends, so that the
 * caller can decide and insert a message. All voice calls share a limit, whatever their signature.
 */
export async function readNumberHistory(
  tx: Handle,
  { appId, number, kind, sign }: { appId: string; number: string; kind: SendKind; sign: string },
  now: Date,
): Promise<NumberHistory> {
  // A separate statement, so that its snapshot begins after the lock was granted.
  await lockName(tx, `sms ${appId} ${number}`);
  const rows = await query(tx).rows<{ sentAt: Date; isSameKind: boolean }>(
    `SELECT sent_at AS "sentAt", kind = $3 AND (kind = 'voice' OR sign = $4) AS "isSameKind"
       FROM sms_send WHERE app_id = $1 AND number = $2 AND sent_at > $5`,
    [appId, number, kind, sign, new Date(now.getTime() - dayMs)],
  );
  const ages = (some: typeof rows) => some.map((row) => now.getTime() - row.sentAt.getTime());
  const sameKind = ages(rows.filter((row) => row.isSameKind));
  return {
    sinceLastMs: Math.min(Number.POSITIVE_INFINITY, ...ages(rows)),
    sinceLastOfKindMs: Math.min(Number.POSITIVE_INFINITY, ...sameKind),
    sameKindInHour: sameKind.filter((age) => age < hourMs).length,
    sameKindInDay: sameKind.length,
  };
}

export const insertSend = (
  tx: Handle,
  { appId, number, kind, sign }: { appId: string; number: string; kind: SendKind; sign: string },
  now: Date,
) =>
  query(tx).run(
    'INSERT INTO sms_send (app_id, number, kind, sign, sent_at) VALUES ($1, $2, $3, $4, $5)',
    [appId, number, kind, sign, now],
  );

/**
 * Charges the app's balance (option `smsBalance`). If it is too low, charges nothing and returns
 * false. An app without a balance has no limit.
 */
export const chargeBalance = (tx: Handle, appId: string, price: number) =>
  query(tx).hasRows(
    `UPDATE app SET options = jsonb_set(options, '{smsBalance}',
              coalesce(((options ->> 'smsBalance')::numeric - $2::numeric)::text::jsonb, 'null'))
      WHERE app_id = $1 AND coalesce((options ->> 'smsBalance')::numeric >= $2::numeric, true)`,
    [appId, price],
  );

/** Delete rows that no window counts. */
export const sendSweeps = [
  sweepOf({ table: 'sms_send', key: ['app_id', 'number', 'sent_at'], column: 'sent_at' }),
  sweepOf({
    table: 'send_budget',
    key: ['app_id', 'scope', 'key'],
    column: 'since',
    condition: "scope <> 'free'",
  }),
];
