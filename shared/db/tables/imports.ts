import { comparedToken } from '../../domain/installations/identity.ts';
import type { InstallationDraft } from '../../domain/installations/installation.ts';
import type { RelationName, RoleDraft } from '../../domain/roles/role.ts';
import type { Identity } from '../../domain/users/auth-data.ts';
import type { SessionSecret, UserDraft } from '../../domain/users/user.ts';
import { type CopyRow, type CopyValue, copyIn, RowEncoder } from '../copy.ts';
import { isFailedCopyToWorker, violatedConstraint } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { listsOf, query } from '../query.ts';
import { draftColumns, draftValues } from './installations.ts';
import { countRolesLocked } from './roles.ts';
import type { ClassTable } from './selection.ts';
import { userDraftColumns, userDraftValues } from './users.ts';

/**
 * A staged row that was not written, and the reason: it exists, or it conflicts with another row.
 */
export interface Unwritten {
  line: number;
  objectId: string;
  isThere: boolean;
  /** True if the row exists, but the file contains a later update of it. */
  isNewer: boolean;
  /** Public ids of the conflicting rows by member. Empty if the row exists. */
  holders: Record<string, string>;
  /** Another reason, for the report. */
  message?: string;
}

/** Result of a batch. */
export interface Merged {
  written: number;
  unwritten: Unwritten[];
}

/**
 * Temporary table of staged rows, and the table to which they are written. All names are constants,
 * never text of a request.
 */
interface Stage {
  name: string;
  table: string;
  /** Table to which a dry run writes. It finds duplicates within the file. */
  shadow: string;
  columns: readonly string[];
  /** Unique columns in addition to `object_id`, with the names of their members. */
  unique: Readonly<Record<string, string>>;
}

/**
 * Creates the temporary tables of a stage on this connection. `extra`: additional columns of the
 * stage.
 */
async function openStage(
  connection: Handle,
  stage: Stage,
  extra: readonly string[] = [],
): Promise<void> {
  const { name, table, shadow, columns, unique } = stage;
  const selected = ['0::bigint AS line', ...extra, ...columns];
  await connection.query(
    `CREATE TEMP TABLE ${name} ON COMMIT DELETE ROWS AS SELECT ${selected.join(', ')}
      FROM ${table} WITH NO DATA`,
  );
  await connection.query(
    `CREATE TEMP TABLE ${shadow} (LIKE ${table} INCLUDING DEFAULTS INCLUDING IDENTITY)`,
  );
  for (const column of ['object_id', ...Object.keys(unique)])
    await connection.query(`CREATE UNIQUE INDEX ON ${shadow} (app_id, ${column})`);
}

/**
 * Writes the staged rows without a conflict to a table in line order, and deletes them from the
 * stage. Returns their number.
 */
const insertStaged = (tx: Handle, appId: string, { name, columns }: Stage, table: string) =>
  query(tx).rowCount(
    `WITH written AS (
       INSERT INTO ${table} (app_id, ${columns.join(', ')})
       SELECT $1, ${columns.join(', ')} FROM ${name} ORDER BY line
       ON CONFLICT DO NOTHING RETURNING object_id)
     DELETE FROM ${name} s USING written w WHERE s.object_id = w.object_id`,
    [appId],
  );

/** Reads the staged rows in line order, with the rows of a table that conflict with them. */
function unwrittenRows(tx: Handle, appId: string, { name, unique }: Stage, table: string) {
  const holders = Object.entries(unique).map(
    ([column, member]) =>
      `'${member}', (SELECT object_id FROM ${table} t WHERE t.app_id = $1
        AND t.${column} = s.${column})`,
  );
  // Existing rows need no search for conflicts. LIMIT 1 prevents a plan that reads all rows of the
  // app.
  return query(tx).rows<Unwritten>(
    `SELECT s.line, s.object_id AS "objectId", i.object_id IS NOT NULL AS "isThere",
            coalesce(i.updated_at < s.updated_at, false) AS "isNewer",
            CASE WHEN i.object_id IS NULL
            THEN jsonb_strip_nulls(jsonb_build_object(${holders.join(', ')}))
                 ELSE '{}' END AS holders
       FROM ${name} s LEFT JOIN LATERAL (
         SELECT object_id, updated_at FROM ${table} t WHERE t.app_id = $1
           AND t.object_id = s.object_id LIMIT 1) i ON true
      ORDER BY s.line`,
    [appId],
  );
}

