import type { Clock } from '../../shared/clock.ts';
import { ShortCache } from '../../shared/db/cache/short-cache.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { listFreezes } from '../../shared/db/tables/apps/freezes.ts';
import type { Metrics } from '../../shared/metrics.ts';
import { giveBackHeldJobs, holdJob } from '../../shared/queue/held-jobs.ts';
import type { JobKind } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Scope of the whole service, beside the ids of apps. */
const service = '';

/** The apps whose pushes are held, at most half a second old; a change is notified (protocol/admin-api.md#freezes). */
export class Freezes {
  readonly #scopes: ShortCache<Set<string>>;

  constructor(db: Handle, clock: Clock) {
    this.#scopes = new ShortCache(clock, async () => {
      const freezes = await listFreezes(db);
      return new Set(freezes.map(({ appId }) => appId ?? service));
    });
  }

  /** Tells whether pushes of the app are held. */
  async holds(appId: string): Promise<boolean> {
    const scopes = await this.#scopes.get('');
    return scopes.size > 0 && (scopes.has(service) || scopes.has(appId));
  }

  /** Writes the number of freezes into the gauge. */
  async reportTo({ freezes }: Metrics): Promise<void> {
    const scopes = await this.#scopes.get('');
    const ofService = scopes.has(service) ? 1 : 0;
    freezes.set({ scope: 'service' }, ofService);
    freezes.set({ scope: 'app' }, scopes.size - ofService);
  }

  /** Reads the freezes again with the next question. */
  refresh(): void {
    this.#scopes.forget('');
  }
}

/** Result of holding a job: `free`: the freeze has ended, and the job is to be worked on; `lost`: another consumer has it. */
type HoldEnd = 'held' | 'free' | 'lost';

/** Holds a job of a frozen app, so that no consumer takes it until the freeze ends. */
export async function holdFrozen<T extends { appId: string }>(
  { db, freezes }: Pick<DispatcherDeps, 'db' | 'freezes'>,
  kind: JobKind<T>,
  job: Job<T>,
): Promise<HoldEnd> {
  if (await holdJob(db, kind, job)) return 'held';
  freezes.refresh();
  return (await freezes.holds(job.data.appId)) ? 'lost' : 'free';
}

/** Gives back jobs whose freeze has ended; returns how many. */
export const endFreezes = ({ db }: Pick<DispatcherDeps, 'db'>, limit: number): Promise<number> =>
  db.transaction((tx) => giveBackHeldJobs(tx, limit));
