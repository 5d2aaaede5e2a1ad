import { sha256 } from '../../crypto.ts';
import { type ImportReport, importAction, importReport } from '../../domain/admin/import-report.ts';
import type { OperatorRole } from '../../domain/admin/operator.ts';
import { storedFormsOfToken } from '../../domain/installations/identity.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { Handle } from '../pool.ts';
import { lockName, type PageBefore, query, sweepOf } from '../query.ts';
import { lockAppRow, switchOn } from './apps.ts';

/** Session of the console. `tokenId` is null for CARILLON_ADMIN_TOKEN. */
export interface ConsoleSession {
  id: number;
  tokenId: number | null;
  /** Name, role and apps of the token. Null without a token. */
  name: string | null;
  role: OperatorRole | null;
  apps: string[] | null;
  tokenExpiresAt: Date | null;
  /** End of a session by OpenID Connect. */
  endsAt: Date | null;
  /** True if the person logged in by OpenID Connect. */
  isOidc: boolean;
  address: string;
  agent: string;
  createdAt: Date;
  seenAt: Date;
}

/** Times that limit the validity of a session. */
export interface SessionBounds {
  now: Date;
  seenAfter: Date;
  createdAfter: Date;
}

/** Maximum sessions of one token. A further session replaces the one that has been idle longest. */
const maxSessionsOfToken = 20;
const maxCodesOfToken = 10;

const sessionColumns = `s.id, s.token_id AS "tokenId", t.name, t.role, t.apps, t.expires_at AS "tokenExpiresAt",
  s.ends_at AS "endsAt", t.subject IS NOT NULL AS "isOidc", s.address, s.agent, s.created_at AS "createdAt", s.seen_at AS "seenAt"`;

/** Condition of valid sessions, with the parameters $1 to $4 of `validity`. */
const isValid = `s.admin_mark = ANY($1) AND s.seen_at > $2 AND s.created_at > $3
  AND (t.expires_at IS NULL OR t.expires_at > $4) AND (s.ends_at IS NULL OR s.ends_at > $4)`;

/** Limits of valid sessions, and the digests of the current CARILLON_ADMIN_TOKEN. */
type ValidSessions = SessionBounds & { marks: readonly Buffer[] };
const validity = ({ marks, seenAfter, createdAfter, now }: ValidSessions): unknown[] => [
  ...[marks, seenAfter, createdAfter, now],
];

interface NewSession {
  digest: Buffer;
  adminMark: Buffer;
  tokenId: number | null;
  address: string;
  agent: string;
  now: Date;
  /** End of a session by OpenID Connect. */
  endsAt: Date | null;
}

/**
 * Locks the sessions and login codes of a token until `tx` ends, so that their limits are exact.
 * Locks the token against deletion. Returns false if the token was deleted.
 */
async function lockLogins(tx: Handle, tokenId: number | null): Promise<boolean> {
  await lockName(tx, `console logins ${tokenId ?? 'admin'}`);
  const text = 'SELECT FROM console_token WHERE id = $1 FOR KEY SHARE';
  return tokenId === null || query(tx).hasRows(text, [tokenId]);
}

/** Inserts a session. Returns undefined if its token was deleted. */
export async function insertSession(tx: Handle, session: NewSession): Promise<number | undefined> {
  if (!(await lockLogins(tx, session.tokenId))) return undefined;
  await tx.query(
    `DELETE FROM console_session WHERE id IN (
       SELECT id FROM console_session WHERE token_id IS NOT DISTINCT FROM $2
        ORDER BY seen_at DESC, id DESC OFFSET $1)`,
    [maxSessionsOfToken - 1, session.tokenId],
  );
  return query(tx).number(
    `INSERT INTO console_session (digest, admin_mark, token_id, address, agent, created_at, seen_at,
       ends_at)
     VALUES ($1, $2, $3, $4, $5, $6, $6, $7) RETURNING id`,
    [
      session.digest,
      session.adminMark,
      session.tokenId,
      session.address,
      session.agent,
      session.now,
      session.endsAt,
    ],
  );
}

