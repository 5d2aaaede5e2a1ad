import type { Handle } from '../../../../shared/db/pool.ts';
import {
  estimateRows,
  explainStatement,
  type PlanNode,
  wholeAppIndexes,
} from '../../../../shared/db/tables/audience.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { type ForecastText, forecast } from '../../../../shared/domain/texts/texts.ts';
import { needsTableScan, targetQuery } from '../../../../shared/query/targets/targets.ts';

/** Rows that a query may read without an index before the reply warns. */
const maxUnindexedRows = 5000;

/** Part of the reply that shows the query plan. */
export interface PlanReport {
  plan: string[];
  warning?: ForecastText;
}

/**
 * Returns the database's plan for the statement that finds the recipients, with a warning when it reads many
 * installations without an index for the condition. `devices` is the number of recipients.
 */
export async function planOf(
  tx: Handle,
  app: App,
  { pushOrder, nowMs, devices }: { pushOrder: PushOrder; nowMs: number; devices: number },
): Promise<PlanReport> {
  const query = targetQuery(app, pushOrder, { afterId: 0, nowMs });
  const root = await explainStatement(tx, query);
  const plan = linesOf(root, 0);
  const isNeeded = needsTableScan(pushOrder);
  const scan = findScan(root, isNeeded);
  if (!scan || !isNarrowed(pushOrder)) return { plan };
  const rows = await estimateRows(tx, app.appId, scan);
  const isWasteful = isNeeded || devices * 2 < rows;
  if (rows <= maxUnindexedRows || !isWasteful) return { plan };
  return {
    plan,
    warning: forecast('noIndex', { rows, devices }),
  };
}

/** Tells whether the push has a condition, so that it does not go to all devices. */
const isNarrowed = ({ target }: PushOrder): boolean =>
  target.kind === 'devices' ||
  (target.channels !== null && target.channels.length > 0) ||
  (typeof target.where === 'object' && target.where !== null && Object.keys(target.where).length > 0);

/** Writes a node and its children as EXPLAIN does, without the conditions. */
function linesOf(node: PlanNode, depth: number): string[] {
  const on = node.relation === undefined ? '' : ` on ${node.relation}`;
  const using = node.index === undefined ? '' : ` using ${node.index}`;
  const filter = node.hasFilter ? ', filtered' : '';
  const line = `${'  '.repeat(depth)}${node.type}${using}${on} (rows=${node.rows} cost=${node.cost}${filter})`;
  return [line, ...node.steps.flatMap((step) => linesOf(step, depth + 1))];
}

/**
 * Finds a node that reads a whole table, index or app. PostgreSQL may also use the index of custom members for a
 * condition that it cannot answer, and then reads all of that index.
 */
function findScan(node: PlanNode, isNeeded: boolean): PlanNode | undefined {
  if (node.type === 'Seq Scan' && node.relation === 'installation') return node;
  if (isNeeded && node.index === 'installation_fields') return node;
  if (node.index !== undefined && wholeAppIndexes.has(node.index) && node.hasFilter) return node;
  for (const step of node.steps) {
    const found = findScan(step, isNeeded);
    if (found) return found;
  }
  return undefined;
}
