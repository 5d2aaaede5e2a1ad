/**
 * Support for a database whose tables Citus shards by `app_id` (operate/distributed.md): detects
 * it, runs statements that need another form there, and places its tables.
 */
import type { ServerSettings } from './limits/client-pool.ts';
import type { Handle } from './pool.ts';
import { type PreparedStatement, prepare } from './prepared.ts';
import { query } from './query.ts';

interface OfApp {
  appId: string;
}

const answers = new WeakMap<Handle, Promise<boolean>>();

/** Returns whether the database is sharded. Checks it once for each pool or connection. */
export function isSharded(db: Handle): Promise<boolean> {
  const cached = answers.get(db);
  if (cached) return cached;
  const answer = readIsSharded(db);
  answers.set(db, answer);
  answer.catch(() => answers.delete(db));
  return answer;
}

async function readIsSharded(db: Handle): Promise<boolean> {
  if ((await citusVersion(db)) === undefined) return false;
  return query(db).hasRows(
    `SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('notification')`,
  );
}

/**
 * Splits rows into parts, each for one statement: all rows together, or the rows of each app on a
 * sharded database.
 */
export async function partByApp<T extends OfApp>(db: Handle, rows: readonly T[]): Promise<T[][]> {
  if (rows.length === 0) return [];
  return (await isSharded(db))
    ? [...Map.groupBy(rows, ({ appId }) => appId).values()]
    : [[...rows]];
}

const skipsLocked = / FOR (NO KEY )?UPDATE( OF \w+)? SKIP LOCKED/;

/**
 * Returns a statement that skips locked rows. A sharded database cannot lock rows of several apps
 * in a subquery: there the statement waits for locked rows.
 */
export async function sweepText(db: Handle, text: string): Promise<string> {
  return (await isSharded(db)) ? text.replace(skipsLocked, '') : text;
}

/**
 * Statement over rows of several apps. On a sharded database it runs once for each app. Its
 * conditions then name the app, so that one server runs the whole statement.
 */
export class AppStatement {
  readonly #ofAll: PreparedStatement | string;
  readonly #ofOne: PreparedStatement | string;

  /**
   * `text` gets the condition that names the app of a table: empty, or a comparison with parameter
   * `place`. It also gets whether the statement is for one app. `isPrepared`: each connection
   * parses the statement once (`prepare`).
   */
  constructor(
    place: number,
    text: (andApp: (table: string) => string, isOfOne: boolean) => string,
    { isPrepared = false } = {},
  ) {
    const ofAll = text(() => '', false);
    const ofOne = text((table) => ` AND ${table}.app_id = $${place}`, true);
    this.#ofAll = isPrepared ? prepare(ofAll) : ofAll;
    this.#ofOne = isPrepared ? prepare(ofOne) : ofOne;
  }