/** Finds a valid session by the digest of its cookie. */
export const findSession = (db: Handle, digest: Buffer, valid: ValidSessions) =>
  query(db).row<ConsoleSession>(
    `SELECT ${sessionColumns} FROM console_session s LEFT JOIN console_token t ON t.id = s.token_id
      WHERE s.digest = $5 AND ${isValid}`,
    [...validity(valid), digest],
  );

/** Rights of the caller of the admin API. */
type Rights = Pick<ConsoleToken, 'role' | 'apps'>;

/** Condition of tokens with these rights. Two sets of apps are equal in any order. */
const hasRights = (role: string, apps: string) =>
  `(t.role = ${role} AND (t.apps IS NULL) = (${apps}::text[] IS NULL)
    AND (t.apps IS NULL OR (t.apps @> ${apps}::text[] AND t.apps <@ ${apps}::text[])))`;

/** Returns whether a session is valid and has these rights, by its id. */
export const hasSession = (
  db: Handle,
  { id, role, apps }: Rights & { id: number },
  valid: ValidSessions,
) =>
  query(db).hasRows(
    `SELECT FROM console_session s LEFT JOIN console_token t ON t.id = s.token_id WHERE s.id = $5
      AND ${isValid} AND (t.id IS NULL OR ${hasRights('$6', '$7')})`,
    [...validity(valid), id, role, apps],
  );

export const touchSession = (db: Handle, id: number, now: Date) =>
  query(db).run('UPDATE console_session SET seen_at = $2 WHERE id = $1', [id, now]);

/** Lists valid sessions, newest first. */
export const listSessions = (db: Handle, page: PageBefore, valid: ValidSessions) =>
  query(db).rows<ConsoleSession>(
    `SELECT ${sessionColumns} FROM console_session s LEFT JOIN console_token t ON t.id = s.token_id
      WHERE ${isValid} AND ($5::bigint IS NULL OR s.id < $5) ORDER BY s.id DESC LIMIT $6`,
    [...validity(valid), page.before, page.limit],
  );

/** Deletes a session. Returns false if no session has this id. */
export const deleteSession = (tx: Handle, id: number) =>
  query(tx).hasRows('DELETE FROM console_session WHERE id = $1', [id]);

/** Deletes ended sessions and login codes. */
export async function deleteEndedSessions(db: Handle, bounds: SessionBounds): Promise<void> {
  const oldest = [bounds.seenAfter, bounds.createdAfter];
  await db.query(
    'DELETE FROM console_session WHERE seen_at <= $1 OR created_at <= $2 OR ends_at <= $3',
    [...oldest, bounds.now],
  );
  await db.query('DELETE FROM console_login_code WHERE expires_at <= $1', [bounds.now]);
}

/**
 * Stores a login code. If its token has too many codes, replaces the oldest ones. Returns false if
 * the token was deleted.
 */
export async function insertLoginCode(
  tx: Handle,
  code: { digest: Buffer; adminMark: Buffer; tokenId: number | null; expiresAt: Date },
): Promise<boolean> {
  if (!(await lockLogins(tx, code.tokenId))) return false;
  await tx.query(
    `DELETE FROM console_login_code WHERE digest IN (
       SELECT digest FROM console_login_code WHERE token_id IS NOT DISTINCT FROM $2
        ORDER BY expires_at DESC OFFSET $1)`,
    [maxCodesOfToken - 1, code.tokenId],
  );
  await tx.query(
    'INSERT INTO console_login_code (digest, admin_mark, token_id, expires_at) VALUES ($1, $2, $3, $4)',
    [code.digest, code.adminMark, code.tokenId, code.expiresAt],
  );
  return true;
}

/**
 * Uses up a login code. Only one of several concurrent calls gets it. Returns undefined for an
 * invalid code.
 */
