import { z } from 'zod';
import { openOrUndefined, sha256, type Vault } from '../../crypto.ts';
import { sealContexts } from '../../domain/apps/seal-contexts.ts';
import { type AuthData, resealedMembers } from '../../domain/users/auth-data.ts';
import { sealedSession, sessionTokens } from '../../domain/users/user.ts';
import type { Database, Handle } from '../pool.ts';
import { query } from '../query.ts';
import { listProcesses, listReports, type SeenProcess } from './processes.ts';

/** An encrypted value of a row, and the row's key and further columns as text. */
interface SealedRow {
  appId: string;
  /** Columns of `key` and `context`, by name. */
  columns: Readonly<Record<string, string>>;
  /** Value of the column: `\x…` for bytes, otherwise JSON. */
  value: string;
}

/** A column with values that are encrypted with CARILLON_SECRET, of a table with an `app_id`. */
interface SealedColumn {
  table: string;
  column: string;
  type: 'bytea' | 'jsonb';
  /** Columns of the primary key after `app_id`, with their types. */
  key: Readonly<Record<string, 'text' | 'bigint' | 'bytea'>>;
  /** Further columns that the encryption context needs. */
  context: readonly string[];
  /**
   * SQL of the ids of the keys with which the values of a row are encrypted, as an array of texts.
   */
  keyIds: string;
  /** SQL of the value to store, from `t` (the row) and `n.renewed` (the result of `reseal`). */
  stored: string;
  /** Encrypts a value with the first key. Returns undefined if no key decrypts it. */
  reseal(vault: Vault, row: SealedRow): string | undefined;
}

const bytesOf = (value: string): Buffer => Buffer.from(value.slice(2), 'hex');
const textOf = (bytes: Buffer): string => `\\x${bytes.toString('hex')}`;

/** Decrypts and encrypts a value. Returns undefined if no key decrypts it. */
function renewed(vault: Vault, value: string, context: string): string | undefined {
  return openOrUndefined(() => textOf(vault.seal(vault.open(bytesOf(value), context), context)));
}

/**
 * Describes a column with one encrypted value: version, key id (4 bytes), and the remaining bytes.
 */
function bytesColumn(
  column: Pick<SealedColumn, 'table' | 'column' | 'key'> & { context?: readonly string[] },
  contextOf: (row: SealedRow) => string,
): SealedColumn {
  return {
    context: [],
    ...column,
    type: 'bytea',
    keyIds: `ARRAY[encode(substring(t.${column.column} FROM 2 FOR 4), 'hex')]`,
    stored: 'n.renewed',
    reseal: (vault, row) => renewed(vault, row.value, contextOf(row)),
  };
}

const column = ({ columns }: SealedRow, name: string): string => columns[name] ?? '';

const sessions: SealedColumn = {
  table: 'app_user',
  column: 'session_nonce',
  type: 'bytea',
  key: { id: 'bigint' },
  context: ['object_id', 'session_hash'],
  keyIds: `ARRAY[encode(substring(t.session_nonce
    FROM CASE WHEN length(t.session_nonce) = 16 THEN 1 ELSE 2 END FOR 4), 'hex')]`,
  stored: 'n.renewed',
  reseal: resealSession,
};

/**
 * Encrypts the token of a session. The session then no longer depends on the key from which it was
 * derived.
 */
function resealSession(vault: Vault, row: SealedRow): string | undefined {
  const [objectId, nonce] = [column(row, 'object_id'), bytesOf(row.value)];
  const hash = bytesOf(column(row, 'session_hash'));
  const tokens = openOrUndefined(() => sessionTokens(vault, row.appId, objectId, nonce)) ?? [];
  const token = tokens.find((one) => sha256(one).equals(hash));
  return token === undefined ? undefined : textOf(sealedSession(vault, row.appId, objectId, token));
}

const platforms: SealedColumn = {
  table: 'app_user',
  column: 'auth_data',
  type: 'jsonb',
  key: { id: 'bigint' },
  context: [],
  // Bytes 2 to 5 are within the first 8 characters of the base64 text.
  keyIds: `ARRAY(SELECT encode(substring(decode(left(e.value ->> '_sealed', 8), 'base64')
    FROM 2 FOR 4), 'hex')
                   FROM jsonb_each(t.auth_data) AS e
                     WHERE e.value ->> '_sealed' ~ '^[A-Za-z0-9+/]{8}')`,
  // Changes only the encrypted members, so that numbers in other members keep all their digits.
  stored: `(SELECT jsonb_object_agg(e.key, CASE WHEN n.renewed ? e.key
                     THEN e.value || jsonb_build_object('_sealed',
                       n.renewed -> e.key) ELSE e.value END)
              FROM jsonb_each(t.auth_data) AS e)`,
  reseal(vault, { appId, value }) {
    const authData: AuthData = JSON.parse(value);
    const members = resealedMembers(vault, appId, authData);
    return Object.keys(members).length > 0 ? JSON.stringify(members) : undefined;
  },
};