/**
 * Finds the staged rows that exist or conflict with another row, and deletes them from the stage.
 */
async function takeUnwritten(tx: Handle, appId: string, stage: Stage): Promise<Unwritten[]> {
  const rows = await unwrittenRows(tx, appId, stage, stage.table);
  const kept = rows.filter(({ isThere, holders }) => isThere || Object.keys(holders).length > 0);
  await unstage(tx, stage, kept);
  return kept;
}

/** Deletes reported rows from the stage. */
async function unstage(tx: Handle, { name }: Stage, rows: readonly Unwritten[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(`DELETE FROM ${name} WHERE line = ANY($1::bigint[])`, [
    rows.map(({ line }) => line),
  ]);
}

/** A validated installation of an export. Times are ISO 8601. */
export interface ImportedInstallation {
  objectId: string;
  draft: InstallationDraft;
  createdAt: string;
  updatedAt: string;
  importedAt: string;
}

/** An installation of an import that is ready to be written. */
interface StagedInstallation {
  /** Line of its file. */
  line: number;
  objectId: string;
  /** Hashes of the values in its unique columns. */
  keyHashes: number[];
  /** Its app, and the values of `columns`. */
  row: CopyRow;
}

const installations: Stage = {
  name: 'import_installation',
  table: 'installation',
  shadow: 'import_seen_installation',
  columns: ['object_id', 'created_at', 'updated_at', 'imported_at', ...draftColumns],
  unique: { device_token: 'deviceToken', installation_id: 'installationId' },
};

/** Creates the temporary tables of an import on this connection. */
export const openInstallationStage = (connection: Handle) => openStage(connection, installations);

/** Encodes the installations of an app while the previous batch is written. */
export class InstallationEncoder {
  readonly #appId: string;
  readonly #rows = new RowEncoder();

  constructor(appId: string) {
    this.#appId = appId;
  }

  encode(installation: ImportedInstallation, line: number): StagedInstallation {
    const { objectId, createdAt, updatedAt, importedAt, draft } = installation;
    const row = this.#rows.encode([
      ...[this.#appId, objectId, createdAt, updatedAt, importedAt],
      ...draftValues(draft),
    ]);
    const keyHashes = [hashOf(objectId)];
    if (draft.deviceToken !== null) keyHashes.push(hashOf(comparedToken(draft.deviceToken)));
    if (draft.installationId !== null) keyHashes.push(hashOf(draft.installationId));
    return { line, objectId, keyHashes, row };
  }
}

const hashFactor = 31;

/** Returns a 32-bit hash, which takes less memory than a long text. */
function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i += 1)
    hash = (Math.imul(hash, hashFactor) + text.charCodeAt(i)) | 0;
  return hash;
}

/**
 * Writes a batch of new installations with one statement, which is its own transaction. Returns
 * false, and writes nothing, if another row has one of their unique values. On a sharded database
 * it also returns false if the reason of the failure is unknown.
 */
export async function writeNewInstallations(
  connection: Handle,
  rows: readonly StagedInstallation[],
): Promise<boolean> {
  const target = { table: 'installation', columns: ['app_id', ...installations.columns] };
  const copied = rows.map(({ row }) => row);
  try {
    await copyIn(connection, target, copied);
    return true;
  } catch (error) {
    // The caller then merges the rows. If the reason is another one, merging fails with it too.
    if (violatedConstraint(error) === undefined && !isFailedCopyToWorker(error)) throw error;
    return false;
  }
}

/**
 * Writes the new rows of a batch in line order, and returns the other rows. Existing rows stay
 * unchanged. The object ids of a batch must be distinct. With `isDry`, only reads the table.
 * `areKnown`: most rows probably exist, so that searching them costs less than a failing insert.
 */
export async function mergeInstallations(
  tx: Handle,
  appId: string,
  { rows, isDry, areKnown }: { rows: StagedInstallation[]; isDry: boolean; areKnown: boolean },
): Promise<Merged> {
  const encoder = new RowEncoder();
  const staged = rows.map(({ line, row }) => encoder.withFirst(line, row));
  await copyIn(
    tx,
    { table: installations.name, columns: ['line', ...installations.columns] },
    staged,
  );
  const known = isDry || areKnown ? await takeUnwritten(tx, appId, installations) : [];
  if (known.length === rows.length) return { written: 0, unwritten: known };
  const table = isDry ? installations.shadow : installations.table;
  const written = await insertStaged(tx, appId, installations, table);
  if (known.length + written === rows.length) return { written, unwritten: known };
  const unwritten = await unwrittenRows(tx, appId, installations, table);
  return { written, unwritten: [...known, ...unwritten] };
}

