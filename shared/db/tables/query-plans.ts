import { z } from 'zod';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { isSharded } from '../sharding.ts';
import type { SqlCondition } from './audience.ts';

/** Node of a query plan, without its conditions, which contain values of clients. */
export interface PlanNode {
  type: string;
  relation: string | undefined;
  index: string | undefined;
  rows: number;
  cost: number;
  hasFilter: boolean;
  steps: PlanNode[];
}

/**
 * Plan of the server that stores the rows of the app. On a sharded database EXPLAIN shows it inside
 * the coordinator's plan.
 */
const remotePlan = z
  .object({
    Job: z.object({ Tasks: z.array(z.object({ 'Remote Plan': z.lazy(() => z.array(plans)) })) }),
  })
  .transform(({ Job }) => Job.Tasks[0]?.['Remote Plan'][0]?.[0]?.Plan);

/** Returns the name of a table or an index without its shard number. */
const withoutShard = (name: string | undefined): string | undefined =>
  name?.replace(/_\d{6,}$/, '');

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

/** Returns the plan of a statement without running it (EXPLAIN without ANALYZE). */
export async function explainStatement(
  tx: Handle,
  { text, values }: SqlCondition,
): Promise<PlanNode> {
  const [first] = plans.parse(await query(tx).value(`EXPLAIN (FORMAT JSON) ${text}`, values));
  if (!first) throw new Error('the database returned no plan');
  return first.Plan;
}

/**
 * Indexes that contain every row of an app. Scanning one of them with a filter reads the whole app.
 */
export const wholeAppIndexes: ReadonlySet<string> = new Set(['installation_pkey']);

/**
 * Returns the number of rows that a scan without a condition reads, from PostgreSQL's statistics.
 * If the index contains whole apps, or the database is sharded, these are the rows of the app,
 * otherwise the rows of the table.
 */
export async function estimateRows(tx: Handle, appId: string, scan: PlanNode): Promise<number> {
  const isOfApp = wholeAppIndexes.has(scan.index ?? '') || (await isSharded(tx));
  const statement = isOfApp
    ? { text: 'SELECT FROM installation WHERE app_id = $1', values: [appId] }
    : { text: 'SELECT FROM installation', values: [] };
  return (await explainStatement(tx, statement)).rows;
}
