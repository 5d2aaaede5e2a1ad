import type { Database, Handle } from '../pool.ts';
import { query } from '../query.ts';
import { vendorOfRow } from './installations.ts';

/** Maximum registration ids that one statement reads. This takes some milliseconds. */
const idsOfPage = 5000;
/** If at least this many installations lose their registration id, the page is read again. */
const releasedAtOnce = 1000;

/** A scan over the installations of an app, one page at a time. */
interface Walk {
  appId: string;
  now: Date;
  /**
   * Start of the next scan after a scan of several pages. A scan of a single page begins again at
   * once.
   */
  nextAt: Date;
}

/**
 * Runs the next page of a scan, unless another process is doing so or the next scan is not due.
 * `makePage` gets the position where the page begins, and returns the position of the next page, or
 * null after the last page. Returns the same.
 */
async function continueWalk<P extends string | number>(
  tx: Handle,
  { table, column, start }: { table: string; column: string; start: P },
  { appId, now, nextAt }: Walk,
  makePage: (after: P) => Promise<P | null>,
): Promise<P | null> {
  await tx.query(
    `INSERT INTO ${table} (app_id) SELECT app_id FROM app WHERE app_id = $1 ON CONFLICT DO NOTHING`,
    [appId],
  );
  const after = await query(tx).value<P>(
    `SELECT ${column} FROM ${table} WHERE app_id = $1
      AND next_at <= $2 FOR NO KEY UPDATE SKIP LOCKED`,
    [appId, now],
  );
  if (after === undefined) return null;
  const next = await makePage(after);
  if (next === null && after === start) return null;
  const values = [appId, next ?? start, next === null ? nextAt : now];
  await tx.query(`UPDATE ${table} SET ${column} = $2, next_at = $3 WHERE app_id = $1`, values);
  return next;
}

const registrationWalk = { table: 'registration_walk', column: 'after', start: '' };
const idleWalk = { table: 'idle_walk', column: 'after_id', start: 0 };

/**
 * Runs the next page of an app's scan over its registration ids (`continueWalk`). If installations
 * of a vendor have the same id, the installation that was saved last keeps it. Returns whether
 * another page follows.
 */
export const continueRegistrationWalk = (db: Database, walk: Walk): Promise<boolean> =>
  db.transaction(async (tx) => {
    const makePage = (after: string) => releasePage(tx, walk.appId, after);
    return (await continueWalk(tx, registrationWalk, walk, makePage)) !== null;
  });

/**
 * Makes the next scan due now, because an import may have written registration ids that devices
 * already have.
 */
export const hastenRegistrationWalk = (db: Handle, appId: string) =>
  db.query("UPDATE registration_walk SET next_at = '-infinity' WHERE app_id = $1", [appId]);

/** Returns the registration id after which the next page begins. Null after the last page. */
async function releasePage(tx: Handle, appId: string, after: string): Promise<string | null> {
  const { read, last, repeated } = await query(tx).one<{
    read: number;
    last: string | null;
    repeated: string[];
  }>(
    `WITH page AS MATERIALIZED (
       SELECT registration_id FROM installation WHERE app_id = $1 AND registration_id > $2
        ORDER BY registration_id LIMIT ${idsOfPage})
     SELECT count(*) AS read, max(registration_id) AS last,
            ARRAY(SELECT registration_id FROM page GROUP BY 1 HAVING count(*) > 1) AS repeated
              FROM page`,
    [appId, after],
  );
  const isLast = read < idsOfPage;
  // The last id of a full page may have more rows on the next page.
  const ids = isLast || last === null ? repeated : [...repeated, last];
  if (ids.length > 0 && (await release(tx, appId, ids)) >= releasedAtOnce) return after;
  return isLast ? null : last;
}

const release = (tx: Handle, appId: string, ids: readonly string[]) =>
  query(tx).rowCount(
    `WITH locked AS MATERIALIZED (
       SELECT id, registration_id, ${vendorOfRow} AS owner, updated_at FROM installation
        WHERE app_id = $1 AND registration_id = ANY ($2::text[]) AND ${vendorOfRow} IS NOT NULL
        LIMIT ${idsOfPage} FOR UPDATE SKIP LOCKED),
     ranked AS (
       SELECT id, row_number() OVER (PARTITION BY registration_id, owner
         ORDER BY updated_at DESC, id DESC) AS place
         FROM locked)
     UPDATE installation i SET registration_id = NULL FROM ranked r
      WHERE i.app_id = $1 AND i.id = r.id AND r.place > 1`,
    [appId, ids],
  );

/** Installations that one statement reads. This takes some milliseconds. */
export const rowsOfPage = 5000;

/**
 * Installations that were neither updated nor imported since `before`, and the maximum that a page
 * deletes.
 */
interface IdleInstallations {
  appId: string;
  before: Date;
  limit: number;
}

/**
 * Deletes the idle installations of a page. Skips installations that are being saved. Returns their
 * number, and the id after which the next page begins, or null after the last page.
 */
async function deleteIdlePage(
  tx: Handle,
  { appId, before, limit }: IdleInstallations,
  after: number,
): Promise<{ deleted: number; next: number | null }> {
  const found = await query(tx).one<{
    read: number;
    lastId: number;
    deleted: number;
    lastDeleted: number;
  }>(
    `WITH page AS MATERIALIZED (
       SELECT id FROM installation WHERE app_id = $1 AND id > $2 ORDER BY id LIMIT ${rowsOfPage}
     ), idle AS MATERIALIZED (
       SELECT id FROM installation
        WHERE app_id = $1 AND id > $2 AND id <= (SELECT max(id) FROM page)
          AND updated_at < $3 AND (imported_at IS NULL OR imported_at < $3)
        ORDER BY id LIMIT $4 FOR UPDATE SKIP LOCKED
     ), deleted AS (
       DELETE FROM installation i USING idle WHERE i.app_id = $1 AND i.id = idle.id
     )
     SELECT (SELECT count(*) FROM page) AS read, (SELECT max(id) FROM page) AS "lastId",
            count(*) AS deleted, max(id) AS "lastDeleted" FROM idle`,
    [appId, after, before, limit],
  );
  const { read, lastId, deleted, lastDeleted } = found;
  if (deleted >= limit) return { deleted, next: lastDeleted };
  return { deleted, next: read < rowsOfPage ? null : lastId };
}

/**
 * Runs the next page of an app's scan for idle installations (`continueWalk`). Returns the number
 * of deleted installations, or `limit` if another page follows.
 */
export const continueIdleWalk = (db: Database, walk: Walk & IdleInstallations): Promise<number> =>
  db.transaction(async (tx) => {
    let deleted = 0;
    const next = await continueWalk(tx, idleWalk, walk, async (after: number) => {
      const page = await deleteIdlePage(tx, walk, after);
      deleted = page.deleted;
      return page.next;
    });
    return next === null ? deleted : walk.limit;
  });
