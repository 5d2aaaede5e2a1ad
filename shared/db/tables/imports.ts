import { comparedToken } from '../../domain/installations/identity.ts';
import type { InstallationDraft } from '../../domain/installations/installation.ts';
import type { RelationName, RoleDraft } from '../../domain/roles/role.ts';
import type { Identity } from '../../domain/users/auth-data.ts';
import type { SessionSecret, UserDraft } from '../../domain/users/user.ts';
import { type CopyRow, type CopyValue, copyIn, RowEncoder } from '../copy.ts';
import { isFailedCopyToWorker, violatedConstraint } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { execute, listsOf, queryNumber, queryRows } from '../query.ts';
import { draftColumns, draftValues } from './installations.ts';
import { countRolesLocked } from './roles.ts';
import { userDraftColumns, userDraftValues } from './users.ts';

/** Staged row that was not written, and why: it exists, or it conflicts with another row. */
export interface Unwritten {
  line: number;
  objectId: string;
  isThere: boolean;
  /** The row exists, but the file has a later update of it. */
  isNewer: boolean;
  /** Public ids of the conflicting rows by member; empty when the row exists. */
  holders: Record<string, string>;
  /** Another reason, for the report. */
  message?: string;
}

/** Result of a batch. */
export interface Merged {
  written: number;
  unwritten: Unwritten[];
}

/** Source and target of staged rows. All names are constants, never of a request. */
export interface Destination {
  stage: string;
  table: string;
  /** Unique columns, and the names of their members. */
  unique: Readonly<Record<string, string>>;
}

type UnwrittenRow = { line: number; object_id: string; is_there: boolean; is_newer: boolean } & Record<
  string,
  unknown
>;

/** Reads the staged rows in line order, with the rows of the table that they conflict with. */
export async function unwrittenRows(
  tx: Handle,
  appId: string,
  { stage, table, unique }: Destination,
): Promise<Unwritten[]> {
  // Existing rows need no search for conflicts.
  const holders = Object.keys(unique).map(
    (name) => `CASE WHEN i.object_id IS NULL THEN
      (SELECT object_id FROM ${table} t WHERE t.app_id = $1 AND t.${name} = s.${name}) END AS ${name}`,
  );
  // LIMIT 1 prevents a plan that reads all rows of the app for one batch.
  const { rows } = await tx.query<UnwrittenRow>(
    `SELECT s.line, s.object_id, i.object_id IS NOT NULL AS is_there,
            coalesce(i.updated_at < s.updated_at, false) AS is_newer, ${holders.join(', ')}
       FROM ${stage} s LEFT JOIN LATERAL (
         SELECT object_id, updated_at FROM ${table} t WHERE t.app_id = $1 AND t.object_id = s.object_id LIMIT 1) i ON true
      ORDER BY s.line`,
    [appId],
  );
  return rows.map((row) => ({
    line: Number(row.line),
    objectId: row.object_id,
    isThere: row.is_there,
    isNewer: row.is_newer,
    holders: holdersIn(row, unique),
  }));
}

function holdersIn(row: UnwrittenRow, unique: Destination['unique']): Record<string, string> {
  const found = Object.entries(unique).flatMap(([name, member]) => {
    const holder = row[name];
    return typeof holder === 'string' ? [[member, holder]] : [];
  });
  return Object.fromEntries(found);
}

/** Finds the staged rows that exist or conflict with another row. */
export async function keptOut(tx: Handle, appId: string, destination: Destination): Promise<Unwritten[]> {
  const rows = await unwrittenRows(tx, appId, destination);
  return rows.filter(({ isThere, holders }) => isThere || Object.keys(holders).length > 0);
}

