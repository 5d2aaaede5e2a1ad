import type { Handle } from '../../pool.ts';

/** Limit of levels from a role of the user up to the roles that contain it. */
export const maxRoleDepth = 10;
/** Limit of roles per user; the nearest count. */
export const maxRolesOfUser = 1000;
/** Limit of pairs per level, which bounds the load of roles that all contain each other. */
const maxPairsPerStep = 20_000;

export async function hasAnyRole(db: Handle, appId: string): Promise<boolean> {
  const { rows } = await db.query<{ is_there: boolean }>(
    'SELECT EXISTS (SELECT FROM role WHERE app_id = $1) AS is_there',
    [appId],
  );
  return rows[0]?.is_there ?? false;
}

/**
 * Finds the names of a user's roles, the nearest first: roles with the user in `users`, and roles with one of those in
 * `roles`, up to `maxRoleDepth` levels. Visits each role once, so a cycle ends.
 */
export async function findRolesOfUser(db: Handle, appId: string, userId: number): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `WITH RECURSIVE level (depth, found, known) AS (
       SELECT 0, own.ids, own.ids FROM (SELECT ARRAY(
         SELECT role_id FROM role_user WHERE app_id = $1 AND user_id = $2 LIMIT $5) AS ids) AS own
       UNION ALL
       SELECT depth + 1, parents.ids, known || parents.ids
         FROM level CROSS JOIN LATERAL (SELECT ARRAY(
           SELECT role_id FROM (
             SELECT role_id FROM role_role WHERE app_id = $1 AND child_id = ANY(level.found) LIMIT $4) AS pairs
           EXCEPT SELECT unnest(level.known) LIMIT $5 - cardinality(level.known)) AS ids) AS parents
        WHERE depth < $3 AND cardinality(found) > 0)
     SELECT role.name FROM level, unnest(level.found) AS held (id)
       JOIN role ON role.app_id = $1 AND role.id = held.id
      ORDER BY level.depth, role.name`,
    [appId, userId, maxRoleDepth, maxPairsPerStep, maxRolesOfUser],
  );
  return rows.map(({ name }) => name);
}
