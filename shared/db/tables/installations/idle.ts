import type { Database, Handle } from '../../pool.ts';

/** Page of a walk over the installations of an app, in the order of their keys. */
interface IdlePage {
  appId: string;
  /** Those that were neither updated nor imported since are idle. */
  before: Date;
  /** Key that the page begins after; 0 by default. */
  afterId?: number;
  /** Most installations that are read. */
  rows?: number;
  /** Most installations that are deleted. */
  limit: number;
}

/** Result of a page. */
interface IdlePageResult {
  deleted: number;
  /** Key that the next page begins after; null after the last one. */
  nextAfterId: number | null;
}

/** Installations that one statement reads: some milliseconds. */
export const rowsOfPage = 5000;

/** Deletes the idle installations of a page; skips those that are being saved. */
export async function deleteIdleInstallations(
  db: Handle,
  { appId, before, afterId = 0, rows = rowsOfPage, limit }: IdlePage,
): Promise<IdlePageResult> {
  const { rows: found } = await db.query<{
    read: number;
    lastId: number;
    deleted: number;
    lastDeleted: number;
  }>(
    `WITH page AS MATERIALIZED (
       SELECT id FROM installation WHERE app_id = $1 AND id > $2 ORDER BY id LIMIT $3
     ), idle AS MATERIALIZED (
       SELECT id FROM installation
        WHERE app_id = $1 AND id > $2 AND id <= (SELECT max(id) FROM page)
          AND updated_at < $4 AND (imported_at IS NULL OR imported_at < $4)
        ORDER BY id LIMIT $5 FOR UPDATE SKIP LOCKED
     ), deleted AS (
       DELETE FROM installation i USING idle WHERE i.app_id = $1 AND i.id = idle.id
     )
     SELECT (SELECT count(*) FROM page) AS read, (SELECT max(id) FROM page) AS "lastId",
            count(*) AS deleted, max(id) AS "lastDeleted" FROM idle`,
    [appId, afterId, rows, before, limit],
  );
  const { read = 0, lastId = 0, deleted = 0, lastDeleted = 0 } = found[0] ?? {};
  if (deleted >= limit) return { deleted, nextAfterId: lastDeleted };
  return { deleted, nextAfterId: read < rows ? null : lastId };
}

/** Time of a walk. */
interface IdleWalk {
  appId: string;
  before: Date;
  limit: number;
  now: Date;
  /** Start of the next walk after one of several pages; one of a single page begins again with the next call. */
  nextAt: Date;
}

/**
 * Makes the next page of an app's walk, unless another process does so now or the next walk is later. Returns the number of
 * deleted installations; `limit` if a further page follows.
 */
export function continueIdleWalk(db: Database, walk: IdleWalk): Promise<number> {
  const { appId, before, limit, now, nextAt } = walk;
  return db.transaction(async (tx) => {
    await tx.query(
      'INSERT INTO idle_walk (app_id) SELECT app_id FROM app WHERE app_id = $1 ON CONFLICT DO NOTHING',
      [appId],
    );
    const { rows } = await tx.query<{ after_id: number }>(
      'SELECT after_id FROM idle_walk WHERE app_id = $1 AND next_at <= $2 FOR NO KEY UPDATE SKIP LOCKED',
      [appId, now],
    );
    const afterId = rows[0]?.after_id;
    if (afterId === undefined) return 0;
    const { deleted, nextAfterId } = await deleteIdleInstallations(tx, { appId, before, afterId, limit });
    if (nextAfterId === null && afterId === 0) return deleted;
    await tx.query('UPDATE idle_walk SET after_id = $2, next_at = $3 WHERE app_id = $1', [
      appId,
      nextAfterId ?? 0,
      nextAfterId === null ? nextAt : now,
    ]);
    return nextAfterId === null ? deleted : limit;
  });
}