/** Deletes reported rows from the stage. */
export async function unstage(tx: Handle, stage: string, rows: readonly Unwritten[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(`DELETE FROM ${stage} WHERE line = ANY($1::bigint[])`, [rows.map(({ line }) => line)]);
}

/** Validated installation of an export. Times are ISO 8601. */
export interface ImportedInstallation {
  objectId: string;
  draft: InstallationDraft;
  createdAt: string;
  updatedAt: string;
  importedAt: string;
}

/** Installation of an import, ready to be written. */
export interface StagedInstallation {
  /** Line of its file. */
  line: number;
  objectId: string;
  /** Hashes of its values of unique columns. */
  keyHashes: number[];
  /** Its app and the values of `columns`. */
  row: CopyRow;
}

const installationStage = 'import_installation';
/** Table that a dry run writes to, which finds duplicates within the file. */
const installationShadow = 'import_seen_installation';
const installationUnique = { device_token: 'deviceToken', installation_id: 'installationId' };
const installationColumns = ['object_id', 'created_at', 'updated_at', 'imported_at', ...draftColumns];

/** Creates the temporary tables of an import on this connection. */
export async function openInstallationStage(connection: Handle): Promise<void> {
  await connection.query(
    `CREATE TEMP TABLE ${installationStage} ON COMMIT DELETE ROWS AS
       SELECT 0::bigint AS line, ${installationColumns.join(', ')} FROM installation WITH NO DATA`,
  );
  await connection.query(
    `CREATE TEMP TABLE ${installationShadow} (LIKE installation INCLUDING DEFAULTS INCLUDING IDENTITY)`,
  );
  for (const name of ['object_id', 'device_token', 'installation_id'])
    await connection.query(`CREATE UNIQUE INDEX ON ${installationShadow} (app_id, ${name})`);
}

/** Encoder of the installations of an app, while the batch before is written. */
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

/** Returns a hash of 32 bits, which takes less memory than a long text. */
function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i += 1) hash = (Math.imul(hash, hashFactor) + text.charCodeAt(i)) | 0;
  return hash;
}

/**
 * Writes a batch of new installations with one statement, which is its own transaction. Returns
 * false, and writes nothing, when another row has a unique value of one of them, or a sharded
 * database does not tell why it refused them.
 */
export async function writeNewInstallations(
  connection: Handle,
  rows: readonly StagedInstallation[],
): Promise<boolean> {
  const target = { table: 'installation', columns: ['app_id', ...installationColumns] };
  try {
    await copyIn(
      connection,
      target,
      rows.map(({ row }) => row),
    );
    return true;
  } catch (error) {
    // The caller then merges the rows, which fails by any other reason again.
    if (violatedConstraint(error) === undefined && !isFailedCopyToWorker(error)) throw error;
    return false;
  }
}

export interface InstallationBatch {
  rows: StagedInstallation[];
  isDry: boolean;
  /** Most rows probably exist: looking them up costs less than a failing insert. */
  areKnown: boolean;
}

/**
 * Writes the new rows of a batch in line order and returns the others; existing rows stay
 * unchanged. The object ids of a batch must be distinct. With `isDry`, only reads the table.
 */
export async function mergeInstallations(
  tx: Handle,
  appId: string,
  { rows, isDry, areKnown }: InstallationBatch,
): Promise<Merged> {
  const encoder = new RowEncoder();
  await copyIn(
    tx,
    { table: installationStage, columns: ['line', ...installationColumns] },
    rows.map(({ line, row }) => encoder.withFirst(line, row)),
  );
  const known =
    isDry || areKnown
      ? await keptOut(tx, appId, {
          stage: installationStage,
          table: 'installation',
          unique: installationUnique,
        })
      : [];
  await unstage(tx, installationStage, known);
  if (known.length === rows.length) return { written: 0, unwritten: known };
  const target = isDry ? installationShadow : 'installation';
  const { rowCount } = await tx.query(
    `WITH written AS (
       INSERT INTO ${target} (app_id, ${installationColumns.join(', ')})
       SELECT $1, ${installationColumns.join(', ')} FROM ${installationStage} ORDER BY line
       ON CONFLICT DO NOTHING RETURNING object_id)
     DELETE FROM ${installationStage} s USING written w WHERE s.object_id = w.object_id`,
    [appId],
  );
  const written = rowCount ?? 0;
  if (known.length + written === rows.length) return { written, unwritten: known };
  const unwritten = await unwrittenRows(tx, appId, {
    stage: installationStage,
    table: target,
    unique: installationUnique,
  });
  return { written, unwritten: [...known, ...unwritten] };
}

/** Updates statistics and indexes after many new rows, so that the next push gets a good plan. */
export const tidyInstallations = (db: Handle) => execute(db, 'VACUUM (ANALYZE) installation');

/** Validated role of an import. Times are ISO 8601. */
export interface StagedRole {
  /** Line of its file. */
  line: number;
  objectId: string;
  draft: RoleDraft;
  createdAt: string;
  updatedAt: string;
}

