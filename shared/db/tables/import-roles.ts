import type { RelationName, RoleDraft } from '../../domain/roles/role.ts';
import { RowEncoder } from '../copy.ts';
import type { Handle } from '../pool.ts';
import { listsOf, query } from '../query.ts';
import { type Merged, mergeRows, openStage, type Stage, type Unwritten } from './imports.ts';
import { countRolesLocked, links } from './roles.ts';

/** Validated role of an import. Times are ISO 8601. */
export interface StagedRole {
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

/** Writes a batch of roles like `mergeRows`. Throws `TooManyRoles`. */
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
  const merged = await mergeRows(tx, appId, roles, { rows: staged, isDry, areKnown: true });
  const { written } = merged;
  const seen = isDry ? await query(tx).number(`SELECT count(*) FROM ${roles.shadow}`) : written;
  if (written > 0 && there + seen > maxRoles) throw new TooManyRoles(`more than ${maxRoles} roles`);
  return merged;
}

/** Tables of members that a dry run has seen, by relation. */
export const seenMembers = { users: 'import_seen_user', roles: roles.shadow };

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
  return hasMember
    ? undefined
    : `relatedId is no ${relation === 'users' ? 'user' : 'role'} of this app.`;
}

const givenSql = `given AS (
  SELECT * FROM unnest($2::bigint[], $3::text[], $4::text[]) AS given (line, role, member))`;

function writeSql(relation: RelationName): string {
  const { table, column, members } = links[relation];
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

interface StoredMembership extends Omit<MembershipRow, 'isWritten'> {
  role: string;
  member: string;
  isLinked: boolean;
}

/** Returns SQL of the memberships of an import, with the matching rows of the database. */
function storedSql(relation: RelationName): string {
  const { table, column, members } = links[relation];
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
