/**
 * Leaves one installation of each device where older versions, imports or concurrent calls made
 * several (protocol/installations.md#registration).
 */
import { comparedToken } from '../../../domain/installations/identity.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { Database, Handle } from '../../pool.ts';
import { forEachApp } from '../sweeps.ts';
import { vendorOfRow } from './installations.ts';

/** The condition of the index `installation_token_spelling`. */
const isAsSent = `device_token COLLATE "C" ~ '^[0-9A-Fa-f]*[A-F][0-9A-Fa-f]*$'`;
const asSent = `SELECT app_id, id FROM installation WHERE ${isAsSent} ORDER BY app_id, id LIMIT $1`;

interface TokenRow {
  id: number;
  token: string;
  updated_at: Date;
}

/**
 * Rewrites up to `limit` tokens that an older version stored as they were sent, and merges the
 * installations of a token with several spellings. Returns the number of rows read. Skips
 * installations that are being saved.
 */
export function rewriteTokens(db: Database, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await forEachApp(tx, { text: asSent, values: [limit] }, async (appId, ids) => {
      const locked = await tx.query<TokenRow>(
        `SELECT id, device_token AS token, updated_at FROM installation
          WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND ${isAsSent} ORDER BY id FOR UPDATE SKIP LOCKED`,
        [appId, ids],
      );
      await rewriteRows(tx, appId, locked.rows);
      return locked.rows;
    });
    return rows.length;
  });
}

async function rewriteRows(tx: Handle, appId: string, rows: readonly TokenRow[]): Promise<void> {
  const byToken = Map.groupBy(rows, ({ token }) => comparedToken(token));
  const { free, holders } = await findHolders(tx, appId, [...byToken.keys()]);
  const single: number[] = [];
  for (const [token, spellings] of byToken) {
    const holder = holders.get(token);
    const [first, ...others] = spellings;
    if (first && others.length === 0 && free.has(token)) single.push(first.id);
    else if (holder || free.has(token)) await merge(tx, appId, holder ? [holder, ...spellings] : spellings);
  }
  if (single.length > 0) await rewrite(tx, appId, single);
}

/**
 * Finds which tokens no installation holds as they are compared, and locks the holders of the
 * others that no call is saving.
 */
async function findHolders(
  tx: Handle,
  appId: string,
  tokens: readonly string[],
): Promise<{ free: ReadonlySet<string>; holders: ReadonlyMap<string, TokenRow> }> {
  const select =
    'SELECT id, device_token AS token, updated_at FROM installation WHERE app_id = $1 AND device_token = ANY ($2::text[])';
  const taken = await tx.query<TokenRow>(select, [appId, tokens]);
  const isTaken = new Set(taken.rows.map(({ token }) => token));
  const free = new Set(tokens.filter((token) => !isTaken.has(token)));
  if (isTaken.size === 0) return { free, holders: new Map() };
  const locked = await tx.query<TokenRow>(`${select} ORDER BY id FOR UPDATE SKIP LOCKED`, [
    appId,
    [...isTaken],
  ]);
  return { free, holders: new Map(locked.rows.map((row) => [row.token, row])) };
}

const rewrite = (tx: Handle, appId: string, ids: readonly number[]) =>
  tx.query(
    `UPDATE installation SET device_token = lower(device_token COLLATE "C"), device_token_sent = device_token
      WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND ${isAsSent}`,
    [appId, ids],
  );

interface MergedRow {
  installation_id: string | null;
  channels: string[] | null;
  time_zone: string | null;
  fields: JsonObject;
}

/**
 * Keeps the installation that was saved last, and deletes the others. What it lacks it gets from
 * these: a client that registered with another spelling may have sent its token alone.
 */
async function merge(tx: Handle, appId: string, rows: readonly TokenRow[]): Promise<void> {
  const [kept, ...older] = rows.toSorted(
    (a, b) => b.updated_at.getTime() - a.updated_at.getTime() || b.id - a.id,
  );
  if (!kept) return;
  for (const { id } of older) {
    const deleted = await tx.query<MergedRow>(
      'DELETE FROM installation WHERE app_id = $1 AND id = $2 RETURNING installation_id, channels, time_zone, fields',
      [appId, id],
    );
    const [row] = deleted.rows;
    if (!row) continue;
    await tx.query(
      `UPDATE installation SET installation_id = coalesce(installation_id, $3), channels = coalesce(channels, $4),
              time_zone = coalesce(time_zone, $5), fields = $6::jsonb || fields
        WHERE app_id = $1 AND id = $2`,
      [appId, kept.id, row.installation_id, row.channels, row.time_zone, JSON.stringify(row.fields)],
    );
  }
  await rewrite(tx, appId, [kept.id]);
}