export async function spendLoginCode(
  tx: Handle,
  digest: Buffer,
  { marks, now }: { marks: readonly Buffer[]; now: Date },
): Promise<{ tokenId: number | null } | undefined> {
  // The deletion of a token locks in the same order: the token before its codes.
  await tx.query(
    `SELECT FROM console_token WHERE id = (
       SELECT token_id FROM console_login_code WHERE digest = $1) FOR KEY SHARE`,
    [digest],
  );
  return query(tx).row(
    `DELETE FROM console_login_code WHERE digest = $1 AND admin_mark = ANY($2) AND expires_at > $3
     RETURNING token_id AS "tokenId"`,
    [digest, marks, now],
  );
}

/** A token of the admin API, without its secret. */
export interface ConsoleToken {
  id: number;
  name: string;
  role: OperatorRole;
  apps: string[] | null;
  createdBy: string;
  createdAt: Date;
  expiresAt: Date | null;
  /** When it was last used, to the minute. Null before the first use. */
  usedAt: Date | null;
  /** True for a person who logs in by OpenID Connect, who has no token. */
  isOidc: boolean;
  mail: string | null;
}

const tokenColumns = `id, name, role, apps, created_by AS "createdBy", created_at AS "createdAt",
  expires_at AS "expiresAt", used_at AS "usedAt", subject IS NOT NULL AS "isOidc", mail`;

/** Minimum interval at which a use is saved. */
const usedEveryMs = 60_000;

export const insertToken = (
  tx: Handle,
  token: Omit<ConsoleToken, 'id' | 'usedAt' | 'isOidc' | 'mail'> & { digest: Buffer },
) =>
  query(tx).one<ConsoleToken>(
    `INSERT INTO console_token (digest, name, role, apps, created_by, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${tokenColumns}`,
    [
      token.digest,
      token.name,
      token.role,
      token.apps,
      token.createdBy,
      token.createdAt,
      token.expiresAt,
    ],
  );

/** Finds a token that has not expired by the digest of its secret. */
export const findToken = (db: Handle, digest: Buffer, now: Date) =>
  query(db).row<ConsoleToken>(
    `SELECT ${tokenColumns} FROM console_token WHERE digest = $1
      AND (expires_at IS NULL OR expires_at > $2)`,
    [digest, now],
  );

/** Returns whether a token exists, has not expired and has these rights. */
export const hasToken = (db: Handle, { id, role, apps }: Rights & { id: number }, now: Date) =>
  query(db).hasRows(
    `SELECT FROM console_token t WHERE id = $1 AND (expires_at IS NULL OR expires_at > $2)
      AND ${hasRights('$3', '$4')}`,
    [id, now, role, apps],
  );

/** Saves that a token is used, at most once a minute. */
export async function touchToken(
  db: Handle,
  { id, usedAt }: ConsoleToken,
  now: Date,
): Promise<void> {
  if (usedAt !== null && now.getTime() - usedAt.getTime() < usedEveryMs) return;
  await db.query('UPDATE console_token SET used_at = $2 WHERE id = $1', [id, now]);
}

/** Lists tokens, including expired ones, newest first. */
export const listTokens = (db: Handle, page: PageBefore) =>
  query(db).rows<ConsoleToken>(
    `SELECT ${tokenColumns} FROM console_token WHERE $1::bigint IS NULL OR id < $1 ORDER BY id DESC
      LIMIT $2`,
    [page.before, page.limit],
  );

/** Counts tokens. No other transaction that counts them adds one until `tx` ends. */
export async function countTokensLocked(tx: Handle): Promise<number> {
  await lockName(tx, 'console tokens');
  return query(tx).number('SELECT count(*) AS n FROM console_token WHERE subject IS NULL');
}

/** Counts tokens and the people who log in by OpenID Connect. */
export const countCallers = (db: Handle) =>
  query(db).number('SELECT count(*) AS n FROM console_token');

/** Maximum people. A further person replaces the one whose last login is the oldest. */
const maxPeople = 1000;

/** Person who logs in by OpenID Connect. */
interface NewPerson {
  /** Issuer and subject. */
  subject: string;
  name: string;
  mail: string | null;
  role: OperatorRole;
  apps: string[] | null;
  /** Digest of a secret that nobody has. */
  digest: Buffer;
  now: Date;
}

