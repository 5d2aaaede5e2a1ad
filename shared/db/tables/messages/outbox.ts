import { z } from 'zod';
import type { Vault } from '../../../crypto.ts';
import { sealContexts } from '../../../domain/apps/seal-contexts.ts';
import type { Handle } from '../../pool.ts';

/** Mail or SMS of the outbox; without a provider it stays there (protocol/admin-api.md#outbox). */
export interface OutboxMessage {
  kind: 'sms' | 'mail';
  /** Phone number in international form, or mail address. */
  to: string;
  /** Purpose, such as `general` or `resetPassword`. */
  type: string;
  text: string;
  code?: string | undefined;
  link?: string | undefined;
  /** Parts for the provider only. */
  mail?: MailParts | undefined;
  sms?: SmsParts | undefined;
}

const mailParts = z.object({
  /** Display name of the sender: the app's. */
  fromName: z.string(),
  subject: z.string(),
  html: z.string().optional(),
});
export type MailParts = z.infer<typeof mailParts>;

const smsParts = z.object({
  isVoice: z.boolean(),
  sign: z.string(),
  template: z.string().optional(),
  variables: z.record(z.string(), z.string()),
});
export type SmsParts = z.infer<typeof smsParts>;

/** Message of the outbox, as the operator sees it. */
export interface SentMessage extends Omit<OutboxMessage, 'mail' | 'sms'> {
  createdAt: Date;
}

/** Encrypted part, since codes and links give access to accounts. */
const body = z.object({
  text: z.string(),
  code: z.string().optional(),
  link: z.string().optional(),
  mail: mailParts.optional(),
  sms: smsParts.optional(),
});

interface OutboxRow {
  kind: OutboxMessage['kind'];
  recipient: string;
  type: string;
  body: Buffer;
  created_at: Date;
}

/** Inserts a message that is valid until `expiresAt` (by default a day). Returns its id. */
export async function insertOutboxMessage(
  db: Handle,
  vault: Vault,
  appId: string,
  message: OutboxMessage & { expiresAt?: Date },
): Promise<number> {
  const { kind, to, type, expiresAt, text, code, link, mail, sms } = message;
  const { rows } = await db.query<{ id: number }>(
    `INSERT INTO outbox (app_id, kind, recipient, type, body, expires_at)
     VALUES ($1, $2, $3, $4, $5, coalesce($6, now() + interval '1 day')) RETURNING id`,
    [
      appId,
      kind,
      to,
      type,
      vault.seal({ text, code, link, mail, sms }, sealContexts.message({ appId, kind, to, type })),
      expiresAt ?? null,
    ],
  );
  const id = rows[0]?.id;
  if (id === undefined) throw new Error('the database returned no row');
  return id;
}

/** Filter of a list of messages. */
export interface OutboxFilter {
  kind?: OutboxMessage['kind'] | undefined;
  to?: string | undefined;
  /** Number of messages, the newest first. */
  limit: number;
}

/** Lists messages of an app, newest first. */
export async function listOutboxMessages(
  db: Handle,
  vault: Vault,
  appId: string,
  filter: OutboxFilter,
): Promise<SentMessage[]> {
  const { rows } = await db.query<OutboxRow>(
    `SELECT kind, recipient, type, body, created_at FROM outbox
      WHERE app_id = $1 AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR recipient = $3)
      ORDER BY id DESC LIMIT $4`,
    [appId, filter.kind ?? null, filter.to ?? null, filter.limit],
  );
  return rows.map((row) => {
    const { mail, sms, ...shown } = openBody(row, vault, appId);
    return {
      kind: row.kind,
      to: row.recipient,
      type: row.type,
      ...shown,
      createdAt: row.created_at,
    };
  });
}

/** Decrypts the body of a message. Throws `SealError`. */
export const openBody = (row: Omit<OutboxRow, 'created_at'>, vault: Vault, appId: string) =>
  body.parse(
    vault.open(row.body, sealContexts.message({ appId, kind: row.kind, to: row.recipient, type: row.type })),
  );

/** Message that waits for its provider. */
export interface WaitingMessage extends OutboxMessage {
  /** Tries so far. */
  attempts: number;
  expiresAt: Date;
  /** Constant over all tries. */
  createdAt: Date;
}

/** Finds a waiting message; returns undefined when it has ended or its app was deleted. */
export async function findWaitingMessage(
  db: Handle,
  vault: Vault,
  appId: string,
  id: number,
): Promise<WaitingMessage | undefined> {
  const { rows } = await db.query<OutboxRow & { attempts: number; expires_at: Date }>(
    `SELECT kind, recipient, type, body, attempts, expires_at, created_at FROM outbox
      WHERE app_id = $1 AND id = $2 AND state = 'waiting'`,
    [appId, id],
  );
  const row = rows[0];
  if (!row) return undefined;
  return {
    kind: row.kind,
    to: row.recipient,
    type: row.type,
    ...openBody(row, vault, appId),
    attempts: row.attempts,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
  };
}

/** Final result of a message. `reason` comes from a bounded set and contains no personal data. */
export interface MessageResult {
  state: 'sent' | 'kept' | 'failed';
  reason: string | null;
}

/** Writes the final result. Returns false when the message had ended already. */
export async function settleMessage(
  tx: Handle,
  appId: string,
  id: number,
  { state, reason }: MessageResult,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE outbox SET state = $3, reason = $4, attempts = attempts + ($3 <> 'kept')::int, settled_at = now()
      WHERE app_id = $1 AND id = $2 AND state = 'waiting'`,
    [appId, id, state, reason],
  );
  return (rowCount ?? 0) > 0;
}

/** Counts a try that will be repeated. Returns false when the message had ended already. */
export async function countTry(tx: Handle, appId: string, id: number, reason: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE outbox SET attempts = attempts + 1, reason = $3
      WHERE app_id = $1 AND id = $2 AND state = 'waiting'`,
    [appId, id, reason],
  );
  return (rowCount ?? 0) > 0;
}

/** Deletes messages from before `before`. Returns their number. */
export async function deleteOldMessages(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, id FROM outbox WHERE created_at < $1 ORDER BY created_at LIMIT $2)
     DELETE FROM outbox o USING old WHERE o.app_id = old.app_id AND o.id = old.id`,
    [before, limit],
  );
  return rowCount ?? 0;
}