/**
 * Updates the statistics of a table before an import. If an app has grown since the last ANALYZE,
 * PostgreSQL expects one row of it and may look up each id by reading all rows of the app.
 */
export const analyzeBeforeImport = (db: Handle, table: ClassTable) =>
  query(db).run(`ANALYZE (SKIP_LOCKED) ${table}`);

/** Updates statistics and indexes after an import, so that the next call gets a good plan. */
export const tidyAfterImport = (db: Handle, table: ClassTable) =>
  query(db).run(`VACUUM (ANALYZE) ${table}`);

/** Validated role of an import. Times are ISO 8601. */
export interface StagedRole {
  /** Line of its file. */
  line: number;
  objectId: string;
  draft: RoleDraft;
  createdAt: string;
  updatedAt: string;
}

/** A membership of an import: the public ids of the role and of its member. */
export interface StagedMembership {
  line: number;
  /** Both ids, because a file may contain a membership twice. */
  objectId: string;
  role: string;
  member: string;
}

const roles: Stage = {
  name: 'import_role',
  table: 'role',
  shadow: 'import_seen_role',
  columns: ['object_id', 'name', 'acl', 'fields', 'created_at', 'updated_at'],
  unique: { name: 'name' },
};
/** Table of memberships to which a dry run writes. */
const shadowMemberships = 'import_seen_membership';

/** Thrown if an import would exceed the app's limit of roles. */
export class TooManyRoles extends Error {
  override name = 'TooManyRoles';
}

/** Creates the temporary tables of an import on this connection. Needs the tables of users. */
export async function openRoleStage(connection: Handle): Promise<void> {
  await openStage(connection, roles);
  await connection.query(
    `CREATE TEMP TABLE ${shadowMemberships} (relation text, role text, member text,
       PRIMARY KEY (relation, role, member))`,
  );
}

/**
 * Writes the new roles of a batch in line order, and returns the other roles. Existing roles stay
 * unchanged. The object ids of a batch must be distinct. With `isDry`, only reads the table. Throws
 * `TooManyRoles`.
 */
export async function mergeRoles(
  tx: Handle,
  appId: string,
  { rows, isDry, maxRoles }: { rows: StagedRole[]; isDry: boolean; maxRoles: number },
): Promise<Merged> {
  const there = await countRolesLocked(tx, appId);
  const encoder = new RowEncoder();
  const staged = rows.map(
    ({ line, objectId, draft: { name, acl, fields }, createdAt, updatedAt }) => {
      const members = [name, JSON.stringify(acl), JSON.stringify(fields)];
      return encoder.encode([line, objectId, ...members, createdAt, updatedAt]);
    },
  );
  await copyIn(tx, { table: roles.name, columns: ['line', ...roles.columns] }, staged);
  const known = await takeUnwritten(tx, appId, roles);
  const table = isDry ? roles.shadow : roles.table;
  const written = await insertStaged(tx, appId, roles, table);
  const seen = isDry ? await query(tx).number(`SELECT count(*) FROM ${roles.shadow}`) : written;
  if (written > 0 && there + seen > maxRoles) throw new TooManyRoles(`more than ${maxRoles} roles`);
  return { written, unwritten: [...known, ...(await unwrittenRows(tx, appId, roles, table))] };
}

/**
 * For each relation: the table of its members, and the table of members that a dry run has seen.
 */
const relations = {
  users: { table: 'role_user', column: 'user_id', members: 'app_user', noun: 'user' },
  roles: { table: 'role_role', column: 'child_id', members: 'role', noun: 'role' },
} as const satisfies Record<RelationName, object>;
const seenMembers = { users: 'import_seen_user', roles: roles.shadow };

interface MembershipRow {
  line: number;
  hasRole: boolean;
  hasMember: boolean;
  isWritten: boolean;
}

/**
 * Writes the new memberships of a batch, and returns the memberships that were not written. A
 * membership of an unknown role or member gets a message. With `isDry`, only reads the tables.
 */