/** Saves a person with the rights of this login. Returns the id. */
export async function savePerson(tx: Handle, person: NewPerson): Promise<number> {
  const { subject, name, mail, role, apps, digest, now } = person;
  // Another login waits, so that it counts this person.
  await lockName(tx, 'console people');
  await tx.query(
    `DELETE FROM console_token WHERE id IN (
       SELECT id FROM console_token WHERE subject IS NOT NULL AND subject <> $2
        ORDER BY used_at DESC, id DESC OFFSET $1)`,
    [maxPeople - 1, subject],
  );
  return query(tx).number(
    `INSERT INTO console_token (digest, name, role, apps, created_by, created_at, used_at, subject,
       mail)
     VALUES ($1, $2, $3, $4, 'OpenID Connect', $5, $5, $6, $7)
     ON CONFLICT (subject) DO UPDATE SET name = excluded.name, role = excluded.role,
       apps = excluded.apps, mail = excluded.mail, used_at = excluded.used_at
     RETURNING id`,
    [digest, name, role, apps, now, subject, mail],
  );
}

/** Lists the names and mail addresses of the people who log in by OpenID Connect. */
export const listPeopleNames = (db: Handle) =>
  query(db).rows<{ name: string; mail: string }>(
    'SELECT name, mail FROM console_token WHERE subject IS NOT NULL AND mail IS NOT NULL LIMIT $1',
    [maxPeople],
  );

/**
 * Deletes a token with its sessions and login codes. Needs a transaction that also writes the
 * audit.
 */
export const deleteToken = (tx: Handle, id: number) =>
  query(tx).row<ConsoleToken>(`DELETE FROM console_token WHERE id = $1 RETURNING ${tokenColumns}`, [
    id,
  ]);

/** Counts the tokens that are valid, that expire within 30 days, and that have expired. */
export const countTokenStates = (db: Handle) =>
  query(db).one<{
    valid: number;
    ending: number;
    expired: number;
  }>(`SELECT count(*) FILTER (WHERE expires_at IS NULL OR expires_at > now()) AS valid,
            count(*) FILTER (WHERE expires_at > now()
            AND expires_at <= now() + interval '30 days') AS ending,
            count(*) FILTER (WHERE expires_at <= now()) AS expired
       FROM console_token WHERE subject IS NULL`);

/** Kinds of saved items: what people store to send it later. */
export type SavedKind = 'push-template' | 'audience' | 'test-device';

export interface SavedItem {
  name: string;
  content: Json;
  updatedAt: Date;
  updatedBy: string;
}

interface ItemKey {
  appId: string;
  kind: SavedKind;
  name: string;
}

const savedItemColumns = `name, content, updated_at AS "updatedAt", updated_by AS "updatedBy"`;

/** Lists the items of a kind by name. A limit bounds their number. */
export const listSavedItems = (db: Handle, appId: string, kind: SavedKind) =>
  query(db).rows<SavedItem>(
    `SELECT ${savedItemColumns} FROM saved_item WHERE app_id = $1 AND kind = $2 ORDER BY name`,
    [appId, kind],
  );

export const findSavedItem = (db: Handle, { appId, kind, name }: ItemKey) =>
  query(db).row<SavedItem>(
    `SELECT ${savedItemColumns} FROM saved_item WHERE app_id = $1 AND kind = $2 AND name = $3`,
    [appId, kind, name],
  );

/**
 * Locks the items of an app until `tx` ends, so that their limit is exact. Counts the items of a
 * kind without the named one. Returns undefined if the app does not exist.
 */
export async function countOtherItems(
  tx: Handle,
  { appId, kind, name }: ItemKey,
): Promise<number | undefined> {
  if (!(await lockAppRow(tx, appId))) return undefined;
  return query(tx).number(
    'SELECT count(*) AS n FROM saved_item WHERE app_id = $1 AND kind = $2 AND name <> $3',
    [appId, kind, name],
  );
}