/**
 * All columns with encrypted values. `test/shared/db/sealed-places.test.ts` fails if a column of
 * bytes is neither in this list nor in the test's list of digests.
 */
export const sealedColumns: readonly SealedColumn[] = [
  bytesColumn({ table: 'app', column: 'secrets', key: {} }, ({ appId }) => sealContexts.app(appId)),
  bytesColumn(
    { table: 'push_profile', column: 'credentials', key: { connector: 'text', name: 'text' } },
    (row) => sealContexts.profile(row.appId, column(row, 'connector'), column(row, 'name')),
  ),
  ...['candidate', 'previous'].map((name) =>
    bytesColumn(
      { table: 'profile_rotation', column: name, key: { connector: 'text', name: 'text' } },
      (row) => sealContexts.profile(row.appId, column(row, 'connector'), column(row, 'name')),
    ),
  ),
  bytesColumn(
    { table: 'gateway_token', column: 'value', key: { connector: 'text', credential: 'bytea' } },
    (row) => sealContexts.gatewayToken(row.appId, column(row, 'connector')),
  ),
  bytesColumn(
    {
      table: 'outbox',
      column: 'body',
      key: { id: 'bigint' },
      context: ['kind', 'recipient', 'type'],
    },
    (row) =>
      sealContexts.message({
        appId: row.appId,
        kind: column(row, 'kind'),
        to: column(row, 'recipient'),
        type: column(row, 'type'),
      }),
  ),
  bytesColumn(
    {
      table: 'failed_receipt',
      column: 'call',
      key: { id: 'bigint' },
      context: ['connector', 'digest'],
    },
    (row) => sealContexts.receipt(row.appId, column(row, 'connector'), column(row, 'digest')),
  ),
  bytesColumn({ table: 'captcha', column: 'answer', key: { token: 'text' } }, (row) =>
    sealContexts.captcha(row.appId, column(row, 'token')),
  ),
  ...['secrets', 'previous_key'].map((name) =>
    bytesColumn({ table: 'webhook', column: name, key: { name: 'text' } }, (row) =>
      sealContexts.webhook(row.appId, column(row, 'name'), name),
    ),
  ),
  sessions,
  platforms,
];

/** Returns the name of a place: `<table>.<column>`. */
export const nameOf = ({ table, column: name }: SealedColumn): string => `${table}.${name}`;

/** Values whose key is not in CARILLON_SECRET or unknown (sessions of older versions). */
export const otherKey = 'other';

const sealedCounts = z.record(z.string(), z.record(z.string(), z.number()));
/** Number of values by column (`<table>.<column>`) and key id. */
export type SealedCounts = z.infer<typeof sealedCounts>;

/** Counts the encrypted values of all apps by column and key. Reads every row once. */
export async function countSealedValues(
  db: Handle,
  keyIds: readonly string[],
): Promise<SealedCounts> {
  const counts: SealedCounts = {};
  for (const column of sealedColumns) {
    const rows = await query(db).rows<{ key: string; values: number }>(
      `SELECT CASE WHEN k.id = ANY($1) THEN k.id ELSE '${otherKey}' END AS key, count(*) AS values
         FROM ${column.table} t, unnest(${column.keyIds}) AS k (id)
        WHERE t.${column.column} IS NOT NULL AND k.id IS NOT NULL GROUP BY 1`,
      [keyIds],
    );
    counts[nameOf(column)] = Object.fromEntries(rows.map(({ key, values }) => [key, values]));
  }
  return counts;
}

/** Timeout of a count for which a caller waits, in ms. */
const waitingMs = 8000;

/** Like `countSealedValues`, for a caller that waits. Throws if it takes too long. */
export const countSealedSoon = (
  db: Pick<Database, 'transaction'>,
  keyIds: readonly string[],
): Promise<SealedCounts> =>
  db.transaction((tx) => countSealedValues(tx, keyIds), { statementTimeoutMs: waitingMs });

/**
 * Returns the number of values by column that are not encrypted with the first key. Values that no
 * key decrypts are not counted there but in `unreadable`.
 */
