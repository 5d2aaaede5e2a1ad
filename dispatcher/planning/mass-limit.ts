import type { Router } from '../../connectors/routing.ts';
import { parseTraits } from '../../shared/db/tables/installations/traits.ts';
import { failPush } from '../../shared/db/tables/pushes/progress.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import type { ConnectorTotals, Push } from '../../shared/domain/pushes/record.ts';
import { type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { PlannedPage } from './pages.ts';

/** Devices of a push, counted before it is sent. */
interface Audience {
  byConnector: Map<ConnectorId, number>;
  byProfile: Map<string, number>;
}

/**
 * Ends a push to more devices than one of its profiles serves: the profile's error becomes its status, and every device
 * counts as `failed` (protocol/push.md#errors-of-a-push, protocol/delivery.md#promise-2). Counts only where the app has such
 * a profile. Returns true when it ended the push.
 */
export async function endBeyondLimit(
  deps: DispatcherDeps,
  { push, router, job }: { push: Push; router: Router; job: Job<PlanJob> },
  targets: () => AsyncGenerator<PlannedPage>,
): Promise<boolean> {
  const limits = router.massLimits();
  if (limits.length === 0) return false;
  const audience = await count(router, targets());
  const over = limits.find(
    ({ connector, profile, devices }) => (audience.byProfile.get(`${connector}/${profile}`) ?? 0) > devices,
  );
  if (!over) return false;
  const totals: ConnectorTotals = {};
  for (const [connector, failed] of audience.byConnector) totals[connector] = { failed };
  await deps.db.transaction(async (tx) => {
    await failPush(tx, push, { message: over.error, totals, devices: sum(audience) });
    await deps.queue.complete(planJob, job, tx);
  });
  for (const [connector, failed] of audience.byConnector)
    deps.metrics.recipients.inc({ app: push.appId, connector, outcome: 'failed' }, failed);
  return true;
}

const sum = (audience: Audience) => [...audience.byConnector.values()].reduce((all, n) => all + n, 0);

async function count(router: Router, pages: AsyncGenerator<PlannedPage>): Promise<Audience> {
  const audience: Audience = { byConnector: new Map(), byProfile: new Map() };
  for await (const { page } of pages)
    for (const [traits, { length }] of page.idsByTraits) {
      const { connector, profile } = router.routeOf(traits, parseTraits);
      raise(audience.byConnector, connector, length);
      raise(audience.byProfile, `${connector}/${profile}`, length);
    }
  return audience;
}

function raise<K>(counts: Map<K, number>, key: K, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
