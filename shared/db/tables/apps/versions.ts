import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';

/** Versions of an app's row and of its profiles: equal ones mean that nothing was written in between. */
export interface AppVersions {
  app: string;
  profiles: string;
}

const versionsText = (condition: string): string =>
  `SELECT a.app_id, a.xmin::text AS app,
          coalesce((SELECT string_agg(concat_ws(' ', p.xmin, p.connector, p.name), ',' ORDER BY p.connector, p.name)
                      FROM push_profile p WHERE p.app_id = a.app_id), '') AS profiles
     FROM app a WHERE a.app_id ${condition}`;

const severalStatement = prepare(versionsText('= ANY($1::text[])'));
/** For one app: the plan for a list depends on its length, so that PostgreSQL would plan each time. */
const oneStatement = prepare(versionsText('= $1'));

/** Reads the versions of apps, in their order; undefined for an unknown one. Decrypts nothing. */
export async function readAppVersions(
  db: Handle,
  appIds: readonly string[],
): Promise<(AppVersions | undefined)[]> {
  // An app and its profiles are asked for at the same time.
  const distinct = [...new Set(appIds)];
  const [statement, value] =
    distinct.length === 1 ? [oneStatement, distinct[0]] : [severalStatement, distinct];
  const { rows } = await db.query<AppVersions & { app_id: string }>(statement, [value]);
  const byId = new Map(rows.map(({ app_id: appId, ...versions }) => [appId, versions]));
  return appIds.map((appId) => byId.get(appId));
}
