import type { Route, Router } from '../../connectors/routing.ts';
import { parseTraits } from '../../shared/db/tables/installations/traits.ts';
import type { NewBatch, RecipientFailure } from '../../shared/db/tables/pushes/batches.ts';
import { outcomeCode } from '../../shared/domain/outcome.ts';
import type { TargetRow } from '../../shared/query/targets/targets.ts';

/** Most recipients of one batch (develop/architecture.md#batches). */
export const batchSize = 1000;

/** Batches of one page of targets. */
export interface PageOfBatches {
  /** Batches to send. */
  batches: NewBatch[];
  /** Batches that are settled when they are written: no profile serves these devices. */
  unroutable: { batch: NewBatch; failures: RecipientFailure[] }[];
}

/** Sorts a page of targets into batches of one route each. */
export function toBatches(targets: TargetRow[], router: Router): PageOfBatches {
  const groups = new Map<Route, number[]>();
  for (const target of targets) {
    const route = router.routeOf(target.traits, parseTraits);
    const ids = groups.get(route);
    if (ids) ids.push(target.id);
    else groups.set(route, [target.id]);
  }
  const page: PageOfBatches = { batches: [], unroutable: [] };
  for (const [route, ids] of groups) {
    for (let i = 0; i < ids.length; i += batchSize) addBatch(page, route, ids.slice(i, i + batchSize));
  }
  return page;
}

function addBatch(page: PageOfBatches, route: Route, recipients: number[]): void {
  const batch = {
    connector: route.connector,
    profile: route.profile,
    recipients,
    badges: null,
    attempt: 0,
    hasJob: false,
  };
  const { error: problem } = route;
  if (problem === undefined) {
    page.batches.push(batch);
    return;
  }
  const codes = new Uint8Array(recipients.length).fill(outcomeCode('failed'));
  const failures = recipients.map((installation) => ({
    installation,
    outcome: 'failed' as const,
    status: 0,
    reason: problem,
    deadAsOfMs: null,
  }));
  page.unroutable.push({
    batch: { ...batch, settled: { codes, totals: { failed: recipients.length } } },
    failures,
  });
}
