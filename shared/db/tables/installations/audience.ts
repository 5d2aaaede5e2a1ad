import { z } from 'zod';
import type { DeviceTraits } from '../../../domain/installations/installation.ts';
import type { Handle } from '../../pool.ts';
import { traitColumns } from './installations.ts';

/**
 * Reads for the dry run of a push. All of them run inside a READ ONLY transaction (`beginScan`); a
 * condition over `installation` is our compiler's SQL, never a client's.
 */
export interface SqlCondition {
  text: string;
  values: unknown[];
}

/** Devices that routing cannot tell apart, and how many they are. */
export interface DeviceGroup extends DeviceTraits {
  devices: number;
}

/** Clients choose profiles and topics: nobody must fill our memory with kinds of devices. */
export const maxGroups = 20_000;

/** The largest groups, and the number of devices in all groups, those left out included. */
export async function countAudience(
  tx: Handle,
  condition: SqlCondition,
): Promise<{ groups: DeviceGroup[]; devices: number }> {
  const { rows } = await tx.query<DeviceGroup & { total: number }>(
    `SELECT ${traitColumns}, count(*) AS devices, (sum(count(*)) OVER ())::bigint AS total
       FROM installation WHERE ${condition.text}
      GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY devices DESC LIMIT ${maxGroups}`,
    condition.values,
  );
  return { groups: rows, devices: rows[0]?.total ?? 0 };
}

/** Types of devices that are looked at in one app: clients choose them, and a few are usual. */
const maxTypes = 100;

/** The device types of an app, at most a hundred; a step in the index for each, whatever the number of devices. */
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

/** A step of a plan, without the conditions it tests: those hold what clients sent. */
export interface PlanNode {
  type: string;
  relation: string | undefined;
  index: string | undefined;
  rows: number;
  cost: number;
  hasFilter: boolean;
  steps: PlanNode[];
}

const planNode: z.ZodType<PlanNode> = z
  .object({
    'Node Type': z.string(),
    'Relation Name': z.string().optional(),
    'Index Name': z.string().optional(),
    'Plan Rows': z.number(),
    'Total Cost': z.number(),
    Filter: z.unknown().optional(),
    Plans: z.lazy(() => z.array(planNode)).default([]),
  })
  .transform((node) => ({
    type: node['Node Type'],
    relation: node['Relation Name'],
    index: node['Index Name'],
    rows: node['Plan Rows'],
    cost: node['Total Cost'],
    hasFilter: node.Filter !== undefined,
    steps: node.Plans,
  }));

const plans = z.array(z.object({ Plan: planNode })).min(1);

/** How the database would run a statement (EXPLAIN without ANALYZE: nothing is run). */
export async function explainStatement(tx: Handle, statement: SqlCondition): Promise<PlanNode> {
  const { rows } = await tx.query<{ 'QUERY PLAN': unknown }>(
    `EXPLAIN (FORMAT JSON) ${statement.text}`,
    statement.values,
  );
  const [first] = plans.parse(rows[0]?.['QUERY PLAN']);
  if (!first) throw new Error('the database gave no plan');
  return first.Plan;
}

/** Scheduled pushes of an app that wait for their time. */
export async function countScheduled(tx: Handle, appId: string): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    'SELECT count(*) AS n FROM scheduled_push WHERE app_id = $1',
    [appId],
  );
  return rows[0]?.n ?? 0;
}

/** Recipients per second of the newest large push that is done, of the last hundred; undefined: none. */
export async function readPastRate(tx: Handle, appId: string): Promise<number | undefined> {
  const { rows } = await tx.query<{ pace: number | null }>(
    `SELECT devices / extract(epoch FROM finished_at - first_sent_at)::float8 AS pace
       FROM (SELECT * FROM notification WHERE app_id = $1 ORDER BY id DESC LIMIT 100) recent
      WHERE state = 'done' AND devices >= 1000 AND finished_at > first_sent_at ORDER BY id DESC LIMIT 1`,
    [appId],
  );
  return rows[0]?.pace ?? undefined;
}