/** Membership of an import: public ids of the role and of its member. */
export interface StagedMembership {
  line: number;
  /** Both ids: a file may hold a membership twice. */
  objectId: string;
  role: string;
  member: string;
}

const roleStage = 'import_role';
/** Tables that a dry run writes to. */
const roleShadow = 'import_seen_role';
const shadowMemberships = 'import_seen_membership';
const roleUnique = { name: 'name' };
const roleColumns = ['object_id', 'name', 'acl', 'fields', 'created_at', 'updated_at'];

/** Error of an import that would exceed the app's limit of roles. */
export class TooManyRoles extends Error {
  override name = 'TooManyRoles';
}

/** Creates the temporary tables of an import on this connection. Needs those of users. */
export async function openRoleStage(connection: Handle): Promise<void> {
  await connection.query(
    `CREATE TEMP TABLE ${roleStage} ON COMMIT DELETE ROWS AS
       SELECT 0::bigint AS line, ${roleColumns.join(', ')} FROM role WITH NO DATA`,
  );
  await connection.query(`CREATE TEMP TABLE ${roleShadow} (LIKE role INCLUDING DEFAULTS INCLUDING IDENTITY)`);
  for (const name of ['object_id', 'name'])
    await connection.query(`CREATE UNIQUE INDEX ON ${roleShadow} (app_id, ${name})`);
  await connection.query(
    `CREATE TEMP TABLE ${shadowMemberships} (relation text, role text, member text,
       PRIMARY KEY (relation, role, member))`,
  );
}

/**
 * Writes the new roles of a batch in line order and returns the others; existing roles stay
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
  await copyIn(
    tx,
    { table: roleStage, columns: ['line', ...roleColumns] },
    rows.map(({ line, objectId, draft: { name, acl, fields }, createdAt, updatedAt }) =>
      encoder.encode([
        line,
        objectId,
        name,
        JSON.stringify(acl),
        JSON.stringify(fields),
        createdAt,
        updatedAt,
      ]),
    ),
  );
  const known = await keptOut(tx, appId, { stage: roleStage, table: 'role', unique: roleUnique });
  await unstage(tx, roleStage, known);
  const table = isDry ? roleShadow : 'role';
  const { rowCount } = await tx.query(
    `WITH written AS (
       INSERT INTO ${table} (app_id, ${roleColumns.join(', ')})
       SELECT $1, ${roleColumns.join(', ')} FROM ${roleStage} ORDER BY line
       ON CONFLICT DO NOTHING RETURNING object_id)
     DELETE FROM ${roleStage} s USING written w WHERE s.object_id = w.object_id`,
    [appId],
  );
  const written = rowCount ?? 0;
  const seen = isDry ? await countSeen(tx) : written;
  if (written > 0 && there + seen > maxRoles) throw new TooManyRoles(`more than ${maxRoles} roles`);
  return {
    written,
    unwritten: [
      ...known,
      ...(await unwrittenRows(tx, appId, { stage: roleStage, table, unique: roleUnique })),
    ],
  };
}

const countSeen = (tx: Handle) => queryNumber(tx, `SELECT count(*) AS count FROM ${roleShadow}`);

/** Where the members of each relation are, and what of them a dry run has seen. */
const relations = {
  users: {
    table: 'role_user',
    column: 'user_id',
    members: 'app_user',
    seen: 'import_seen_user',
    noun: 'user',
  },
  roles: { table: 'role_role', column: 'child_id', members: 'role', seen: roleShadow, noun: 'role' },
} as const satisfies Record<RelationName, object>;

export interface MembershipBatch {
  relation: RelationName;
  rows: StagedMembership[];
  isDry: boolean;
}

interface MembershipRow {
  line: number;
  has_role: boolean;
  has_member: boolean;
  is_written: boolean;
}

/**
 * Writes the new memberships of a batch and returns the others, with a message for those of an
 * unknown role or member. With `isDry`, only reads the tables.
 */
