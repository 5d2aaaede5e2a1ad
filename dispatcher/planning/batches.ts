import { connectors } from '../../connectors/registry.ts';
import type { Route, Router } from '../../connectors/routing.ts';
import { parseTraits } from '../../shared/db/tables/installations/traits.ts';
import type { NewBatch } from '../../shared/db/tables/pushes/batches.ts';
import type { RecipientFailure } from '../../shared/db/tables/pushes/reports/recipient-failures.ts';
import { type Outcome, outcomeCode } from '../../shared/domain/outcome.ts';
import type { LanguageRoute, LanguageRoutes } from './language-routes.ts';
import { firstBatchSize, type TargetPage } from './pages.ts';
import type { QuietRoute, QuietRoutes } from './quiet-routes.ts';

/** Most recipients of a batch of a large push. */
const largestBatchSize = 5000;
/** The same of the second page: at most two batches, so that two threads share a push to ten thousand. */
const secondPage = { fromPlanned: 1000, toPlanned: 5000, leastSize: 2500 };

/**
 * Returns the most recipients of a batch, of so many of a page. Later batches of a large push are larger, because each one
 * costs a dozen statements. Only where a request has one recipient, and where no rate gives each batch a time of its own: there
 * large batches are uneven.
 */
function batchSizeOf(
  { connector: id }: Route,
  count: number,
  { flowControl, planned, isHalved = false }: PageContext,
): number {
  const connector = connectors.get(id);
  const canGrow = connector?.limits.recipientsPerRequest === 1 && !connector.rate;
  const { fromPlanned, toPlanned, leastSize } = secondPage;
  if (!canGrow || flowControl !== null) return firstBatchSize;
  if (isHalved || planned >= toPlanned) return largestBatchSize;
  if (planned < fromPlanned) return firstBatchSize;
  return Math.min(largestBatchSize, Math.max(leastSize, Math.ceil(count / 2)));
}

type PlannedRoute = Route & Partial<LanguageRoute> & Partial<QuietRoute>;

/** Where a page belongs. */
export interface PageContext {
  router: Pick<Router, 'routeOf'> | LanguageRoutes | QuietRoutes;
  /** Recipients per second of the push; null is unlimited. */
  flowControl: number | null;
  /** Recipients of the push that were planned before the page. */
  planned: number;
  /** The push probably has two pages of equal size, of which each is a batch (audience-sizes.ts). */
  isHalved?: boolean;
}

/** Batches of one page of targets. */
export interface PageOfBatches {
  /** Batches to send. */
  batches: NewBatch[];
  /** Batches that are settled when they are written: no profile serves these devices. */
  unroutable: UnsentBatch[];
}

/** Batch that ends when it is written, with one outcome of all its recipients. */
export interface UnsentBatch {
  batch: NewBatch;
  outcome: Outcome;
  failures: RecipientFailure[];
}

/** Sorts a page of targets into batches of one route each. */
export function toBatches(
  { idsByTraits }: Pick<TargetPage, 'idsByTraits'>,
  context: PageContext,
): PageOfBatches {
  const { router } = context;
  const groups = new Map<PlannedRoute, number[]>();
  for (const [traits, ids] of idsByTraits) {
    const route = router.routeOf(traits, parseTraits);
    const known = groups.get(route);
    groups.set(route, known ? [...known, ...ids].sort((one, other) => one - other) : ids);
  }
  const page: PageOfBatches = { batches: [], unroutable: [] };
  for (const [route, ids] of groups) {
    const size = batchSizeOf(route, ids.length, context);
    for (let i = 0; i < ids.length; i += size) addBatch(page, route, ids.slice(i, i + size));
  }
  return page;
}

function addBatch(page: PageOfBatches, route: PlannedRoute, recipients: number[]): void {
  const batch = {
    connector: route.connector,
    profile: route.profile,
    recipients,
    badges: null,
    attempt: 0,
    hasJob: false,
    language: route.language ?? null,
    quiet: route.quiet ?? null,
  };
  const { error } = route;
  if (error === undefined) {
    page.batches.push(batch);
    return;
  }
  page.unroutable.push(endUnsent(batch, 'failed', error));
}

/** Ends all recipients of a new batch with one outcome and reason. */
export function endUnsent(batch: NewBatch, outcome: Outcome, reason: string): UnsentBatch {
  const { recipients } = batch;
  const codes = new Uint8Array(recipients.length).fill(outcomeCode(outcome));
  const failures = recipients.map((installation) => ({
    installation,
    outcome,
    status: 0,
    reason,
    invalidAsOfMs: null,
  }));
  return {
    batch: { ...batch, settled: { codes, totals: { [outcome]: recipients.length } } },
    outcome,
    failures,
  };
}