export async function mergeMemberships(
  tx: Handle,
  appId: string,
  {
    relation,
    rows: staged,
    isDry,
  }: { relation: RelationName; rows: StagedMembership[]; isDry: boolean },
): Promise<Merged> {
  const values = [appId, ...listsOf(staged, 'line', 'role', 'member')];
  const rows = isDry
    ? await tryMemberships(tx, relation, values)
    : await query(tx).rows<MembershipRow>(writeSql(relation), values);
  const ofLine = new Map(rows.map((row) => [row.line, row]));
  const unwritten = staged.flatMap((one): Unwritten[] => {
    const row = ofLine.get(one.line);
    if (row?.isWritten) return [];
    const message = row && missingMessage(row, relation);
    const { line, objectId } = one;
    const isThere = message === undefined;
    return [
      { line, objectId, isThere, isNewer: false, holders: {}, ...(isThere ? {} : { message }) },
    ];
  });
  return { written: staged.length - unwritten.length, unwritten };
}

function missingMessage(
  { hasRole, hasMember }: MembershipRow,
  relation: RelationName,
): string | undefined {
  if (!hasRole) return 'owningId is no role of this app.';
  return hasMember ? undefined : `relatedId is no ${relations[relation].noun} of this app.`;
}

const givenSql = `given AS (
  SELECT * FROM unnest($2::bigint[], $3::text[], $4::text[]) AS given (line, role, member))`;

function writeSql(relation: RelationName): string {
  const { table, column, members } = relations[relation];
  return `WITH ${givenSql},
    found AS MATERIALIZED (
      SELECT given.line, owner.id AS role_id, member.id AS member_id FROM given
        LEFT JOIN role owner ON owner.app_id = $1 AND owner.object_id = given.role
        LEFT JOIN ${members} member ON member.app_id = $1 AND member.object_id = given.member),
    written AS (
      INSERT INTO ${table} (app_id, role_id, ${column})
      SELECT $1, role_id, member_id FROM found WHERE role_id IS NOT NULL AND member_id IS NOT NULL
       ORDER BY role_id, member_id
      ON CONFLICT DO NOTHING RETURNING role_id, ${column} AS member_id)
    SELECT line, role_id IS NOT NULL AS "hasRole", member_id IS NOT NULL AS "hasMember",
           (role_id, member_id) IN (SELECT role_id, member_id FROM written) AS "isWritten"
             FROM found`;
}

/**
 * Runs a dry run, which also finds roles and members of the same import. It takes two statements,
 * because a sharded database cannot join a temporary table with a sharded one.
 */
async function tryMemberships(
  tx: Handle,
  relation: RelationName,
  values: unknown[],
): Promise<MembershipRow[]> {
  const there = await query(tx).rows<StoredMembership>(storedSql(relation), values);
  const lists = listsOf(there, 'line', 'role', 'member', 'hasRole', 'hasMember', 'isLinked');
  return query(tx).rows(drySql(relation), [values[0], ...lists]);
}

/** Returns SQL of the memberships of an import, with the matching rows of the database. */
interface StoredMembership extends Omit<MembershipRow, 'isWritten'> {
  role: string;
  member: string;
  isLinked: boolean;
}

function storedSql(relation: RelationName): string {
  const { table, column, members } = relations[relation];
  const isThere = (name: string, id: string) =>
    `EXISTS (SELECT FROM ${name} r WHERE r.app_id = $1 AND r.object_id = ${id})`;
  return `WITH ${givenSql}
    SELECT line, role, member, ${isThere('role', 'given.role')} AS "hasRole",
           ${isThere(members, 'given.member')} AS "hasMember",
           EXISTS (SELECT FROM ${table} link
             JOIN role owner ON owner.app_id = link.app_id AND owner.id = link.role_id
             JOIN ${members} one ON one.app_id = link.app_id AND one.id = link.${column}
            WHERE link.app_id = $1 AND owner.object_id = given.role
              AND one.object_id = given.member) AS "isLinked"
      FROM given`;
}

/** Returns SQL that adds roles and members of the dry run, and stores the memberships. */
function drySql(relation: RelationName): string {
  const isSeen = (shadowed: string, id: string) =>
    `EXISTS (SELECT FROM ${shadowed} r WHERE r.app_id = $1 AND r.object_id = ${id})`;
  return `WITH found AS MATERIALIZED (
      SELECT line, role, member, has_role OR ${isSeen(roles.shadow, 'role')} AS has_role,
             has_member OR ${isSeen(seenMembers[relation], 'member')} AS has_member, is_linked
        FROM unnest($2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::boolean[],
          $7::boolean[])
          AS given (line, role, member, has_role, has_member, is_linked)),
    written AS (
      INSERT INTO ${shadowMemberships} (relation, role, member)
      SELECT '${relation}', role, member FROM found WHERE has_role AND has_member AND NOT is_linked
      ON CONFLICT DO NOTHING RETURNING role, member)
    SELECT line, has_role AS "hasRole", has_member AS "hasMember",
           (role, member) IN (SELECT role, member FROM written) AS "isWritten" FROM found`;
}

