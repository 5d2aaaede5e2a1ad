import type { Vault } from '../../../crypto.ts';
import type { Handle } from '../../pool.ts';
import type { SealedPlace, SealedRow } from './places.ts';

/** Values of the key's columns after `app_id`, as text; undefined for the beginning. */
export type Position = string[] | undefined;

/** Page of rows of one app. */
export interface SealedPage {
  /** Rows with a value that is not under the first key. */
  old: SealedRow[];
  /** Key of the last row; undefined after the end. */
  last: Position;
}

/** Reads up to `limit` rows of an app after a position, and the values among them that are not under the key `first`. */
export async function readSealedPage(
  db: Handle,
  place: SealedPlace,
  { appId, after, first, limit }: { appId: string; after: Position; first: string; limit: number },
): Promise<SealedPage> {
  const key = Object.entries(place.key);
  const names = key.map(([name]) => name);
  const columns = [...names, ...place.context];
  const later = key.map(([, type], i) => `$${i + 4}::text::${type}`);
  const from = after && names.length > 0 ? `AND (${listOf(names, 't.')}) > (${later.join(', ')})` : '';
  const { rows } = await db.query<{ columns: Record<string, string>; value: string | null }>(
    `SELECT ${pairsOf(columns)} AS columns,
            CASE WHEN EXISTS (SELECT FROM unnest(${place.keyIds}) AS k (id) WHERE k.id <> $2)
                 THEN t.${place.column}::text END AS value
       FROM ${place.table} t WHERE t.app_id = $1 ${from}
      ORDER BY ${listOf(['app_id', ...names], 't.')} LIMIT $3`,
    [appId, first, limit, ...(from === '' ? [] : (after ?? []))],
  );
  const old = rows.flatMap(({ columns: found, value }) =>
    value === null ? [] : [{ appId, columns: found, value }],
  );
  const end = rows.length < limit ? undefined : rows.at(-1)?.columns;
  return { old, last: end && names.map((name) => end[name] ?? '') };
}

/**
 * Encrypts values under the first key, each only if it is still the one that was read. Skips rows that another transaction
 * holds. Returns how many changed, and how many no key decrypts.
 */
export async function resealRows(
  db: Handle,
  vault: Vault,
  place: SealedPlace,
  rows: readonly SealedRow[],
): Promise<{ changed: number; unreadable: number }> {
  const renewed = rows.flatMap((row) => {
    const value = place.reseal(vault, row);
    return value === undefined ? [] : [{ row, value }];
  });
  const unreadable = rows.length - renewed.length;
  const appId = renewed[0]?.row.appId;
  if (appId === undefined) return { changed: 0, unreadable };
  const key = Object.entries(place.key);
  const names = key.map(([name]) => name);
  const { rowCount } = await db.query(resealStatement(place), [
    appId,
    renewed.map(({ row }) => row.value),
    renewed.map(({ value }) => value),
    ...names.map((name) => renewed.map(({ row }) => row.columns[name] ?? '')),
  ]);
  return { changed: rowCount ?? 0, unreadable };
}

/** Returns the statement that stores renewed values: it locks in the order of the key, and never waits for a lock. */
function resealStatement({ table, column, type, key, stored }: SealedPlace): string {
  const names = Object.keys(key);
  const types = Object.values(key);
  const lists = ['$2::text[]', '$3::text[]', ...names.map((_, i) => `$${i + 4}::text[]`)];
  const same = (left: string, right: string) =>
    names.map((name) => `AND ${left}.${name} = ${right}.${name}`).join(' ');
  const typed = names.map((name, i) => `, g.${name}::${types[i]} AS ${name}`).join('');
  return `
    WITH n AS MATERIALIZED (
      SELECT g.value::${type} AS value, g.renewed::${type} AS renewed${typed}
        FROM unnest(${lists.join(', ')}) AS g (value, renewed${names.map((name) => `, ${name}`).join('')})),
    locked AS MATERIALIZED (
      SELECT n.* FROM n, ${table} t WHERE t.app_id = $1 AND t.${column} = n.value ${same('t', 'n')}
       ORDER BY ${listOf(['app_id', ...names], 't.')} FOR NO KEY UPDATE OF t SKIP LOCKED)
    UPDATE ${table} t SET ${column} = ${stored} FROM locked n
     WHERE t.app_id = $1 AND t.${column} = n.value ${same('t', 'n')}`;
}

const listOf = (names: readonly string[], prefix: string): string =>
  names.map((name) => prefix + name).join(', ');

const pairsOf = (names: readonly string[]): string =>
  `jsonb_build_object(${names.map((name) => `'${name}', t.${name}::text`).join(', ')})`;