export async function mergeMemberships(tx: Handle, appId: string, batch: MembershipBatch): Promise<Merged> {
  const { relation, rows: staged, isDry } = batch;
  const given = listsOf(staged, 'line', 'role');
  const members = staged.map(({ member }) => member);
  const values = [appId, ...given, members];
  const rows = isDry
    ? await tryMemberships(tx, relation, values)
    : (await tx.query<MembershipRow>(writeSql(relation), values)).rows;
  const ofLine = new Map(rows.map((row) => [Number(row.line), row]));
  const unwritten = staged.flatMap((one): Unwritten[] => {
    const row = ofLine.get(one.line);
    if (row?.is_written) return [];
    const message = row && missingMessage(row, relation);
    const { line, objectId } = one;
    const isThere = message === undefined;
    return [{ line, objectId, isThere, isNewer: false, holders: {}, ...(isThere ? {} : { message }) }];
  });
  return { written: staged.length - unwritten.length, unwritten };
}

function missingMessage({ has_role, has_member }: MembershipRow, relation: RelationName): string | undefined {
  if (!has_role) return 'owningId is no role of this app.';
  return has_member ? undefined : `relatedId is no ${relations[relation].noun} of this app.`;
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
    SELECT line, role_id IS NOT NULL AS has_role, member_id IS NOT NULL AS has_member,
           (role_id, member_id) IN (SELECT role_id, member_id FROM written) AS is_written FROM found`;
}

/**
 * Does a dry run, which also finds roles and members of this run. Two statements: a sharded
 * database joins no temporary table to one that Citus has sharded.
 */
async function tryMemberships(
  tx: Handle,
  relation: RelationName,
  values: unknown[],
): Promise<MembershipRow[]> {
  const there = await tx.query<StoredMembership>(storedSql(relation), values);
  const column = (of: (row: StoredMembership) => unknown) => there.rows.map(of);
  const found = await tx.query<MembershipRow>(drySql(relation), [
    values[0],
    ...[column(({ line }) => line), column(({ role }) => role), column(({ member }) => member)],
    ...[column((row) => row.has_role), column((row) => row.has_member), column((row) => row.is_linked)],
  ]);
  return found.rows;
}

/** Membership of an import, with what the database has of it. */
interface StoredMembership {
  line: number;
  role: string;
  member: string;
  has_role: boolean;
  has_member: boolean;
  is_linked: boolean;
}

function storedSql(relation: RelationName): string {
  const { table, column, members } = relations[relation];
  const isThere = (name: string, id: string) =>
    `EXISTS (SELECT FROM ${name} r WHERE r.app_id = $1 AND r.object_id = ${id})`;
  return `WITH ${givenSql}
    SELECT line, role, member, ${isThere('role', 'given.role')} AS has_role,
           ${isThere(members, 'given.member')} AS has_member,
           EXISTS (SELECT FROM ${table} link
             JOIN role owner ON owner.app_id = link.app_id AND owner.id = link.role_id
             JOIN ${members} one ON one.app_id = link.app_id AND one.id = link.${column}
            WHERE link.app_id = $1 AND owner.object_id = given.role AND one.object_id = given.member) AS is_linked
      FROM given`;
}

/** Returns the statement that adds what the run has seen, and notes the memberships. */
function drySql(relation: RelationName): string {
  const { seen } = relations[relation];
  const isSeen = (shadowed: string, id: string) =>
    `EXISTS (SELECT FROM ${shadowed} r WHERE r.app_id = $1 AND r.object_id = ${id})`;
  return `WITH found AS MATERIALIZED (
      SELECT line, role, member, has_role OR ${isSeen(roleShadow, 'role')} AS has_role,
             has_member OR ${isSeen(seen, 'member')} AS has_member, is_linked
        FROM unnest($2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::boolean[], $7::boolean[])
          AS given (line, role, member, has_role, has_member, is_linked)),
    written AS (
      INSERT INTO ${shadowMemberships} (relation, role, member)
      SELECT '${relation}', role, member FROM found WHERE has_role AND has_member AND NOT is_linked
      ON CONFLICT DO NOTHING RETURNING role, member)
    SELECT line, has_role, has_member,
           (role, member) IN (SELECT role, member FROM written) AS is_written FROM found`;
}

/** Validated user of an import. Times are ISO 8601. */
export interface StagedUser {
  /** Line of its file. */
  line: number;
  objectId: string;
  draft: UserDraft;
  passwordHash: string | null;
  session: SessionSecret;
  /** Third-party accounts, which conflict, and UnionIDs, which stay with their present user. */
  identities: { own: Identity[]; claims: Identity[] };
  createdAt: string;
  updatedAt: string;
}

const userStage = 'import_user';
const userColumns = [
  'object_id',
  'password_hash',
  'session_nonce',
  'session_hash',
  'created_at',
  'updated_at',
  ...userDraftColumns,
];

/** Names of the unique members, by column. */
const userUnique = {
  username: 'username',
  email: 'email',
  mobile_phone_number: 'mobilePhoneNumber',
  session_hash: 'sessionToken',
};

/** Target tables: the real ones, or those of a dry run. */
interface Targets {
  users: string;
  identities: string;
}
const tables: Targets = { users: 'app_user', identities: 'user_identity' };
const shadows: Targets = { users: 'import_seen_user', identities: 'import_seen_identity' };

/** Creates the temporary tables of an import on this connection. */
export async function openUserStage(connection: Handle): Promise<void> {
  await connection.query(
    `CREATE TEMP TABLE ${userStage} ON COMMIT DELETE ROWS AS
       SELECT 0::bigint AS line, NULL::bigint AS user_id, NULL::jsonb AS own, NULL::jsonb AS claims,
              ${userColumns.join(', ')} FROM app_user WITH NO DATA`,
  );
  await connection.query(
    `CREATE TEMP TABLE ${shadows.users} (LIKE app_user INCLUDING DEFAULTS INCLUDING IDENTITY)`,
  );
  for (const name of ['id', 'object_id', 'username', 'email', 'mobile_phone_number', 'session_hash'])
    await connection.query(`CREATE UNIQUE INDEX ON ${shadows.users} (app_id, ${name})`);
  await connection.query(`CREATE TEMP TABLE ${shadows.identities} (LIKE user_identity INCLUDING INDEXES)`);
}

/**
 * Writes the new users of a batch in line order, with their third-party accounts, and returns the
 * others; existing users stay unchanged. The object ids of a batch must be distinct. With `isDry`,
 * only reads the tables.
 */
export async function mergeUsers(
  tx: Handle,
  appId: string,
  { rows, isDry }: { rows: StagedUser[]; isDry: boolean },
): Promise<Merged> {
  const encoder = new RowEncoder();
  await copyIn(
    tx,
    { table: userStage, columns: ['line', 'own', 'claims', ...userColumns] },
    rows.map((user) => encoder.encode(copyValues(user))),
  );
  const unwritten = isDry ? await takeUnwritten(tx, appId, tables) : [];
  const targets = isDry ? shadows : tables;
  for (;;) {
    await insertUsers(tx, appId, targets);
    const conflicts = await insertIdentities(tx, appId, targets);
    if (conflicts.length === 0) break;
    unwritten.push(...(await removeConflicts(tx, appId, { targets, conflicts })));
  }
  await insertClaims(tx, appId, targets);
  const { rowCount } = await tx.query(`DELETE FROM ${userStage} WHERE user_id IS NOT NULL`);
  const written = rowCount ?? 0;
  if (written + unwritten.length < rows.length)
    unwritten.push(
      ...(await unwrittenRows(tx, appId, { stage: userStage, table: targets.users, unique: userUnique })),
    );
  return { written, unwritten };
}

function copyValues(user: StagedUser): CopyValue[] {
  const { own, claims } = user.identities;
  return [
    user.line,
    JSON.stringify(own),
    JSON.stringify(claims),
    user.objectId,
    user.passwordHash,
    user.session.nonce,
    user.session.hash,
    user.createdAt,
    user.updatedAt,
    ...userDraftValues(user.draft),
  ];
}

/** Inserts the staged users that are not written yet, except those with a taken unique value. */
const insertUsers = (tx: Handle, appId: string, { users }: Targets) =>
  execute(
    tx,
    `WITH written AS (
       INSERT INTO ${users} (app_id, auth_sealed, auth_sealed_whole, ${userColumns.join(', ')})
       SELECT $1, true, true, ${userColumns.join(', ')} FROM ${userStage} WHERE user_id IS NULL ORDER BY line
       ON CONFLICT DO NOTHING RETURNING id, object_id)
     UPDATE ${userStage} s SET user_id = w.id FROM written w WHERE s.object_id = w.object_id`,
    [appId],
  );

const identitiesIn = (column: 'own' | 'claims') =>
  `${userStage} s CROSS JOIN jsonb_to_recordset(s.${column}) AS x (platform text, uid text)`;

/** Joins the user who has the account `x`. LIMIT 1 prevents a plan that reads all users. */
const holderIn = ({ users, identities }: Targets) =>
  `CROSS JOIN LATERAL (
     SELECT t.id, t.object_id FROM ${identities} i JOIN ${users} t ON t.app_id = i.app_id AND t.id = i.user_id
      WHERE i.app_id = $1 AND i.platform = x.platform AND i.uid = x.uid LIMIT 1) h`;

/** Written user, and the user who has one of its third-party accounts. */
interface Conflict {
  line: number;
  user_id: number;
  object_id: string;
  platform: string;
  holder_id: number;
  holder: string;
}

/** Inserts the third-party accounts of written users. Returns those that belong to another user. */
async function insertIdentities(tx: Handle, appId: string, targets: Targets): Promise<Conflict[]> {
  await tx.query(
    `INSERT INTO ${targets.identities} (app_id, user_id, platform, uid)
     SELECT $1, s.user_id, x.platform, x.uid FROM ${identitiesIn('own')}
      WHERE s.user_id IS NOT NULL ORDER BY s.line, x.platform, x.uid
     ON CONFLICT DO NOTHING`,
    [appId],
  );
  return queryRows(
    tx,
    `SELECT s.line, s.user_id, s.object_id, x.platform, h.id AS holder_id, h.object_id AS holder
       FROM ${identitiesIn('own')} ${holderIn(targets)}
      WHERE s.user_id IS NOT NULL AND h.id <> s.user_id ORDER BY s.line`,
    [appId],
  );
}

/**
 * Deletes the users with conflicts. A user whose conflict is with another deleted one is tried
 * again; the others are unwritten. The first conflict in line order is always with a user who
 * stays, so the caller's loop ends.
 */
async function removeConflicts(
  tx: Handle,
  appId: string,
  { targets, conflicts }: { targets: Targets; conflicts: Conflict[] },
): Promise<Unwritten[]> {
  const ids = new Set(conflicts.map(({ user_id }) => Number(user_id)));
  await tx.query(`DELETE FROM ${targets.identities} WHERE app_id = $1 AND user_id = ANY($2::bigint[])`, [
    appId,
    [...ids],
  ]);
  await tx.query(`DELETE FROM ${targets.users} WHERE app_id = $1 AND id = ANY($2::bigint[])`, [
    appId,
    [...ids],
  ]);
  const out = new Map(
    conflicts
      .filter(({ holder_id }) => !ids.has(Number(holder_id)))
      .map((conflict) => [Number(conflict.line), conflict]),
  );
  const unwritten = [...out.values()].map(conflictOf);
  await unstage(tx, userStage, unwritten);
  await tx.query(`UPDATE ${userStage} SET user_id = NULL WHERE user_id = ANY($1::bigint[])`, [[...ids]]);
  return unwritten;
}

const conflictOf = ({ line, object_id, platform, holder }: Conflict): Unwritten => ({
  line: Number(line),
  objectId: object_id,
  isThere: false,
  isNewer: false,
  holders: { [`authData.${platform}`]: holder },
});

const insertClaims = (tx: Handle, appId: string, { identities }: Targets) =>
  execute(
    tx,
    `INSERT INTO ${identities} (app_id, user_id, platform, uid)
     SELECT $1, s.user_id, x.platform, x.uid FROM ${identitiesIn('claims')}
      WHERE s.user_id IS NOT NULL ORDER BY s.line, x.platform, x.uid
     ON CONFLICT DO NOTHING`,
    [appId],
  );

/** Finds the staged users that exist or conflict, and deletes them from the stage. */
async function takeUnwritten(tx: Handle, appId: string, targets: Targets): Promise<Unwritten[]> {
  const kept = await keptOut(tx, appId, { stage: userStage, table: targets.users, unique: userUnique });
  const known = new Set(kept.map(({ line }) => line));
  const { rows } = await tx.query<Conflict>(
    `SELECT s.line, s.object_id, x.platform, h.object_id AS holder
       FROM ${identitiesIn('own')} ${holderIn(targets)}`,
    [appId],
  );
  const linked = new Map(rows.map((conflict) => [Number(conflict.line), conflictOf(conflict)]));
  const unwritten = [...kept, ...[...linked.values()].filter(({ line }) => !known.has(line))];
  await unstage(tx, userStage, unwritten);
  return unwritten;
}