/** Creates or replaces an item. */
export const putSavedItem = (
  tx: Handle,
  { appId, kind, name }: ItemKey,
  { content, updatedBy }: Pick<SavedItem, 'content' | 'updatedBy'>,
) =>
  query(tx).one<SavedItem>(
    `INSERT INTO saved_item (app_id, kind, name, content, updated_by)
      VALUES ($1, $2, $3, $4::jsonb, $5)
     ON CONFLICT (app_id, kind, name)
     DO UPDATE SET content = excluded.content, updated_by = excluded.updated_by,
       updated_at = excluded.updated_at
     RETURNING ${savedItemColumns}`,
    [appId, kind, name, JSON.stringify(content), updatedBy],
  );

/** Deletes an item, and returns it. Returns undefined if it does not exist. */
export const deleteSavedItem = (tx: Handle, { appId, kind, name }: ItemKey) =>
  query(tx).row<SavedItem>(
    `DELETE FROM saved_item WHERE app_id = $1 AND kind = $2 AND name = $3
      RETURNING ${savedItemColumns}`,
    [appId, kind, name],
  );

/** An object that a search found. */
export interface Hit {
  kind: 'app' | 'push' | 'installation' | 'user';
  appId: string;
  id: string;
  title: string;
}

const maxOfKind = 10;

/** Finds apps by id, or by a part of the name. */
export const searchApps = (db: Handle, apps: readonly string[] | null, q: string) =>
  query(db).rows<Hit>(
    `SELECT 'app' AS kind, app_id AS "appId", app_id AS id, name AS title FROM app
      WHERE ($1::text[] IS NULL OR app_id = ANY($1))
        AND (app_id = $2 OR position(lower($2) IN lower(name)) > 0)
      ORDER BY app_id = $2 DESC, name, app_id LIMIT ${maxOfKind}`,
    [apps, q],
  );

/** Finds pushes by objectId or notification_id. */
export const searchPushes = (db: Handle, apps: readonly string[], q: string) =>
  query(db).rows<Hit>(
    `SELECT 'push' AS kind, app_id AS "appId", object_id AS id, state AS title FROM notification
      WHERE app_id = ANY($1) AND (object_id = $2 OR notification_id = $2)
      ORDER BY id DESC LIMIT ${maxOfKind}`,
    [apps, q],
  );

/** Finds installations by any of their ids. */
export const searchInstallations = (db: Handle, apps: readonly string[], q: string) =>
  query(db).rows<Hit>(
    `SELECT 'installation' AS kind, app_id AS "appId", object_id AS id,
            concat_ws(' ', device_type, vendor_name) AS title FROM installation
      WHERE app_id = ANY($1)
        AND (object_id = $2 OR installation_id = $2 OR device_token = ANY($3)
          OR registration_id = $2)
      LIMIT ${maxOfKind}`,
    [apps, q, storedFormsOfToken(q)],
  );

/** Finds users by objectId, name, address or number. */
export const searchUsers = (db: Handle, apps: readonly string[], q: string) =>
  query(db).rows<Hit>(
    `SELECT 'user' AS kind, app_id AS "appId", object_id AS id, username AS title FROM app_user
      WHERE app_id = ANY($1)
        AND (object_id = $2 OR username = $2 OR email = $2 OR mobile_phone_number = $3)
      LIMIT ${maxOfKind}`,
    [apps, q, q.replaceAll(/[ -]/g, '')],
  );

