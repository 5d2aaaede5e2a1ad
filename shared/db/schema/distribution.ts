import type { Handle } from '../pool.ts';

/** Tables that all servers hold whole: rows of an app refer to them, and they have few. */
const everywhere = ['channel_node', 'restoration'];

/**
 * Where a table lives once Citus spreads a database by `app_id` (operate/distributed.md): the rows of an app together on one
 * server, all rows on every server, or all rows on the coordinator.
 */
export type Placement = 'byApp' | 'everywhere' | 'coordinator';

export interface PlacedTable {
  name: string;
  placement: Placement;
  /** Whether Citus has placed it so. */
  isPlaced: boolean;
  /** Estimate of the planner. */
  rows: number;
  bytes: number;
}

/** A foreign key, and what adds it again. */
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

/** Returns the version of Citus in the database; undefined without it. */
export async function citusVersion(db: Handle): Promise<string | undefined> {
  const { rows } = await db.query<{ version: string }>(
    `SELECT extversion AS version FROM pg_extension WHERE extname = 'citus'`,
  );
  return rows[0]?.version;
}

/** Returns whether Citus has spread the tables of the apps. */
export async function isSpread(db: Handle): Promise<boolean> {
  if ((await citusVersion(db)) === undefined) return false;
  const { rowCount } = await db.query(
    `SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('notification')`,
  );
  return (rowCount ?? 0) > 0;
}

/** Returns the number of active servers that get shards. Needs Citus. */
export async function countShardServers(db: Handle): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `SELECT count(*) AS n FROM pg_dist_node WHERE isactive AND noderole = 'primary' AND shouldhaveshards`,
  );
  return rows[0]?.n ?? 0;
}

/**
 * Reads where the tables are and where they belong: a table whose rows all name an app is spread by it. Works without Citus,
 * where no table is placed.
 */
export async function readDistribution(db: Handle): Promise<Distribution> {
  const hasCitus = (await citusVersion(db)) !== undefined;
  const placed = hasCitus ? 'EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = c.oid)' : 'false';
  const { rows: tables } = await db.query<PlacedTable>(
    `SELECT c.relname::text AS name, ${placed} AS "isPlaced", greatest(c.reltuples, 0)::float8 AS rows,
            pg_total_relation_size(c.oid) AS bytes,
            CASE WHEN a.attnotnull THEN 'byApp' WHEN c.relname = ANY ($1) THEN 'everywhere' ELSE 'coordinator' END AS placement
       FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
      ORDER BY c.relname <> 'app', c.relname`,
    [everywhere],
  );
  const { rows: keys } = await db.query<ForeignKey>(
    `SELECT conrelid::regclass::text AS "table", confrelid::regclass::text AS referenced, conname::text AS name,
            pg_get_constraintdef(oid) AS definition
       FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conparentid = 0
      ORDER BY conrelid::regclass::text, conname`,
  );
  return { tables, keys };
}

/**
 * Returns the statements that place the tables that are not placed yet; none if all are. They belong in one transaction. A
 * foreign key is dropped before the tables move, and added again after; one from a table of the coordinator to a spread table
 * stays dropped, since Citus has no such keys: `deleteApp` deletes those rows itself.
 */
export function placingStatements({ tables, keys }: Distribution): string[] {
  const placements = new Map(tables.map(({ name, placement }) => [name, placement]));
  const moving = tables.filter(({ placement, isPlaced }) => placement !== 'coordinator' && !isPlaced);
  const names = new Set(moving.map(({ name }) => name));
  const touched = keys.filter(({ table, referenced }) => names.has(table) || names.has(referenced));
  const kept = touched.filter(({ table }) => placements.get(table) !== 'coordinator');
  const isEverywhere = ({ placement }: PlacedTable) => placement === 'everywhere';
  return [
    ...touched.map(({ table, name }) => `ALTER TABLE ${table} DROP CONSTRAINT ${name}`),
    ...moving.filter(isEverywhere).map(({ name }) => `SELECT create_reference_table('${name}')`),
    ...moving.filter((table) => !isEverywhere(table)).map(({ name }) => spreadStatement(name)),
    ...kept.map(({ table, name, definition }) => `ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`),
  ];
}

/** All tables of an app have their shards beside each other: its statements and transactions are on one server. */
const spreadStatement = (name: string) =>
  `SELECT create_distributed_table('${name}', 'app_id', colocate_with => '${name === 'app' ? 'none' : 'app'}')`;

/** Places the tables. Returns the statements that it ran. Needs a transaction without a time limit. */
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
  /** Rows of all its shards, as the planner of that server estimates them. */
  rows: number;
}

/** Reads what each server holds of the spread tables. Needs Citus. */
export async function readShardServers(db: Handle): Promise<ShardServer[]> {
  const { rows } = await db.query<ShardServer>(
    `SELECT s.nodename || ':' || s.nodeport AS server, s.shards, s.bytes,
            CASE WHEN r.success THEN r.result::float8 ELSE 0 END AS rows
       FROM (SELECT nodename, nodeport, count(*) AS shards, coalesce(sum(shard_size), 0)::bigint AS bytes
               FROM citus_shards WHERE citus_table_type = 'distributed' GROUP BY nodename, nodeport) AS s
       LEFT JOIN run_command_on_all_nodes($1, give_warning_for_connection_errors => true) AS r
         ON r.nodeid = (SELECT n.nodeid FROM pg_dist_node n WHERE n.nodename = s.nodename AND n.nodeport = s.nodeport)
      ORDER BY 1`,
    [
      `SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::float8 FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname ~ '_[0-9]{6,}$'`,
    ],
  );
  return rows;
}
