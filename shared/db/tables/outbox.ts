import { z } from 'zod';
import type { Vault } from '../../crypto.ts';
import type { Handle } from '../pool.ts';

/** Mail and SMS as they were sent, or would have been where no supplier is set (contract.md "Admin API"). */
export interface OutboxMessage {
  kind: 'sms' | 'mail';
  /** Phone number in international form, or mail address. */
  to: string;
  /** What it was for, such as `verification` or `passwordReset`. */
  type: string;
  text: string;
  code?: string | undefined;
  link?: string | undefined;
}

export interface SentMessage extends OutboxMessage {
  createdAt: Date;
}

/** The encrypted part: codes and links open accounts. */
const body = z.object({ text: z.string(), code: z.string().optional(), link: z.string().optional() });

interface OutboxRow {
  kind: OutboxMessage['kind'];
  recipient: string;
  type: string;
  body: Buffer;
  created_at: Date;
}

const sealContext = (appId: string, kind: string, to: string, type: string) =>
  `outbox ${appId} ${kind} ${type} ${to}`;

export async function insertOutboxMessage(
  db: Handle,
  vault: Vault,
  appId: string,
  message: OutboxMessage,
): Promise<void> {
  const { kind, to, type, text, code, link } = message;
  await db.query('INSERT INTO outbox (app_id, kind, recipient, type, body) VALUES ($1, $2, $3, $4, $5)', [
    appId,
    kind,
    to,
    type,
    vault.seal({ text, code, link }, sealContext(appId, kind, to, type)),
  ]);
}

export interface OutboxFilter {
  kind?: OutboxMessage['kind'] | undefined;
  to?: string | undefined;
  /** At most this many, the newest. */
  limit: number;
}

/** Messages of an app, newest first. */
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
  return rows.map((row) => ({
    kind: row.kind,
    to: row.recipient,
    type: row.type,
    ...body.parse(vault.open(row.body, sealContext(appId, row.kind, row.recipient, row.type))),
    createdAt: row.created_at,
  }));
}