/** A change made through the admin API. */
export interface AuditEntry {
  id: number;
  at: Date;
  /** Null if the change concerns no app. */
  appId: string | null;
  actorName: string;
  actorRole: OperatorRole;
  /** Token of the caller. Null for CARILLON_ADMIN_TOKEN. */
  tokenId: number | null;
  address: string;
  requestId: string;
  /** `<noun>.<verb>`, such as `profile.put`. */
  action: string;
  /** Id or name of the changed object. */
  target: string;
  /** Changed members before and after the change. Secrets are masked. */
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

export const insertAudit = (tx: Handle, entry: Omit<AuditEntry, 'id' | 'at'>) =>
  query(tx).run(
    `INSERT INTO audit (app_id, actor_name, actor_role, token_id, address, request_id, action,
      target, before, after)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      ...[
        entry.appId,
        entry.actorName,
        entry.actorRole,
        entry.tokenId,
        entry.address,
        entry.requestId,
      ],
      ...[entry.action, entry.target, boundedMembers(entry.before), boundedMembers(entry.after)],
    ],
  );

/** Maximum bytes of `before` and `after` as JSON. Entries are kept for a year. */
const maxBytes = 4096;
/** Size in bytes from which a member is cut, and the number of its characters that remain. */
const longMember = 512;
const keptChars = 200;

/**
 * Returns the members of an entry, cut to 4 KB. A long member is replaced by its beginning, its
 * length and its SHA-256. If the entry is still too large, all members are replaced.
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

/** Returns a value as JSON. A member without a value becomes null. */
const textOf = (value: Json | undefined): string => JSON.stringify(value) ?? 'null';

/** Returns the digest of a value's JSON, so that a copy of the value can be recognised. */
function digestOf(value: Json): JsonObject {
  const text = textOf(value);
  return { cutBytes: Buffer.byteLength(text), sha256: sha256(text).toString('hex') };
}

const cut = (value: Json): JsonObject => ({
  begin: textOf(value).slice(0, keptChars).toWellFormed(),
  ...digestOf(value),
});

/**
 * Saves a change that was not made through the admin API. `by` is a command, such as `restore`, or
 * a part of the service.
 */
export function insertOwnAudit(
  tx: Handle,
  {
    by,
    ...entry
  }: Pick<AuditEntry, 'appId' | 'action' | 'target' | 'after'> &
    Partial<Pick<AuditEntry, 'actorRole' | 'before'>> & { by: string },
): Promise<void> {
  const actor = { actorName: `carillon ${by}`, actorRole: 'owner', tokenId: null } as const;
  return insertAudit(tx, { ...actor, address: '', requestId: '', before: null, ...entry });
}

/** Lists entries, newest first. */
export const listAudit = (
  db: Handle,
  { app, actor, action, target, from, to }: AuditFilter,
  page: PageBefore,
) =>
  query(db).rows<AuditEntry>(
    `SELECT id, at, app_id AS "appId", actor_name AS "actorName", actor_role AS "actorRole",
            token_id AS "tokenId", address, request_id AS "requestId", action, target, before, after
       FROM audit
      WHERE ($1::bigint IS NULL OR id < $1) AND ($2::text IS NULL OR app_id = $2)
        AND ($3::text IS NULL OR actor_name = $3)
        AND ($4::text IS NULL OR action = $4 OR starts_with(action, $4 || '.'))
        AND ($5::text IS NULL OR target = $5)
        AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
      ORDER BY id DESC LIMIT $8`,
    [page.before, app, actor, action, target, from, to, page.limit],
  );

export const deleteOldAudit = sweepOf({ table: 'audit', key: ['id'], column: 'at' });

/** Writes an import into the audit of its app. */
export const recordImport = (db: Handle, appId: string, report: ImportReport): Promise<void> =>
  insertOwnAudit(db, {
    by: 'import',
    appId,
    action: importAction,
    target: appId,
    after: report,
  });

/**
 * Allows strict user queries to the clients of an app with imported users, as LeanCloud
 * did. Does nothing if an owner has set the option. Writes a change into the audit.
 */
export async function allowStrictQueries(tx: Handle, appId: string): Promise<void> {
  if (!(await switchOn(tx, appId, 'allowStrictUserQuery'))) return;
  const after = { options: { allowStrictUserQuery: true } };
  await insertOwnAudit(tx, { by: 'import', appId, action: 'app.update', target: appId, after });
}

/** Returns the newest import of an app, as long as the audit contains it. */
export async function findLastImport(
  db: Handle,
  appId: string,
): Promise<(ImportReport & { at: Date }) | undefined> {
  const page = { before: null, limit: 1 };
  const [entry] = await listAudit(db, { app: appId, action: importAction }, page);
  const report = importReport.safeParse(entry?.after);
  return entry && report.success ? { ...report.data, at: entry.at } : undefined;
}
