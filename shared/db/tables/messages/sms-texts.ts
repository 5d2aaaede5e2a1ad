import type { TemplateType } from '../../../domain/messages/sms.ts';
import type { Handle } from '../../pool.ts';

export interface SmsSignature {
  name: string;
  isApproved: boolean;
  createdAt: Date;
  updatedAt: Date;
}

interface SignatureRow {
  name: string;
  is_approved: boolean;
  created_at: Date;
  updated_at: Date;
}

const toSignature = (row: SignatureRow): SmsSignature => ({
  name: row.name,
  isApproved: row.is_approved,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** Writes a signature; an approved one stays approved. Returns undefined for an unknown app. */
export async function putSignature(
  db: Handle,
  appId: string,
  name: string,
): Promise<SmsSignature | undefined> {
  const { rows } = await db.query<SignatureRow>(
    `INSERT INTO sms_signature (app_id, name) SELECT app_id, $2 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, name) DO UPDATE SET updated_at = excluded.updated_at RETURNING *`,
    [appId, name],
  );
  return rows.map(toSignature)[0];
}

/** Lists signatures, oldest first. */
export async function listSignatures(db: Handle, appId: string): Promise<SmsSignature[]> {
  const { rows } = await db.query<SignatureRow>(
    'SELECT * FROM sms_signature WHERE app_id = $1 ORDER BY created_at, name',
    [appId],
  );
  return rows.map(toSignature);
}

export async function findSignature(
  db: Handle,
  appId: string,
  name: string,
): Promise<SmsSignature | undefined> {
  const { rows } = await db.query<SignatureRow>(
    'SELECT * FROM sms_signature WHERE app_id = $1 AND name = $2',
    [appId, name],
  );
  return rows.map(toSignature)[0];
}

/** Finds the default among the approved signatures: `ownName`, else the oldest. */
export async function defaultSignature(
  db: Handle,
  appId: string,
  ownName: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT name FROM sms_signature WHERE app_id = $1 AND is_approved
      ORDER BY name = $2 DESC, created_at, name LIMIT 1`,
    [appId, ownName],
  );
  return rows[0]?.name;
}

export async function approveSignature(
  db: Handle,
  appId: string,
  name: string,
): Promise<SmsSignature | undefined> {
  const { rows } = await db.query<SignatureRow>(
    `UPDATE sms_signature SET is_approved = true, updated_at = now()
      WHERE app_id = $1 AND name = $2 RETURNING *`,
    [appId, name],
  );
  return rows.map(toSignature)[0];
}

export async function deleteSignature(db: Handle, appId: string, name: string): Promise<boolean> {
  const { rowCount } = await db.query('DELETE FROM sms_signature WHERE app_id = $1 AND name = $2', [
    appId,
    name,
  ]);
  return (rowCount ?? 0) > 0;
}

/** Text of a template and its kind of message. */
export interface TemplateText {
  type: TemplateType;
  text: string;
}

export interface SmsTemplate {
  name: string;
  /** In use. */
  active: TemplateText | undefined;
  /** Waits for approval, then replaces the active one. */
  pending: TemplateText | undefined;
  createdAt: Date;
  updatedAt: Date;
}

interface TemplateRow {
  name: string;
  type: TemplateType | null;
  text: string | null;
  pending_type: TemplateType | null;
  pending_text: string | null;
  created_at: Date;
  updated_at: Date;
}

const textOf = (type: TemplateType | null, text: string | null) =>
  type !== null && text !== null ? { type, text } : undefined;

const toTemplate = (row: TemplateRow): SmsTemplate => ({
  name: row.name,
  active: textOf(row.type, row.text),
  pending: textOf(row.pending_type, row.pending_text),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** Submits a text for review; the active one stays in use. */
export async function putTemplate(
  db: Handle,
  appId: string,
  name: string,
  { type, text }: TemplateText,
): Promise<SmsTemplate | undefined> {
  const { rows } = await db.query<TemplateRow>(
    `INSERT INTO sms_template (app_id, name, pending_type, pending_text)
     SELECT app_id, $2, $3, $4 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, name)
     DO UPDATE SET pending_type = excluded.pending_type, pending_text = excluded.pending_text, updated_at = excluded.updated_at
     RETURNING *`,
    [appId, name, type, text],
  );
  return rows.map(toTemplate)[0];
}

export async function listTemplates(db: Handle, appId: string): Promise<SmsTemplate[]> {
  const { rows } = await db.query<TemplateRow>(
    'SELECT * FROM sms_template WHERE app_id = $1 ORDER BY created_at, name',
    [appId],
  );
  return rows.map(toTemplate);
}

export async function findTemplate(
  db: Handle,
  appId: string,
  name: string,
): Promise<SmsTemplate | undefined> {
  const { rows } = await db.query<TemplateRow>('SELECT * FROM sms_template WHERE app_id = $1 AND name = $2', [
    appId,
    name,
  ]);
  return rows.map(toTemplate)[0];
}

/** Activates the pending text, if there is one. Returns undefined for an unknown template. */
export async function approveTemplate(
  db: Handle,
  appId: string,
  name: string,
): Promise<SmsTemplate | undefined> {
  const { rows } = await db.query<TemplateRow>(
    `UPDATE sms_template
        SET type = coalesce(pending_type, type), text = coalesce(pending_text, text),
            pending_type = NULL, pending_text = NULL, updated_at = now()
      WHERE app_id = $1 AND name = $2 RETURNING *`,
    [appId, name],
  );
  return rows.map(toTemplate)[0];
}

export async function deleteTemplate(db: Handle, appId: string, name: string): Promise<boolean> {
  const { rowCount } = await db.query('DELETE FROM sms_template WHERE app_id = $1 AND name = $2', [
    appId,
    name,
  ]);
  return (rowCount ?? 0) > 0;
}