export function oldValues(
  counts: SealedCounts,
  first: string,
  unreadable: Readonly<Record<string, number>> = {},
): Record<string, number> {
  const numbers = Object.entries(counts).map(([place, byKey]): [string, number] => {
    const { [first]: _current, [otherKey]: other = 0, ...old } = byKey;
    return [place, Math.max(0, sum(Object.values(old)) + other - (unreadable[place] ?? 0))];
  });
  return Object.fromEntries(numbers);
}

export const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0);

/** A process whose CARILLON_SECRET differs in a relevant way. */
export interface KeyMismatch extends Pick<SeenProcess, 'kind' | 'host' | 'pid'> {
  /**
   * `cannotRead`: it lacks the key. `encryptsOtherwise`: its first key is another one. `unknown`:
   * its version is too old to report this.
   */
  problem: 'cannotRead' | 'encryptsOtherwise' | 'unknown';
}

/** Lists the running processes that do not encrypt with the key `first`. */
export async function listKeyMismatches(db: Handle, first: string): Promise<KeyMismatch[]> {
  const reports = await listReports(db);
  const keysOf = new Map(reports.map(({ id, report }) => [id, report.secretKeys]));
  return (await listProcesses(db)).flatMap(({ id, kind, host, pid }) => {
    const keys = keysOf.get(id);
    if (keys?.[0] === first) return [];
    const problem = keys?.includes(first) ? 'encryptsOtherwise' : keys ? 'cannotRead' : 'unknown';
    return [{ kind, host, pid, problem }];
  });
}

/** Values of the key's columns after `app_id`, as text. Undefined for the start. */
export type Position = string[] | undefined;

interface SealedPage {
  /** Rows with a value that is not encrypted with the first key. */
  old: SealedRow[];
  /** Key of the last row. Undefined after the end. */
  last: Position;
}

/**
 * Reads the next `limit` rows of an app, and their values that are not encrypted with the key
 * `first`.
 */