  /**
   * Runs the statement for rows. `values` returns the parameters of a part of the rows. Returns the
   * rows of the result.
   */
  async run<R extends object, T extends OfApp>(
    db: Handle,
    rows: readonly T[],
    values: (part: T[]) => unknown[],
  ): Promise<R[]> {
    const found: R[][] = [];
    const isOfOne = await isSharded(db);
    for (const part of await partByApp(db, rows)) {
      const result = isOfOne
        ? await db.query<R>(this.#ofOne, [...values(part), part[0]?.appId])
        : await db.query<R>(this.#ofAll, values(part));
      found.push(result.rows);
    }
    return found.flat();
  }

  /** Like `run`, for a statement that returns an id with each row. Returns the rows by id. */
  async rowsById<R extends { id: number }, T extends OfApp>(
    db: Handle,
    rows: readonly T[],
    values: (part: T[]) => unknown[],
  ): Promise<Map<number, R>> {
    return new Map((await this.run<R, T>(db, rows, values)).map((row) => [row.id, row]));
  }
}

/** Small tables that every server stores completely, because rows of an app refer to them. */
const everywhere = ['channel_node', 'restoration'];

/**
 * Where the rows of a table are stored on a sharded database. `byApp`: the rows of an app together
 * on one server. `everywhere`: all rows on every server. `coordinator`: all rows on the
 * coordinator.
 */
type Placement = 'byApp' | 'everywhere' | 'coordinator';

export interface PlacedTable {
  name: string;
  placement: Placement;
  /** True if the table is already placed there. */
  isPlaced: boolean;
  /** Number of rows as estimated by PostgreSQL. */
  rows: number;
  bytes: number;
}

/** A foreign key, with the definition to add it again. */
interface ForeignKey {
  table: string;
  referenced: string;
  name: string;
  definition: string;
}

/** Tables and foreign keys of a database. */
export interface Distribution {
  tables: PlacedTable[];
  keys: ForeignKey[];
}

/** Returns the version of Citus in the database, or undefined without Citus. */
export const citusVersion = (db: Handle) =>
  query(db).value<string>(`SELECT extversion AS version FROM pg_extension WHERE extname = 'citus'`);

/** Returns the number of active servers that get shards. Needs Citus. */
export const countShardServers = (db: Handle) =>
  query(db).number(
    `SELECT count(*) AS n FROM pg_dist_node WHERE isactive AND noderole = 'primary'
      AND shouldhaveshards`,
  );

/**
 * Reads where the tables are stored and where they belong. A table is sharded if all its rows name
 * an app. Without Citus no table is placed.
 */
export async function readDistribution(db: Handle): Promise<Distribution> {
  const hasCitus = (await citusVersion(db)) !== undefined;
  const placed = hasCitus
    ? 'EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = c.oid)'
    : 'false';
  const tables = await query(db).rows<PlacedTable>(
    `SELECT c.relname::text AS name, ${placed} AS "isPlaced",
            greatest(c.reltuples, 0)::float8 AS rows, pg_total_relation_size(c.oid) AS bytes,
            CASE WHEN a.attnotnull THEN 'byApp' WHEN c.relname = ANY ($1) THEN 'everywhere'
            ELSE 'coordinator' END AS placement
       FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id'
         AND NOT a.attisdropped
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
      ORDER BY c.relname <> 'app', c.relname`,
    [everywhere],
  );
  const keys = await query(db).rows<ForeignKey>(`SELECT conrelid::regclass::text AS "table",
            confrelid::regclass::text AS referenced, conname::text AS name,
            pg_get_constraintdef(oid) AS definition
       FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace
         AND conparentid = 0
      ORDER BY conrelid::regclass::text, conname`);
  return { tables, keys };
}

/**
 * Returns the statements that place the remaining tables. Run them in one transaction. Foreign keys
 * are dropped before the tables move and added again afterwards. Citus has no foreign keys from a
 * table of the coordinator to a sharded table. These keys stay dropped, and `deleteApp` deletes the
 * rows itself.
 */
export function placingStatements({ tables, keys }: Distribution): string[] {
  const placements = new Map(tables.map(({ name, placement }) => [name, placement]));
  const moving = tables.filter(
    ({ placement, isPlaced }) => placement !== 'coordinator' && !isPlaced,
  );
  const names = new Set(moving.map(({ name }) => name));
  const touched = keys.filter(({ table, referenced }) => names.has(table) || names.has(referenced));
  const kept = touched.filter(({ table }) => placements.get(table) !== 'coordinator');
  const isEverywhere = ({ placement }: PlacedTable) => placement === 'everywhere';
  return [
    ...touched.map(({ table, name }) => `ALTER TABLE ${table} DROP CONSTRAINT ${name}`),
    ...moving.filter(isEverywhere).map(({ name }) => `SELECT create_reference_table('${name}')`),
    ...moving.filter((table) => !isEverywhere(table)).map(({ name }) => shardStatement(name)),
    ...kept.map(
      ({ table, name, definition }) => `ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`,
    ),
  ];
}

/**
 * Stores the shards of an app together, so that its statements and transactions run on one server.
 */
const shardStatement = (name: string) => {
  const group = name === 'app' ? 'none' : 'app';
  return `SELECT create_distributed_table('${name}', 'app_id', colocate_with => '${group}')`;
};

/**
 * Places the tables, and returns the statements that it ran. Needs a transaction without a timeout.
 */
export async function placeTables(tx: Handle): Promise<string[]> {
  await tx.query(`SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)`);
  const statements = placingStatements(await readDistribution(tx));
  for (const statement of statements) await tx.query(statement);
  return statements;
}

/** Shards of a server. */
export interface ShardServer {
  server: string;
  shards: number;
  bytes: number;
  /** Rows of all its shards, as estimated by that server. */
  rows: number;
}

/** Reads the shards of each server. Needs Citus. */
export const readShardServers = (db: Handle) =>
  query(db).rows<ShardServer>(
    `SELECT s.nodename || ':' || s.nodeport AS server, s.shards, s.bytes,
            CASE WHEN r.success THEN r.result::float8 ELSE 0 END AS rows
       FROM (SELECT nodename, nodeport, count(*) AS shards,
         coalesce(sum(shard_size), 0)::bigint AS bytes
               FROM citus_shards WHERE citus_table_type = 'distributed'
                 GROUP BY nodename, nodeport) AS s
       LEFT JOIN run_command_on_all_nodes($1, give_warning_for_connection_errors => true) AS r
         ON r.nodeid = (SELECT n.nodeid FROM pg_dist_node n WHERE n.nodename = s.nodename
           AND n.nodeport = s.nodeport)
      ORDER BY 1`,
    [
      `SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::float8 FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
          AND c.relname ~ '_[0-9]{6,}$'`,
    ],
  );

/** A row by its key within an app. */
export interface AppRow {
  app_id: string;
  id: number;
}

/**
 * Runs `work` for each app of the found rows, with the ids of the app's rows. The statements of
 * `work` lock and change these rows. A sharded database cannot lock rows of several apps in one
 * statement. `find` locks nothing, so the statements of `work` must check its condition again.
 */
export async function forEachApp<T>(
  tx: Handle,
  find: { text: string; values: unknown[] },
  work: (appId: string, ids: string) => Promise<readonly T[]>,
): Promise<T[]> {
  const rows = await query(tx).rows<AppRow>(find.text, find.values);
  const done: T[] = [];
  for (const [appId, ofApp] of Map.groupBy(rows, (row) => row.app_id))
    done.push(...(await work(appId, `{${ofApp.map(({ id }) => id).join()}}`)));
  return done;
}

/** Plans a statement once, and makes the plan use an index even if the table is small. */
export const onePlan = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
};

/**
 * Returns the settings of connections for statements over lists of keys. Planning such a statement
 * for each execution would cost as much as executing it. On a sharded database Citus does not
 * support a plan that is made once for all values.
 */
export async function onePlanSettings(db: Handle): Promise<ServerSettings> {
  return (await isSharded(db)) ? { plan_cache_mode: 'force_custom_plan', jit: 'off' } : onePlan;
}
