import { z } from 'zod';
import type { Vault } from '../../crypto.ts';
import { sealContexts } from '../../domain/apps/seal-contexts.ts';
import { storableText } from '../../domain/json.ts';
import type { Handle } from '../pool.ts';
import { membersOf } from '../prepared.ts';
import { type PageBefore, query, reasonTextSql, sweepOf } from '../query.ts';

/**
 * A mail or SMS of the outbox. Without a provider it stays there (protocol/admin-api.md#outbox).
 */
export interface OutboxMessage {
  kind: 'sms' | 'mail';
  /** Phone number in international form, or mail address. */
  to: string;
  /** Purpose, such as `general` or `resetPassword`. */
  type: string;
  text: string;
  code?: string | undefined;
  link?: string | undefined;
  /** Members that only the provider of mail or SMS needs. */
  mail?: MailParts | undefined;
  sms?: SmsParts | undefined;
}

const mailParts = z.object({
  /** Display name of the sender, which is the app's name. */
  fromName: z.string(),
  subject: z.string(),
  html: z.string().optional(),
});
type MailParts = z.infer<typeof mailParts>;

const smsParts = z.object({
  isVoice: z.boolean(),
  sign: z.string(),
  template: z.string().optional(),
  variables: z.record(z.string(), z.string()),
});
type SmsParts = z.infer<typeof smsParts>;

/** The encrypted part. Codes and links give access to accounts. */
const body = z.object({
  text: z.string(),
  code: z.string().optional(),
  link: z.string().optional(),
  mail: mailParts.optional(),
  sms: smsParts.optional(),
});

interface StoredMessage extends Pick<OutboxMessage, 'kind' | 'to' | 'type'> {
  body: Buffer;
}

/** Inserts a message that is valid until `expiresAt`, by default for a day. Returns its id. */
export async function insertOutboxMessage(
  db: Handle,
  vault: Vault,
  appId: string,
  message: OutboxMessage & { expiresAt?: Date },
): Promise<number> {
  const { kind, to, type, expiresAt, text, code, link, mail, sms } = message;
  const body = vault.seal(
    { text, code, link, mail, sms },
    sealContexts.message({ appId, kind, to, type }),
  );
  const { id } = await query(db).one<{ id: number }>(
    `INSERT INTO outbox (app_id, kind, recipient, type, body, expires_at)
     VALUES ($1, $2, $3, $4, $5, coalesce($6, now() + interval '1 day')) RETURNING id`,
    [appId, kind, to, type, body, expiresAt],
  );
  return id;
}

/** Decrypts the body of a message. Throws `SealError`. */
const openBody = ({ kind, to, type, body: sealed }: StoredMessage, vault: Vault, appId: string) =>
  body.parse(vault.open(sealed, sealContexts.message({ appId, kind, to, type })));

/** A message that waits for its provider. */
export interface WaitingMessage extends OutboxMessage {
  /** Number of tries so far. */
  attempts: number;
  expiresAt: Date;
}

/** Finds a waiting message. Returns undefined if it has ended or its app was deleted. */
export async function findWaitingMessage(
  db: Handle,
  vault: Vault,
  appId: string,
  id: number,
): Promise<WaitingMessage | undefined> {
  const row = await query(db).row<StoredMessage & Omit<WaitingMessage, keyof OutboxMessage>>(
    `SELECT recipient AS "to", ${membersOf('outbox', 'kind, type, body, attempts, expires_at')}
       FROM outbox WHERE app_id = $1 AND id = $2 AND state = 'waiting'`,
    [appId, id],
  );
  if (!row) return undefined;
  const { body: _, ...message } = row;
  return { ...message, ...openBody(row, vault, appId) };
}

/** Final result of a message. `reason` is one of a fixed set and contains no personal data. */
export interface MessageResult {
  state: 'sent' | 'kept' | 'failed';
  reason: string | null;
  /** Id of a sent message at its provider. */
  providerId?: string | undefined;
}

const storableId = (id: string): string => storableText(id, 200);

/**
 * Saves the final result. Returns the kind and the purpose of the message; undefined if it had ended
 * before.
 */
