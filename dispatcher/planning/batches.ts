import { connectors } from '../../connectors/registry.ts';
import type { Route, Router } from '../../connectors/routing.ts';
import { parseTraits } from '../../shared/db/tables/installations/traits.ts';
import type { NewBatch } from '../../shared/db/tables/pushes/batches.ts';
import type { RecipientFailure } from '../../shared/db/tables/pushes/reports/recipient-failures.ts';
import { type Outcome, outcomeCode } from '../../shared/domain/outcome.ts';
import type { LanguageRoute, LanguageRoutes } from './language-routes.ts';
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

type PlannedRoute = Route & Partial<LanguageRoute>;

/** Where a page belongs. */
export interface PageContext {
  router: Pick<Router, 'routeOf'> | LanguageRoutes;
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
    const size = batchSizeOf(route, context);
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
