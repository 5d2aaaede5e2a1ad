import type { FunctionStage } from '../../../domain/apps/functions.ts';
import type { Handle } from '../../pool.ts';

/** Function host of one stage of an app. A list of hooks is valid for this URL only. */
export interface DeclaringHost {
  appId: string;
  stage: FunctionStage;
  url: string;
}

/** Saves the hooks that a host declares. Replaces those that the app's host of this stage declared before. */
export async function keepDeclaredHooks(
  db: Handle,
  { appId, stage, url }: DeclaringHost,
  names: readonly string[],
): Promise<void> {
  await db.query(
    `INSERT INTO declared_hooks AS d (app_id, stage, url, names)
     SELECT app_id, $2, $3, $4 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, stage)
     DO UPDATE SET url = excluded.url, names = excluded.names, declared_at = excluded.declared_at
      WHERE (d.url, d.names) IS DISTINCT FROM (excluded.url, excluded.names)`,
    [appId, stage, url, names],
  );
}

/** Finds the hooks that a host declared last; undefined before its first declaration. */
export async function findDeclaredHooks(
  db: Handle,
  { appId, stage, url }: DeclaringHost,
): Promise<string[] | undefined> {
  const { rows } = await db.query<{ names: string[] }>(
    'SELECT names FROM declared_hooks WHERE app_id = $1 AND stage = $2 AND url = $3',
    [appId, stage, url],
  );
  return rows[0]?.names;
}
