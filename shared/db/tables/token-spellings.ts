import { comparedToken } from '../../domain/installations/identity.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Database, Handle } from '../pool.ts';
import { query } from '../query.ts';
import { forEachApp } from '../sharding.ts';

/** Condition of the index `installation_token_spelling`. */
const isAsSent = `device_token COLLATE "C" ~ '^[0-9A-Fa-f]*[A-F][0-9A-Fa-f]*$'`;
const asSent = `SELECT app_id, id FROM installation WHERE ${isAsSent} ORDER BY app_id, id LIMIT $1`;

interface TokenRow {
  id: number;
  token: string;
  updated_at: Date;
}

/**
 * Rewrites up to `limit` tokens that an older version stored as they were sent, and merges
 * installations whose tokens differ only in spelling. Returns the number of rows read. Skips
 * installations that are being saved.
 */
export function rewriteTokens(db: Database, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await forEachApp(tx, { text: asSent, values: [limit] }, async (appId, ids) => {
      const locked = await query(tx).rows<TokenRow>(
        `SELECT id, device_token AS token, updated_at FROM installation
          WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND ${isAsSent} ORDER BY id
            FOR UPDATE SKIP LOCKED`,
        [appId, ids],
      );
      await rewriteRows(tx, appId, locked);
      return locked;
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
    else if (holder || free.has(token))
      await merge(tx, appId, holder ? [holder, ...spellings] : spellings);
  }
  if (single.length > 0) await rewrite(tx, appId, single);
}

/**
 * Finds which tokens no installation has in normal form. For the other tokens, locks the
 * installations that have them, unless they are being saved.
 */
async function findHolders(
  tx: Handle,
  appId: string,
  tokens: readonly string[],
): Promise<{ free: ReadonlySet<string>; holders: ReadonlyMap<string, TokenRow> }> {
  const select =
    'SELECT id, device_token AS token, updated_at FROM installation WHERE app_id = $1 AND device_token = ANY ($2::text[])';
  const taken = await query(tx).rows<TokenRow>(select, [appId, tokens]);
  const isTaken = new Set(taken.map(({ token }) => token));
  const free = new Set(tokens.filter((token) => !isTaken.has(token)));
  if (isTaken.size === 0) return { free, holders: new Map() };
  const lock = `${select} ORDER BY id FOR UPDATE SKIP LOCKED`;
  const locked = await query(tx).rows<TokenRow>(lock, [appId, [...isTaken]]);
  return { free, holders: new Map(locked.map((row) => [row.token, row])) };
}

const rewrite = (tx: Handle, appId: string, ids: readonly number[]) =>
  tx.query(
    `UPDATE installation SET device_token = lower(device_token COLLATE "C"),
      device_token_sent = device_token
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
 * Keeps the installation that was saved last, and deletes the others. Missing members are copied
 * from the deleted ones, because a client may have registered another spelling with its token
 * alone.
 */
async function merge(tx: Handle, appId: string, rows: readonly TokenRow[]): Promise<void> {
  const [kept, ...older] = rows.toSorted(
    (a, b) => b.updated_at.getTime() - a.updated_at.getTime() || b.id - a.id,
  );
  if (!kept) return;
  for (const { id } of older) {
    const row = await query(tx).row<MergedRow>(
      'DELETE FROM installation WHERE app_id = $1 AND id = $2 RETURNING installation_id, channels, time_zone, fields',
      [appId, id],
    );
    if (!row) continue;
    await tx.query(
      `UPDATE installation SET installation_id = coalesce(installation_id, $3),
              channels = coalesce(channels, $4), time_zone = coalesce(time_zone, $5),
              fields = $6::jsonb || fields
        WHERE app_id = $1 AND id = $2`,
      [appId, kept.id, row.installation_id, row.channels, row.time_zone, row.fields],
    );
  }
  await rewrite(tx, appId, [kept.id]);
}