export const settleMessage = (
  tx: Handle,
  appId: string,
  id: number,
  { state, reason, providerId }: MessageResult,
) =>
  query(tx).row<Pick<OutboxMessage, 'kind' | 'type'>>(
    `UPDATE outbox SET state = $3, reason = $4, attempts = attempts + ($3 <> 'kept')::int,
      settled_at = now(), provider_id = $5
      WHERE app_id = $1 AND id = $2 AND state = 'waiting' RETURNING kind, type`,
    [appId, id, state, reason, providerId && storableId(providerId)],
  );

/** Delivery that a provider reported for a message. */
export interface Delivery {
  message: { appId: string; id: string } | { providerId: string };
  isDelivered: boolean;
  reason: string | null;
}

/**
 * Saves what a provider reported. A delivered message stays delivered. Returns false for an unknown
 * message, and for a message whose delivery is known. The statement by the provider's id runs on
 * all servers of a sharded database, because the receipt does not name the app.
 */
export function recordDelivery(
  db: Handle,
  { message, isDelivered, reason }: Delivery,
): Promise<boolean> {
  const set = `UPDATE outbox SET delivery = $1, delivery_reason = $2, delivered_at = now()
    WHERE kind = 'sms' AND delivery IS DISTINCT FROM 'delivered'
      AND delivery IS DISTINCT FROM $1`;
  const values = [isDelivered ? 'delivered' : 'undelivered', reason];
  return 'providerId' in message
    ? query(db).hasRows(`${set} AND provider_id = $3`, [...values, storableId(message.providerId)])
    : query(db).hasRows(`${set} AND app_id = $3 AND id = $4`, [
        ...values,
        storableId(message.appId),
        message.id,
      ]);
}

/** Counts a try that will be repeated. Returns false if the message had ended before. */
export const countTry = (tx: Handle, appId: string, id: number, reason: string) =>
  query(tx).hasRows(
    `UPDATE outbox SET attempts = attempts + 1, reason = $3
      WHERE app_id = $1 AND id = $2 AND state = 'waiting'`,
    [appId, id, reason],
  );

export const deleteOldMessages = sweepOf({
  table: 'outbox',
  key: ['app_id', 'id'],
  column: 'created_at',
});

/** States of a message. `kept`: no provider is configured. */
export const messageStates = ['waiting', 'sent', 'kept', 'failed'] as const;
type MessageState = (typeof messageStates)[number];

/** A message of the outbox with its delivery state. `openListed` decrypts its body. */
export interface ListedMessage extends StoredMessage {
  id: number;
  state: MessageState;
  attempts: number;
  /** Short reason of the last failed try. Contains no personal data. */
  reason: string | null;
  /** Id of a sent SMS at its provider. */
  providerId: string | null;
  /** What the provider reported after it had taken an SMS. Null without a receipt. */
  delivery: 'delivered' | 'undelivered' | null;
  /** Stored reason of an undelivered SMS. */
  deliveryReason: string | null;
  deliveredAt: Date | null;
  createdAt: Date;
  expiresAt: Date;
}

const columns = `recipient AS "to", ${membersOf(
  'outbox',
  `id, kind, type, body, state, attempts, reason, provider_id, delivery, delivery_reason, delivered_at,
   created_at, expires_at`,
)}`;

export interface OutboxPageFilter {
  kind?: OutboxMessage['kind'] | undefined;
  to?: string | undefined;
  state?: MessageState | undefined;
}

/** Lists a page of messages of an app, newest first. */
export const listOutboxPage = (
  db: Handle,
  appId: string,
  { kind, to, state }: OutboxPageFilter,
  { before, limit }: PageBefore,
) =>
  query(db).rows<ListedMessage>(
    `SELECT ${columns} FROM outbox
      WHERE app_id = $1 AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR recipient = $3)
        AND ($4::text IS NULL OR state = $4) AND ($5::bigint IS NULL OR id < $5)
      ORDER BY id DESC LIMIT $6`,
    [appId, kind, to, state, before, limit],
  );

/** Decrypts the text of a listed message. Throws `SealError`. */
export function openListed(
  vault: Vault,
  appId: string,
  message: StoredMessage,
): Pick<OutboxMessage, 'text' | 'code' | 'link'> {
  const { text, code, link } = openBody(message, vault, appId);
  return { text, code, link };
}

