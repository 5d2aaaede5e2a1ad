import { namesOfToken } from '../../../domain/installations/identity.ts';
import type { Handle } from '../../pool.ts';

/** Thing that a search found. */
export interface Hit {
  kind: 'app' | 'push' | 'installation' | 'user';
  appId: string;
  id: string;
  title: string;
}

/** Most results of each kind. */
const maxOfKind = 10;

/** Finds apps by id, or by a part of the name. */
export async function searchApps(db: Handle, apps: readonly string[] | null, q: string): Promise<Hit[]> {
  const { rows } = await db.query<Hit>(
    `SELECT 'app' AS kind, app_id AS "appId", app_id AS id, name AS title FROM app
      WHERE ($1::text[] IS NULL OR app_id = ANY($1)) AND (app_id = $2 OR position(lower($2) IN lower(name)) > 0)
      ORDER BY app_id = $2 DESC, name, app_id LIMIT ${maxOfKind}`,
    [apps, q],
  );
  return rows;
}

/** Finds pushes by objectId or notification_id. */
export async function searchPushes(db: Handle, apps: readonly string[], q: string): Promise<Hit[]> {
  const { rows } = await db.query<Hit>(
    `SELECT 'push' AS kind, app_id AS "appId", object_id AS id, state AS title FROM notification
      WHERE app_id = ANY($1) AND (object_id = $2 OR notification_id = $2)
      ORDER BY id DESC LIMIT ${maxOfKind}`,
    [apps, q],
  );
  return rows;
}

/** Finds installations by any of their ids. */
export async function searchInstallations(db: Handle, apps: readonly string[], q: string): Promise<Hit[]> {
  const { rows } = await db.query<Hit>(
    `SELECT 'installation' AS kind, app_id AS "appId", object_id AS id,
            concat_ws(' ', device_type, vendor_name) AS title FROM installation
      WHERE app_id = ANY($1)
        AND (object_id = $2 OR installation_id = $2 OR device_token = ANY($3) OR registration_id = $2)
      LIMIT ${maxOfKind}`,
    [apps, q, namesOfToken(q)],
  );
  return rows;
}

/** Finds users by objectId, name, address or number. */
export async function searchUsers(db: Handle, apps: readonly string[], q: string): Promise<Hit[]> {
  const { rows } = await db.query<Hit>(
    `SELECT 'user' AS kind, app_id AS "appId", object_id AS id, username AS title FROM app_user
      WHERE app_id = ANY($1)
        AND (object_id = $2 OR username = $2 OR email = $2 OR mobile_phone_number = $3)
      LIMIT ${maxOfKind}`,
    [apps, q, q.replaceAll(/[ -]/g, '')],
  );
  return rows;
}