/** Registration ids that one statement reads: some milliseconds. */
const idsOfPage = 5000;
/** Installations that lose their registration id, from which on the page is read again. */
const releasedAtOnce = 1000;

/** Time of a walk. */
export interface RegistrationWalk {
  appId: string;
  now: Date;
  /**
   * Start of the next walk after one of several pages; one of a single page begins again with the
   * next call.
   */
  nextAt: Date;
}

/**
 * Makes the next page of an app's walk over its registration ids, unless another process does so
 * now or the next walk is later. Of the installations with an id of the same vendor, the one that
 * was saved last keeps it. Returns whether a further page follows.
 */
export function continueRegistrationWalk(
  db: Database,
  { appId, now, nextAt }: RegistrationWalk,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.query(
      'INSERT INTO registration_walk (app_id) SELECT app_id FROM app WHERE app_id = $1 ON CONFLICT DO NOTHING',
      [appId],
    );
    const { rows } = await tx.query<{ after: string }>(
      'SELECT after FROM registration_walk WHERE app_id = $1 AND next_at <= $2 FOR NO KEY UPDATE SKIP LOCKED',
      [appId, now],
    );
    const after = rows[0]?.after;
    if (after === undefined) return false;
    const last = await releasePage(tx, appId, after);
    if (last === null && after === '') return false;
    await tx.query('UPDATE registration_walk SET after = $2, next_at = $3 WHERE app_id = $1', [
      appId,
      last ?? '',
      last === null ? nextAt : now,
    ]);
    return last !== null;
  });
}

/**
 * Lets the next walk of an app begin at once: an import may have written registration ids that
 * devices have.
 */
export const hastenRegistrationWalk = (db: Handle, appId: string) =>
  db.query("UPDATE registration_walk SET next_at = '-infinity' WHERE app_id = $1", [appId]);

/**
 * Goes on behind a registration id; returns the one that the next page begins behind, null after
 * the last page.
 */
async function releasePage(tx: Handle, appId: string, after: string): Promise<string | null> {
  const { rows } = await tx.query<{ read: number; last: string | null; repeated: string[] }>(
    `WITH page AS MATERIALIZED (
       SELECT registration_id FROM installation WHERE app_id = $1 AND registration_id > $2
        ORDER BY registration_id LIMIT ${idsOfPage})
     SELECT count(*) AS read, max(registration_id) AS last,
            ARRAY(SELECT registration_id FROM page GROUP BY 1 HAVING count(*) > 1) AS repeated FROM page`,
    [appId, after],
  );
  const { read = 0, last = null, repeated = [] } = rows[0] ?? {};
  const isLast = read < idsOfPage;
  // The last id of a full page may have more rows behind it.
  const ids = isLast || last === null ? repeated : [...repeated, last];
  if (ids.length > 0 && (await release(tx, appId, ids)) >= releasedAtOnce) return after;
  return isLast ? null : last;
}

async function release(tx: Handle, appId: string, ids: readonly string[]): Promise<number> {
  const { rowCount } = await tx.query(
    `WITH locked AS MATERIALIZED (
       SELECT id, registration_id, ${vendorOfRow} AS owner, updated_at FROM installation
        WHERE app_id = $1 AND registration_id = ANY ($2::text[]) AND ${vendorOfRow} IS NOT NULL
        LIMIT ${idsOfPage} FOR UPDATE SKIP LOCKED),
     ranked AS (
       SELECT id, row_number() OVER (PARTITION BY registration_id, owner ORDER BY updated_at DESC, id DESC) AS place
         FROM locked)
     UPDATE installation i SET registration_id = NULL FROM ranked r
      WHERE i.app_id = $1 AND i.id = r.id AND r.place > 1`,
    [appId, ids],
  );
  return rowCount ?? 0;
}
