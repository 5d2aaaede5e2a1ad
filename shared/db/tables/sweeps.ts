import type { Handle } from '../pool.ts';

/** A row by its key within an app. */
export interface AppRow {
  app_id: string;
  id: number;
}

/**
 * Runs `work` for each app of the found rows, with the ids of its rows; the statements of `work` lock and change them. A
 * statement that locks names one app: a database that is sharded by app_id locks no rows of several. `find` locks none, so the
 * statements of `work` test its condition again.
 */
export async function forEachApp<T>(
  tx: Handle,
  find: { text: string; values: unknown[] },
  work: (appId: string, ids: string) => Promise<readonly T[]>,
): Promise<T[]> {
  const { rows } = await tx.query<AppRow>(find.text, find.values);
  const done: T[] = [];
  for (const [appId, ofApp] of Map.groupBy(rows, (row) => row.app_id))
    done.push(...(await work(appId, `{${ofApp.map(({ id }) => id).join()}}`)));
  return done;
}
