import type { RelationName, Role, RoleDraft } from '../../domain/roles/role.ts';
import type { Handle } from '../pool.ts';
import { membersOf, prepare } from '../prepared.ts';
import { lockName, query } from '../query.ts';
import { type Selection, selectByIds, selectRows } from './selection.ts';

const columns = membersOf('role', 'id, object_id, name, acl, fields, created_at, updated_at');
const from = { table: 'role', columns } as const;

const byObjectId = `SELECT ${columns} FROM role WHERE app_id = $1 AND object_id = $2`;
const findStatement = prepare(byObjectId);
const findLockedStatement = prepare(`${byObjectId} FOR UPDATE`);

/** Finds a role by its public id. With `isLocked`, locks the row until the transaction ends. */
export const findRole = (
  db: Handle,
  appId: string,
  { objectId, isLocked = false }: { objectId: string; isLocked?: boolean },
) => query(db).row<Role>(isLocked ? findLockedStatement : findStatement, [appId, objectId]);

/** Finds roles by their public ids, unordered. Throws like `selectByIds`. */
export const findRoles = (
  db: Handle,
  appId: string,
  selection: { objectIds: string[]; maxBytes: number },
) => selectByIds<Role>(db, from, { appId, ...selection });

export const selectRoles = (tx: Handle, selection: Selection) =>
  selectRows<Role>(tx, from, selection);

/** Counts the roles of an app. No other transaction adds one until `tx` ends. */
export async function countRolesLocked(tx: Handle, appId: string): Promise<number> {
  await lockName(tx, `roles ${appId}`);
  return query(tx).number('SELECT count(*) AS count FROM role WHERE app_id = $1', [appId]);
}

/** Inserts a role. Throws a unique violation if the name is taken. */
export const insertRole = (
  tx: Handle,
  appId: string,
  { objectId, draft, now }: { objectId: string; draft: RoleDraft; now: Date },
) =>
  query(tx).one<Role>(
    `INSERT INTO role (app_id, object_id, name, acl, fields, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING ${columns}`,
    [appId, objectId, draft.name, JSON.stringify(draft.acl), JSON.stringify(draft.fields), now],
  );

/** Updates a locked role. */
export const updateRole = (
  tx: Handle,
  appId: string,
  { id, draft, now }: { id: number; draft: RoleDraft; now: Date },
) =>
  query(tx).one<Role>(
    `UPDATE role SET acl = $3, fields = $4, updated_at = $5 WHERE app_id = $1 AND id = $2
      RETURNING ${columns}`,
    [appId, id, JSON.stringify(draft.acl), JSON.stringify(draft.fields), now],
  );

/** Deletes a role with its memberships. */
export const deleteRole = (tx: Handle, appId: string, id: number) =>
  query(tx).run('DELETE FROM role WHERE app_id = $1 AND id = $2', [appId, id]);

/**
 * Tables of each relation: the table of pairs, its column of members, and the table of the members.
 */
export const links = {
  users: { table: 'role_user', column: 'user_id', members: 'app_user' },
  roles: { table: 'role_role', column: 'child_id', members: 'role' },
} as const satisfies Record<RelationName, object>;

export interface Members {
  roleId: number;
  relation: RelationName;
  /** Public ids without duplicates. */
  objectIds: string[];
}

/** Adds members to a relation of a locked role. Returns the number of ids that exist. */
export function addMembers(
  tx: Handle,
  appId: string,
  { roleId, relation, objectIds }: Members,
): Promise<number> {
  const { table, column, members } = links[relation];
  return query(tx).number(
    `WITH found AS MATERIALIZED (
       SELECT id FROM ${members} WHERE app_id = $1 AND object_id = ANY($3::text[])),
     added AS (
       INSERT INTO ${table} (app_id, role_id, ${column}) SELECT $1, $2, id FROM found ORDER BY id
       ON CONFLICT DO NOTHING)
     SELECT count(*) AS count FROM found`,
    [appId, roleId, objectIds],
  );
}

/** Removes members from a relation of a locked role. Ignores ids of other objects. */
export async function removeMembers(
  tx: Handle,
  appId: string,
  { roleId, relation, objectIds }: Members,
): Promise<void> {
  const { table, column, members } = links[relation];
  await tx.query(
    `DELETE FROM ${table} WHERE app_id = $1 AND role_id = $2
        AND ${column} IN (SELECT id FROM ${members} WHERE app_id = $1
          AND object_id = ANY($3::text[]))`,
    [appId, roleId, objectIds],
  );
}

/** Maximum levels from a role of the user up to the roles that contain it. */
export const maxRoleDepth = 10;
/** Maximum roles of a user. The nearest roles count. */
export const maxRolesOfUser = 1000;
/** Maximum pairs per level. It limits the load of roles that all contain each other. */
const maxPairsPerStep = 20_000;

export const hasAnyRole = (db: Handle, appId: string) =>
  query(db).boolean('SELECT EXISTS (SELECT FROM role WHERE app_id = $1) AS is_there', [appId]);

/**
 * Finds the names of a user's roles, nearest first: roles with the user in `users`, and roles whose
 * `roles` contain one of these, up to `maxRoleDepth` levels. Visits each role once, so a cycle
 * ends.
 */
export const findRolesOfUser = (db: Handle, appId: string, userId: number) =>
  query(db).column<string>(
    `WITH RECURSIVE level (depth, found, known) AS (
       SELECT 0, own.ids, own.ids FROM (SELECT ARRAY(
         SELECT role_id FROM role_user WHERE app_id = $1 AND user_id = $2 LIMIT $5) AS ids) AS own
       UNION ALL
       SELECT depth + 1, parents.ids, known || parents.ids
         FROM level CROSS JOIN LATERAL (SELECT ARRAY(
           SELECT role_id FROM (
             SELECT role_id FROM role_role WHERE app_id = $1 AND child_id = ANY(level.found)
               LIMIT $4) AS pairs
           EXCEPT SELECT unnest(level.known) LIMIT $5 - cardinality(level.known)) AS ids) AS parents
        WHERE depth < $3 AND cardinality(found) > 0)
     SELECT role.name FROM level, unnest(level.found) AS held (id)
       JOIN role ON role.app_id = $1 AND role.id = held.id
      ORDER BY level.depth, role.name`,
    [appId, userId, maxRoleDepth, maxPairsPerStep, maxRolesOfUser],
  );