export async function readSealedPage(
  db: Handle,
  column: SealedColumn,
  { appId, after, first, limit }: { appId: string; after: Position; first: string; limit: number },
): Promise<SealedPage> {
  const key = Object.entries(column.key);
  const names = key.map(([name]) => name);
  const columns = [...names, ...column.context];
  const later = key.map(([, type], i) => `$${i + 4}::text::${type}`);
  const from =
    after && names.length > 0 ? `AND (${listOf(names, 't.')}) > (${later.join(', ')})` : '';
  const rows = await query(db).rows<{ columns: Record<string, string>; value: string | null }>(
    `SELECT ${pairsOf(columns)} AS columns,
            CASE WHEN EXISTS (SELECT FROM unnest(${column.keyIds}) AS k (id) WHERE k.id <> $2)
                 THEN t.${column.column}::text END AS value
       FROM ${column.table} t WHERE t.app_id = $1 ${from}
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
 * Encrypts values with the first key. Changes a value only if it is still the value that was read.
 * Skips locked rows. Returns the number of changed values, and the number of values that no key
 * decrypts.
 */
export async function resealRows(
  db: Handle,
  vault: Vault,
  column: SealedColumn,
  rows: readonly SealedRow[],
): Promise<{ changed: number; unreadable: number }> {
  const renewed = rows.flatMap((row) => {
    const value = column.reseal(vault, row);
    return value === undefined ? [] : [{ row, value }];
  });
  const unreadable = rows.length - renewed.length;
  const appId = renewed[0]?.row.appId;
  if (appId === undefined) return { changed: 0, unreadable };
  const names = Object.keys(column.key);
  const changed = await query(db).rowCount(resealStatement(column), [
    appId,
    renewed.map(({ row }) => row.value),
    renewed.map(({ value }) => value),
    ...names.map((name) => renewed.map(({ row }) => row.columns[name] ?? '')),
  ]);
  return { changed, unreadable };
}

/**
 * Returns a statement that stores renewed values. It locks in the order of keys, and waits for no
 * lock.
 */
function resealStatement({ table, column, type, key, stored }: SealedColumn): string {
  const names = Object.keys(key);
  const types = Object.values(key);
  const lists = ['$2::text[]', '$3::text[]', ...names.map((_, i) => `$${i + 4}::text[]`)];
  const equals = (left: string, right: string) =>
    names.map((name) => `AND ${left}.${name} = ${right}.${name}`).join(' ');
  const typed = names.map((name, i) => `, g.${name}::${types[i]} AS ${name}`).join('');
  return `
    WITH n AS MATERIALIZED (
      SELECT g.value::${type} AS value, g.renewed::${type} AS renewed${typed}
        FROM unnest(${lists.join(', ')}) AS g (value,
    renewed${names.map((name) => `, ${name}`).join('')})), locked AS MATERIALIZED (
      SELECT n.* FROM n, ${table} t WHERE t.app_id = $1
        AND t.${column} = n.value ${equals('t', 'n')}
       ORDER BY ${listOf(['app_id', ...names], 't.')} FOR NO KEY UPDATE OF t SKIP LOCKED)
    UPDATE ${table} t SET ${column} = ${stored} FROM locked n
     WHERE t.app_id = $1 AND t.${column} = n.value ${equals('t', 'n')}`;
}

const listOf = (names: readonly string[], prefix: string): string =>
  names.map((name) => prefix + name).join(', ');

const pairsOf = (names: readonly string[]): string =>
  `jsonb_build_object(${names.map((name) => `'${name}', t.${name}::text`).join(', ')})`;

/** Rotation of CARILLON_SECRET to a first key. */
export interface SecretRotation {
  keyId: string;
  requestedAt: Date;
  finishedAt: Date | null;
  /** Number of passes over all values; 0 before the first. */
  pass: number;
  /** App whose values are being read. Null at the start of a pass. */
  appId: string | null;
  /** Index in `sealedColumns`. */
  place: number;
  /** Key of the row after which to continue. */
  position: string[] | null;
  /** Number of values under other keys at the start. */
  expected: number;
  changed: number;
  /** Number of values in the last pass that no key decrypts, by column. */
  unreadable: Record<string, number>;
  counts: SealedCounts | null;
  countedAt: Date | null;
}

const stored = z.object({
  position: z.array(z.string()).nullable(),
  unreadable: z.record(z.string(), z.number()),
  counts: sealedCounts.nullable(),
});

const columns = `key_id AS "keyId", requested_at AS "requestedAt", finished_at AS "finishedAt", pass, app_id AS "appId",
  place, position, expected, changed, unreadable, counts, counted_at AS "countedAt"`;

async function queryRotation(
  db: Handle,
  text: string,
  keyId: string,
): Promise<SecretRotation | undefined> {
  const row = await query(db).row<SecretRotation>(text, [keyId]);
  return row && { ...row, ...stored.parse(row) };
}

/** Finds the rotation to a first key. */
export const findSecretRotation = (db: Handle, keyId: string) =>
  queryRotation(db, `SELECT ${columns} FROM secret_rotation WHERE key_id = $1`, keyId);

/**
 * Requests a rotation, and deletes rotations to other keys. Returns false if it is already running.
 */
export async function requestSecretRotation(tx: Handle, keyId: string): Promise<boolean> {
  await tx.query('DELETE FROM secret_rotation WHERE key_id <> $1', [keyId]);
  return query(tx).hasRows(
    `INSERT INTO secret_rotation AS r (key_id, requested_at) VALUES ($1, clock_timestamp())
     ON CONFLICT (key_id) DO UPDATE
        SET requested_at = excluded.requested_at, finished_at = NULL, pass = 0, app_id = NULL,
            place = 0, position = NULL, expected = 0, changed = 0, unreadable = '{}', counts = NULL,
            counted_at = NULL
      WHERE r.finished_at IS NOT NULL`,
    [keyId],
  );
}

/**
 * Locks an unfinished rotation to a first key. Returns undefined while another process has locked
 * it.
 */
export const lockSecretRotation = (tx: Handle, keyId: string) =>
  queryRotation(
    tx,
    `SELECT ${columns} FROM secret_rotation WHERE key_id = $1 AND finished_at IS NULL
      FOR UPDATE SKIP LOCKED`,
    keyId,
  );

/** Saves the state of a locked rotation. `isCounted`: `counts` are new. */
export async function saveSecretRotation(
  tx: Handle,
  rotation: SecretRotation,
  { isFinished = false, isCounted = false } = {},
): Promise<void> {
  const { keyId, pass, appId, place, position, expected, changed, unreadable, counts } = rotation;
  await tx.query(
    `UPDATE secret_rotation
        SET pass = $2, app_id = $3, place = $4, position = $5, expected = $6, changed = $7,
            unreadable = $8, counts = $9,
            counted_at = CASE WHEN $10 THEN clock_timestamp() ELSE counted_at END,
            finished_at = CASE WHEN $11 THEN clock_timestamp() END
      WHERE key_id = $1`,
    [
      ...[keyId, pass, appId, place, position && JSON.stringify(position), expected, changed],
      ...[JSON.stringify(unreadable), counts && JSON.stringify(counts), isCounted, isFinished],
    ],
  );
}

/** Returns the id of the next app in the order of ids. Undefined after the last one. */
export const nextAppId = (db: Handle, after: string) =>
  query(db).value<string>('SELECT app_id FROM app WHERE app_id > $1 ORDER BY app_id LIMIT 1', [
    after,
  ]);
