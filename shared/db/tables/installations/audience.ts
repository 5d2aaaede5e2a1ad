import { z } from 'zod';
import type { DeviceTraits } from '../../../domain/installations/installation.ts';
import type { Handle } from '../../pool.ts';
import { isSharded } from '../../sharding.ts';
import { traitColumns, traitExpressions } from './traits.ts';

/**
 * Condition over `installation` as SQL of the query compiler, never a client's text. The functions below serve the dry
 * run of a push, inside a READ ONLY transaction.
 */
export interface SqlCondition {
  text: string;
  values: unknown[];
}

/** Devices with the same routing traits, and their number. */
export interface DeviceGroup extends DeviceTraits {
  devices: number;
}

/** Limit of groups in memory: clients choose profiles and topics. */
export const maxGroups = 20_000;

/** Returns the largest groups, and the number of devices in all groups; of `most` devices at most, in any order. */
export async function countAudience(
  tx: Handle,
  condition: SqlCondition,
  most?: number,
): Promise<{ groups: DeviceGroup[]; devices: number }> {
  const limit = most === undefined ? '' : ` LIMIT ${most}`;
  const { rows } = await tx.query<DeviceGroup & { total: number }>(
    `SELECT ${traitColumns}, count(*) AS devices, (sum(count(*)) OVER ())::bigint AS total
       FROM (SELECT * FROM installation WHERE ${condition.text}${limit}) AS installation
      GROUP BY ${traitExpressions} ORDER BY devices DESC LIMIT ${maxGroups}`,
    condition.values,
  );
  return { groups: rows, devices: rows[0]?.total ?? 0 };
}

/**
 * Counts for each of several conditions the devices of an app (`$1`) that fail it alone: so many more there would be
 * without it. Reads all devices of the app, each condition once.
 */
export async function countUnmet(tx: Handle, conditions: string[], values: unknown[]): Promise<number[]> {
  const tests = conditions.map((condition, i) => `(${condition}) IS TRUE AS c${i}`);
  const counts = conditions.map((_, i) => {
    const others = conditions.flatMap((_other, j) => (j === i ? [] : [`c${j}`]));
    return `count(*) FILTER (WHERE ${[`NOT c${i}`, ...others].join(' AND ')})`;
  });
  const { rows } = await tx.query<{ counts: number[] }>(
    `SELECT ARRAY[${counts.join(', ')}]::integer[] AS counts
       FROM (SELECT ${tests.join(', ')} FROM installation WHERE app_id = $1 OFFSET 0) AS tested`,
    values,
  );
  return rows[0]?.counts ?? [];
}

/** Counts the devices that meet a condition. */
export async function countDevices(tx: Handle, condition: SqlCondition): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    `SELECT count(*) AS n FROM installation WHERE ${condition.text}`,
    condition.values,
  );
  return rows[0]?.n ?? 0;
}

/** Limit of device types of one app: clients choose them; a few are usual. */
const maxTypes = 100;

/** Lists the device types of an app with one index lookup each, whatever the number of devices. */
export async function listDeviceTypes(db: Handle, appId: string): Promise<string[]> {
  const { rows } = await db.query<{ type: string }>(
    `WITH RECURSIVE found (type, n) AS (
       (SELECT device_type, 1 FROM installation WHERE app_id = $1 ORDER BY device_type LIMIT 1)
       UNION ALL
       SELECT (SELECT device_type FROM installation WHERE app_id = $1 AND device_type > found.type
                ORDER BY device_type LIMIT 1), n + 1
         FROM found WHERE found.type IS NOT NULL AND n < $2)
     SELECT type FROM found WHERE type IS NOT NULL`,
    [appId, maxTypes],
  );
  return rows.map(({ type }) => type);
}

/** Node of a query plan, without its conditions: those hold clients' values. */
export interface PlanNode {
  type: string;
  relation: string | undefined;
  index: string | undefined;
  rows: number;
  cost: number;
  hasFilter: boolean;
  steps: PlanNode[];
}

/** Part of a plan that a coordinator shows in place of its own: how the server plans it that has the rows of the app. */
const remotePlan = z
  .object({
    Job: z.object({ Tasks: z.array(z.object({ 'Remote Plan': z.lazy(() => z.array(plans)) })) }),
  })
  .transform(({ Job }) => Job.Tasks[0]?.['Remote Plan'][0]?.[0]?.Plan);

/** Returns the name of a table or an index; on its server it has the number of its part behind it. */
const withoutShard = (name: string | undefined): string | undefined => name?.replace(/_\d{6,}$/, '');

const planNode: z.ZodType<PlanNode> = z
  .object({
    'Node Type': z.string(),
    'Relation Name': z.string().optional(),
    'Index Name': z.string().optional(),
    'Plan Rows': z.number(),
    'Total Cost': z.number(),
    Filter: z.unknown().optional(),
    Plans: z.lazy(() => z.array(planNode)).default([]),
    'Distributed Query': remotePlan.optional(),
  })
  .transform(
    (node) =>
      node['Distributed Query'] ?? {
        type: node['Node Type'],
        relation: withoutShard(node['Relation Name']),
        index: withoutShard(node['Index Name']),
        rows: node['Plan Rows'],
        cost: node['Total Cost'],
        hasFilter: node.Filter !== undefined,
        steps: node.Plans,
      },
  );

const plans = z.array(z.object({ Plan: planNode })).min(1);

/** Returns the plan of a statement (EXPLAIN without ANALYZE: does not run it). */
export async function explainStatement(tx: Handle, statement: SqlCondition): Promise<PlanNode> {
  const { rows } = await tx.query<{ 'QUERY PLAN': unknown }>(
    `EXPLAIN (FORMAT JSON) ${statement.text}`,
    statement.values,
  );
  const [first] = plans.parse(rows[0]?.['QUERY PLAN']);
  if (!first) throw new Error('the database returned no plan');
  return first.Plan;
}

/** Indexes that contain every row of an app. A scan of such an index with a filter reads the whole app. */
export const wholeAppIndexes: ReadonlySet<string> = new Set(['installation_pkey']);

/**
 * Returns the rows that a scan without a condition reads, by the statistics of the database: the rows of
 * the app if its index contains whole apps or the database is sharded, otherwise those of the table.
 */
export async function estimateRows(tx: Handle, appId: string, scan: PlanNode): Promise<number> {
  const isOfApp = wholeAppIndexes.has(scan.index ?? '') || (await isSharded(tx));
  const statement = isOfApp
    ? { text: 'SELECT FROM installation WHERE app_id = $1', values: [appId] }
    : { text: 'SELECT FROM installation', values: [] };
  return (await explainStatement(tx, statement)).rows;
}

/** Counts the scheduled pushes of an app. */
export async function countScheduled(tx: Handle, appId: string): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    'SELECT count(*) AS n FROM scheduled_push WHERE app_id = $1',
    [appId],
  );
  return rows[0]?.n ?? 0;
}

/** Returns recipients per second of the newest large finished push among the last hundred. */
export async function readPastRate(tx: Handle, appId: string): Promise<number | undefined> {
  const { rows } = await tx.query<{ pace: number | null }>(
    `SELECT devices / extract(epoch FROM finished_at - first_sent_at)::float8 AS pace
       FROM (SELECT * FROM notification WHERE app_id = $1 ORDER BY id DESC LIMIT 100) recent
      WHERE state = 'done' AND devices >= 1000 AND finished_at > first_sent_at ORDER BY id DESC LIMIT 1`,
    [appId],
  );
  return rows[0]?.pace ?? undefined;
}
