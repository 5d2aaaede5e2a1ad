import { connectors } from '../../connectors/registry.ts';
import type { Route, Router } from '../../connectors/routing.ts';
import { parseTraits } from '../../shared/db/tables/installations/traits.ts';
import type { NewBatch, RecipientFailure } from '../../shared/db/tables/pushes/batches.ts';
import { outcomeCode } from '../../shared/domain/outcome.ts';
import { firstBatchSize, type TargetPage } from './pages.ts';

/** Most recipients of a batch, from so many recipients of the push on. */
const laterSizes = [
  { from: 5000, size: 5000 },
  { from: 1000, size: 2500 },
];

/**
 * Returns the most recipients of a batch. Later batches of a large push are larger, because each one costs a dozen
 * statements. Only where a request has one recipient, and where no rate gives each batch a time of its own: there large
 * batches are uneven.
 */
function batchSizeOf({ connector: id }: Route, { flowControl, planned }: PageContext): number {
  const connector = connectors.get(id);
  const canGrow = connector?.limits.recipientsPerRequest === 1 && !connector.rate;
  if (!canGrow || flowControl !== null) return firstBatchSize;
  return laterSizes.find(({ from }) => planned >= from)?.size ?? firstBatchSize;
}

/** Where a page belongs. */
export interface PageContext {
  router: Pick<Router, 'routeOf'>;
  /** Recipients per second of the push; null is unlimited. */
  flowControl: number | null;
  /** Recipients of the push that were planned before the page. */
  planned: number;
}

/** Batches of one page of targets. */
export interface PageOfBatches {
  /** Batches to send. */
  batches: NewBatch[];
  /** Batches that are settled when they are written: no profile serves these devices. */
  unroutable: { batch: NewBatch; failures: RecipientFailure[] }[];
}

/** Sorts a page of targets into batches of one route each. */
export function toBatches(
  { idsByTraits }: Pick<TargetPage, 'idsByTraits'>,
  context: PageContext,
): PageOfBatches {
  const { router } = context;
  const groups = new Map<Route, number[]>();
  for (const [traits, ids] of idsByTraits) {
    const route = router.routeOf(traits, parseTraits);
    const known = groups.get(route);
    groups.set(route, known ? [...known, ...ids].sort((one, other) => one - other) : ids);
  }
  const page: PageOfBatches = { batches: [], unroutable: [] };
  for (const [route, ids] of groups) {
    const size = batchSizeOf(route, context);
    for (let i = 0; i < ids.length; i += size) addBatch(page, route, ids.slice(i, i + size));
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
  const { error } = route;
  if (error === undefined) {
    page.batches.push(batch);
    return;
  }
  const codes = new Uint8Array(recipients.length).fill(outcomeCode('failed'));
  const failures = recipients.map((installation) => ({
    installation,
    outcome: 'failed' as const,
    status: 0,
    reason: error,
    invalidAsOfMs: null,
  }));
  page.unroutable.push({
    batch: { ...batch, settled: { codes, totals: { failed: recipients.length } } },
    failures,
  });
}