/** Validated user of an import. Times are ISO 8601. */
export interface StagedUser {
  /** Line of its file. */
  line: number;
  objectId: string;
  draft: UserDraft;
  passwordHash: string | null;
  session: SessionSecret;
  /**
   * Third-party accounts and UnionIDs. A taken account is a conflict; a taken UnionID stays with
   * its present user.
   */
  identities: { own: Identity[]; claims: Identity[] };
  createdAt: string;
  updatedAt: string;
}

const users: Stage = {
  name: 'import_user',
  table: 'app_user',
  shadow: seenMembers.users,
  columns: [
    ...['object_id', 'password_hash', 'session_nonce', 'session_hash', 'created_at', 'updated_at'],
    ...userDraftColumns,
  ],
  unique: {
    username: 'username',
    email: 'email',
    mobile_phone_number: 'mobilePhoneNumber',
    session_hash: 'sessionToken',
  },
};

/** The target tables, or the tables of a dry run. */
interface Targets {
  users: string;
  identities: string;
}
const tables: Targets = { users: users.table, identities: 'user_identity' };
const shadows: Targets = { users: users.shadow, identities: 'import_seen_identity' };

/** Creates the temporary tables of an import on this connection. */
export async function openUserStage(connection: Handle): Promise<void> {
  const extra = ['NULL::bigint AS user_id', 'NULL::jsonb AS own', 'NULL::jsonb AS claims'];
  await openStage(connection, users, extra);
  await connection.query(`CREATE UNIQUE INDEX ON ${shadows.users} (app_id, id)`);
  await connection.query(
    `CREATE TEMP TABLE ${shadows.identities} (LIKE user_identity INCLUDING INDEXES)`,
  );
}

/**
 * Writes the new users of a batch in line order, with their third-party accounts, and returns the
 * other users. Existing users stay unchanged. The object ids of a batch must be distinct. With
 * `isDry`, only reads the tables.
 */
export async function mergeUsers(
  tx: Handle,
  appId: string,
  { rows, isDry }: { rows: StagedUser[]; isDry: boolean },
): Promise<Merged> {
  const encoder = new RowEncoder();
  const staged = rows.map((user) => encoder.encode(copyValues(user)));
  await copyIn(
    tx,
    { table: users.name, columns: ['line', 'own', 'claims', ...users.columns] },
    staged,
  );
  const unwritten = isDry ? await takeUnwrittenUsers(tx, appId) : [];
  const targets = isDry ? shadows : tables;
  for (;;) {
    await insertUsers(tx, appId, targets);
    const conflicts = await insertIdentities(tx, appId, targets);
    if (conflicts.length === 0) break;
    unwritten.push(...(await removeConflicts(tx, appId, { targets, conflicts })));
  }
  await insertAccounts(tx, appId, { identities: targets.identities, column: 'claims' });
  const written = await query(tx).rowCount(`DELETE FROM ${users.name} WHERE user_id IS NOT NULL`);
  if (written + unwritten.length < rows.length)
    unwritten.push(...(await unwrittenRows(tx, appId, users, targets.users)));
  return { written, unwritten };
}

const copyValues = ({
  identities: { own, claims },
  session,
  draft,
  ...user
}: StagedUser): CopyValue[] => [
  ...[user.line, JSON.stringify(own), JSON.stringify(claims), user.objectId, user.passwordHash],
  ...[session.nonce, session.hash, user.createdAt, user.updatedAt, ...userDraftValues(draft)],
];

/** Inserts the staged users that are not written yet, except users with a taken unique value. */
const insertUsers = (tx: Handle, appId: string, targets: Targets) =>
  query(tx).run(
    `WITH written AS (
       INSERT INTO ${targets.users} (app_id, auth_sealed, auth_sealed_whole,
         ${users.columns.join(', ')})
       SELECT $1, true, true, ${users.columns.join(', ')} FROM ${users.name} WHERE user_id IS NULL
         ORDER BY line
       ON CONFLICT DO NOTHING RETURNING id, object_id)
     UPDATE ${users.name} s SET user_id = w.id FROM written w WHERE s.object_id = w.object_id`,
    [appId],
  );

