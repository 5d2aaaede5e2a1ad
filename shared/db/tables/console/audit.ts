import { sha256 } from '../../../crypto.ts';
import type { OperatorRole } from '../../../domain/admin/operator.ts';
import type { Json, JsonObject } from '../../../domain/json.ts';
import type { Handle } from '../../pool.ts';

/** Change by a caller of the admin API. */
export interface AuditEntry {
  id: number;
  at: Date;
  /** Null for a change that concerns no app. */
  appId: string | null;
  actorName: string;
  actorRole: OperatorRole;
  /** Token of the caller; null for CARILLON_ADMIN_TOKEN. */
  tokenId: number | null;
  address: string;
  requestId: string;
  /** `<noun>.<verb>`, such as `profile.put`. */
  action: string;
  /** Id or name of what was changed. */
  target: string;
  /** Changed members before and after; secrets are masked. */
  before: JsonObject | null;
  after: JsonObject | null;
}

/** Filters of the list. */
export interface AuditFilter {
  app?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

export async function insertAudit(tx: Handle, entry: Omit<AuditEntry, 'id' | 'at'>): Promise<void> {
  await tx.query(
    `INSERT INTO audit (app_id, actor_name, actor_role, token_id, address, request_id, action, target, before, after)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      entry.appId,
      entry.actorName,
      entry.actorRole,
      entry.tokenId,
      entry.address,
      entry.requestId,
      entry.action,
      entry.target,
      boundedMembers(entry.before),
      boundedMembers(entry.after),
    ],
  );
}

/** Most bytes of the JSON of `before` and of `after`: entries are kept for a year. */
const maxBytes = 4096;
/** Bytes from which one member is cut, and characters of it that are kept. */
const longMember = 512;
const keptChars = 200;

/**
 * Returns the members of an entry, cut to 4 KB. A long member is replaced by its beginning, its
 * length and its SHA-256; if that is not enough, all members are.
 */
function boundedMembers(members: JsonObject | null): JsonObject | null {
  if (members === null || bytesOf(members) <= maxBytes) return members;
  const short = Object.entries(members).map(([name, value]): [string, Json] => [
    name,
    bytesOf(value) > longMember ? cut(value) : value,
  ]);
  const bounded = { ...Object.fromEntries(short), ...digestOf(members) };
  return bytesOf(bounded) <= maxBytes ? bounded : cut(members);
}

const bytesOf = (value: Json): number => Buffer.byteLength(textOf(value));

/** Returns a value as JSON; a member without a value is written as null. */
const textOf = (value: Json | undefined): string => JSON.stringify(value) ?? 'null';

/** Returns the digest of a value's JSON, by which a copy can be recognised. */
function digestOf(value: Json): JsonObject {
  const text = textOf(value);
  return { cutBytes: Buffer.byteLength(text), sha256: sha256(text).toString('hex') };
}

const cut = (value: Json): JsonObject => ({
  begin: textOf(value).slice(0, keptChars).toWellFormed(),
  ...digestOf(value),
});

/**
 * Writes a change by a command that has the database and no token, such as `restore`. The actor has its name: `carillon restore`.
 */
export function insertCommand(
  tx: Handle,
  { command, ...entry }: Pick<AuditEntry, 'appId' | 'action' | 'target' | 'after'> & { command: string },
): Promise<void> {
  const actor = { actorName: `carillon ${command}`, actorRole: 'owner', tokenId: null } as const;
  return insertAudit(tx, { ...actor, address: '', requestId: '', before: null, ...entry });
}

/** Lists entries, the newest first. */
export async function listAudit(
  db: Handle,
  filter: AuditFilter,
  page: { before: number | null; limit: number },
): Promise<AuditEntry[]> {
  const { rows } = await db.query<AuditEntry>(
    `SELECT id, at, app_id AS "appId", actor_name AS "actorName", actor_role AS "actorRole", token_id AS "tokenId",
            address, request_id AS "requestId", action, target, before, after
       FROM audit
      WHERE ($1::bigint IS NULL OR id < $1) AND ($2::text IS NULL OR app_id = $2)
        AND ($3::text IS NULL OR actor_name = $3)
        AND ($4::text IS NULL OR action = $4 OR starts_with(action, $4 || '.'))
        AND ($5::text IS NULL OR target = $5)
        AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
      ORDER BY id DESC LIMIT $8`,
    [
      page.before,
      filter.app ?? null,
      filter.actor ?? null,
      filter.action ?? null,
      filter.target ?? null,
      filter.from ?? null,
      filter.to ?? null,
      page.limit,
    ],
  );
  return rows;
}

/** Deletes entries older than the retention; returns their number. */
export async function deleteOldAudit(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    'DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT $2)',
    [before, limit],
  );
  return rowCount ?? 0;
}