/** Locks a message for a change. Returns undefined if it does not exist. */
export const lockMessage = (tx: Handle, appId: string, id: number) =>
  query(tx).row<ListedMessage>(
    `SELECT ${columns} FROM outbox WHERE app_id = $1 AND id = $2 FOR UPDATE`,
    [appId, id],
  );

/** SMS state of an app: the number of messages, and suspended countries. */
export interface SmsState {
  /**
   * Messages in the current window of a day, which began at `since`. Null if there is no window.
   */
  day: { used: number; since: Date } | null;
  freeUsed: number;
  suspended: { prefix: string; openedAt: Date; openUntil: Date }[];
  /** Codes of the last hour, by country. */
  conversion: { prefix: string; sent: number; used: number }[];
}

const maxCountries = 100;

/** Reads the budgets and breakers of an app. */
export async function readSmsState(
  db: Handle,
  appId: string,
  { now, hourAgo }: { now: Date; hourAgo: Date },
): Promise<SmsState> {
  const budgets = await query(db).rows<{ scope: string; n: number; since: Date }>(
    `SELECT scope, n, since FROM send_budget WHERE app_id = $1 AND scope IN ('app', 'free')
      AND key = ''`,
    [appId],
  );
  const suspended = await query(db).rows<SmsState['suspended'][number]>(
    `SELECT prefix, opened_at AS "openedAt", open_until AS "openUntil" FROM sms_breaker
      WHERE app_id = $1 AND open_until > $2 ORDER BY prefix LIMIT $3`,
    [appId, now, maxCountries],
  );
  const conversion = await query(db).rows<SmsState['conversion'][number]>(
    `SELECT prefix, sum(sent)::bigint AS sent, sum(used)::bigint AS used FROM sms_conversion
      WHERE app_id = $1 AND bucket > $2 GROUP BY prefix ORDER BY 2 DESC, prefix LIMIT $3`,
    [appId, hourAgo, maxCountries],
  );
  const day = budgets.find(({ scope }) => scope === 'app');
  return {
    day: day ? { used: day.n, since: day.since } : null,
    freeUsed: budgets.find(({ scope }) => scope === 'free')?.n ?? 0,
    suspended,
    conversion,
  };
}

/** Filter of messages that were not sent. */
export interface UnsentFilter {
  kind?: OutboxMessage['kind'] | undefined;
  state: 'failed' | 'kept';
  reason?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/**
 * Lists a page of unsent messages, oldest first. `isLocked`: locks them until `tx` ends, and skips
 * messages that are already locked.
 */
export const listUnsent = (
  tx: Handle,
  appId: string,
  { kind, state, reason, from, to }: UnsentFilter,
  page: { after: number; limit: number; isLocked: boolean },
) =>
  query(tx).rows<ListedMessage>(
    `SELECT ${columns} FROM outbox
      WHERE app_id = $1 AND state = $2 AND ($3::text IS NULL OR kind = $3)
        AND ($4::text IS NULL OR ${reasonTextSql()} = $4)
        AND ($5::timestamptz IS NULL OR created_at >= $5)
          AND ($6::timestamptz IS NULL OR created_at < $6) AND id > $7
      ORDER BY id LIMIT $8 ${page.isLocked ? 'FOR UPDATE SKIP LOCKED' : ''}`,
    [appId, state, kind, reason, from, to, page.after, page.limit],
  );

/**
 * Makes locked messages wait again. If the time of a message is over, it waits until `expiresAt`.
 */
export const reopenMessages = (
  tx: Handle,
  appId: string,
  ids: readonly number[],
  { now, expiresAt }: { now: Date; expiresAt: Date },
) =>
  query(tx).run(
    `UPDATE outbox SET state = 'waiting', attempts = 0, reason = NULL, settled_at = NULL,
      provider_id = NULL, delivery = NULL, delivery_reason = NULL, delivered_at = NULL,
            expires_at = CASE WHEN expires_at <= $3 THEN $4 ELSE expires_at END
      WHERE app_id = $1 AND id = ANY($2::bigint[])`,
    [appId, `{${ids.join(',')}}`, now, expiresAt],
  );
