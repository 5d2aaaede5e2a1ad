import type { Handle } from '../../../../shared/db/pool.ts';
import { explainStatement, type PlanNode } from '../../../../shared/db/tables/installations/audience.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { isScanNeeded } from '../../../../shared/query/targets/cost.ts';
import { targetQuery } from '../../../../shared/query/targets/targets.ts';

/** Reading fewer rows than this without an index is no matter (issue: "more than a few thousand rows"). */
const manyRows = 5000;

/** Indexes over every row of an app: a filter behind them reads all of it. */
const wholeAppIndexes = new Set(['installation_pkey', 'installation_updated_at']);

export interface PlanReport {
  plan: string[];
  warning?: string;
}

/**
 * The plan of the planner's own statement as lines, with a warning where the database would read many
 * installations without an index for the condition. `devices` is how many it would find.
 */
export async function planOf(
  tx: Handle,
  app: App,
  { order, nowMs, devices }: { order: PushOrder; nowMs: number; devices: number },
): Promise<PlanReport> {
  const query = targetQuery(app, order, { afterId: 0, nowMs });
  const root = await explainStatement(tx, query);
  const plan = linesOf(root, 0);
  const isNeeded = isScanNeeded(order);
  const scan = findScan(root, isNeeded);
  if (!scan || !isNarrowed(order)) return { plan };
  const read = await rowsRead(tx, app.appId, scan);
  const isWasteful = isNeeded || devices * 2 < read;
  if (read <= manyRows || !isWasteful) return { plan };
  return {
    plan,
    warning: `No index serves this condition: the database reads about ${read} installations to find ${devices}.`,
  };
}

const isNarrowed = ({ target }: PushOrder): boolean =>
  target.kind === 'devices' ||
  (target.channels !== null && target.channels.length > 0) ||
  (typeof target.where === 'object' && target.where !== null && Object.keys(target.where).length > 0);

/** A node as EXPLAIN shows it, but for its conditions. */
function linesOf(node: PlanNode, depth: number): string[] {
  const on = node.relation === undefined ? '' : ` on ${node.relation}`;
  const using = node.index === undefined ? '' : ` using ${node.index}`;
  const filter = node.hasFilter ? ', filtered' : '';
  const line = `${'  '.repeat(depth)}${node.type}${using}${on} (rows=${node.rows} cost=${node.cost}${filter})`;
  return [line, ...node.steps.flatMap((step) => linesOf(step, depth + 1))];
}

/**
 * The step that reads a table, an index or an app as a whole, if there is one. A condition that no index
 * answers may still be put to the index of custom members: then all of that is read.
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

/** What such a step reads by the database's statistics: the whole table, or the whole app. */
async function rowsRead(tx: Handle, appId: string, scan: PlanNode): Promise<number> {
  const statement = wholeAppIndexes.has(scan.index ?? '')
    ? { text: 'SELECT FROM installation WHERE app_id = $1', values: [appId] }
    : { text: 'SELECT FROM installation', values: [] };
  return (await explainStatement(tx, statement)).rows;
}
