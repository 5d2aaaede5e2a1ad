import type { RelationName, RoleDraft } from '../../../domain/roles/role.ts';
import { copyIn, RowEncoder } from '../../copy.ts';
import type { Handle } from '../../pool.ts';
import { countRolesLocked } from '../roles/roles.ts';
import { keptOut, type Merged, type Unwritten, unstage, unwrittenRows } from './unwritten.ts';

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

const stage = 'import_role';
/** Tables that a dry run writes to. */
const shadow = 'import_seen_role';
const shadowMemberships = 'import_seen_membership';
const unique = { name: 'name' };
const columns = ['object_id', 'name', 'acl', 'fields', 'created_at', 'updated_at'];

/** Error of an import that would exceed the app's limit of roles. */
export class TooManyRoles extends Error {
  override name = 'TooManyRoles';
}

/** Creates the temporary tables of an import on this connection. Needs those of users. */
export async function openRoleStage(connection: Handle): Promise<void> {
  await connection.query(
    `CREATE TEMP TABLE ${stage} ON COMMIT DELETE ROWS AS
       SELECT 0::bigint AS line, ${columns.join(', ')} FROM role WITH NO DATA`,
  );
  await connection.query(`CREATE TEMP TABLE ${shadow} (LIKE role INCLUDING DEFAULTS INCLUDING IDENTITY)`);
  for (const name of ['object_id', 'name'])
    await connection.query(`CREATE UNIQUE INDEX ON ${shadow} (app_id, ${name})`);
  await connection.query(
    `CREATE TEMP TABLE ${shadowMemberships} (relation text, role text, member text,
       PRIMARY KEY (relation, role, member))`,
  );
}

/**
 * Writes the new roles of a batch in line order and returns the others; existing roles stay unchanged. The object ids of
 * a batch must be distinct. With `isDry`, only reads the table.
 * Throws `TooManyRoles`.
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
    { table: stage, columns: ['line', ...columns] },
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
  const known = await keptOut(tx, appId, { stage, table: 'role', unique });
  await unstage(tx, stage, known);
  const table = isDry ? shadow : 'role';
  const { rowCount } = await tx.query(
    `WITH written AS (
       INSERT INTO ${table} (app_id, ${columns.join(', ')})
       SELECT $1, ${columns.join(', ')} FROM ${stage} ORDER BY line
       ON CONFLICT DO NOTHING RETURNING object_id)
     DELETE FROM ${stage} s USING written w WHERE s.object_id = w.object_id`,
    [appId],
  );
  const written = rowCount ?? 0;
  const seen = isDry ? await countSeen(tx) : written;
  if (written > 0 && there + seen > maxRoles) throw new TooManyRoles(`more than ${maxRoles} roles`);
  return { written, unwritten: [...known, ...(await unwrittenRows(tx, appId, { stage, table, unique }))] };
}

async function countSeen(tx: Handle): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(`SELECT count(*) AS count FROM ${shadow}`);
  return rows[0]?.count ?? 0;
}

/** Where the members of each relation are, and what of them a dry run has seen. */
const relations = {
  users: {
    table: 'role_user',
    column: 'user_id',
    members: 'app_user',
    seen: 'import_seen_user',
    noun: 'user',
  },
  roles: { table: 'role_role', column: 'child_id', members: 'role', seen: shadow, noun: 'role' },
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
 * Writes the new memberships of a batch and returns the others, with a message for those of an unknown role or member.
 * With `isDry`, only reads the tables.
 */
export async function mergeMemberships(tx: Handle, appId: string, batch: MembershipBatch): Promise<Merged> {
  const { relation, rows: staged, isDry } = batch;
  const given = [staged.map(({ line }) => line), staged.map(({ role }) => role)];
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
 * Does a dry run, which also finds roles and members of this run. Two statements: a sharded database joins no temporary table to one
 * that Citus has sharded.
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
      SELECT line, role, member, has_role OR ${isSeen(shadow, 'role')} AS has_role,
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