const identitiesIn = (column: 'own' | 'claims') =>
  `${users.name} s CROSS JOIN jsonb_to_recordset(s.${column}) AS x (platform text, uid text)`;

/** Joins the user that has account `x`. LIMIT 1 prevents a plan that reads all users. */
const holderIn = ({ users: holders, identities }: Targets) =>
  `CROSS JOIN LATERAL (
     SELECT t.id, t.object_id FROM ${identities} i JOIN ${holders} t ON t.app_id = i.app_id
       AND t.id = i.user_id
      WHERE i.app_id = $1 AND i.platform = x.platform AND i.uid = x.uid LIMIT 1) h`;

/** A written user, and the user that already has one of its third-party accounts. */
interface Conflict {
  line: number;
  userId: number;
  objectId: string;
  platform: string;
  holderId: number;
  holder: string;
}

/**
 * Inserts the third-party accounts of written users. Returns the accounts that belong to another
 * user.
 */
async function insertIdentities(tx: Handle, appId: string, targets: Targets): Promise<Conflict[]> {
  await insertAccounts(tx, appId, { identities: targets.identities, column: 'own' });
  return query(tx).rows(
    `SELECT s.line, s.user_id AS "userId", s.object_id AS "objectId", x.platform,
            h.id AS "holderId", h.object_id AS holder
       FROM ${identitiesIn('own')} ${holderIn(targets)}
      WHERE s.user_id IS NOT NULL AND h.id <> s.user_id ORDER BY s.line`,
    [appId],
  );
}

const insertAccounts = (
  tx: Handle,
  appId: string,
  { identities, column }: { identities: string; column: 'own' | 'claims' },
) =>
  query(tx).run(
    `INSERT INTO ${identities} (app_id, user_id, platform, uid)
     SELECT $1, s.user_id, x.platform, x.uid FROM ${identitiesIn(column)}
      WHERE s.user_id IS NOT NULL ORDER BY s.line, x.platform, x.uid
     ON CONFLICT DO NOTHING`,
    [appId],
  );

/**
 * Deletes the users with conflicts. If the other user of a conflict is deleted too, the user is
 * tried again. Otherwise the user counts as unwritten. The first conflict in line order is always
 * with a user that remains, so the caller's loop ends.
 */
async function removeConflicts(
  tx: Handle,
  appId: string,
  { targets, conflicts }: { targets: Targets; conflicts: Conflict[] },
): Promise<Unwritten[]> {
  const ids = new Set(conflicts.map(({ userId }) => userId));
  const list = [...ids];
  const { identities, users: written } = targets;
  await tx.query(`DELETE FROM ${identities} WHERE app_id = $1 AND user_id = ANY($2::bigint[])`, [
    appId,
    list,
  ]);
  await tx.query(`DELETE FROM ${written} WHERE app_id = $1 AND id = ANY($2::bigint[])`, [
    appId,
    list,
  ]);
  const unwritten = byLine(conflicts.filter(({ holderId }) => !ids.has(holderId)));
  await unstage(tx, users, unwritten);
  await tx.query(`UPDATE ${users.name} SET user_id = NULL WHERE user_id = ANY($1::bigint[])`, [
    list,
  ]);
  return unwritten;
}

type Linked = Pick<Conflict, 'line' | 'objectId' | 'platform' | 'holder'>;

/** Returns each user of the conflicts once, with its last conflict. */
const byLine = (conflicts: readonly Linked[]): Unwritten[] => [
  ...new Map(conflicts.map((conflict) => [conflict.line, conflictOf(conflict)])).values(),
];

const conflictOf = ({ line, objectId, platform, holder }: Linked): Unwritten => ({
  line,
  objectId,
  isThere: false,
  isNewer: false,
  holders: { [`authData.${platform}`]: holder },
});

/** Like `takeUnwritten`, including users whose third-party accounts belong to another user. */
async function takeUnwrittenUsers(tx: Handle, appId: string): Promise<Unwritten[]> {
  const kept = await takeUnwritten(tx, appId, users);
  const linked = await query(tx).rows<Linked>(
    `SELECT s.line, s.object_id AS "objectId", x.platform, h.object_id AS holder
       FROM ${identitiesIn('own')} ${holderIn(tables)}`,
    [appId],
  );
  const unwritten = byLine(linked);
  await unstage(tx, users, unwritten);
  return [...kept, ...unwritten];
}
