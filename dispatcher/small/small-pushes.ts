import type { Database } from '../../shared/db/pool.ts';
import { isConnectionFailure } from '../../shared/db/pool.ts';
import { QueryBatcher } from '../../shared/db/query-batcher.ts';
import {
  type EndedPush,
  endSmallPushes,
  findPushes,
  type SmallEnd,
  type SmallPlan,
  type StartedPush,
  startSmallPushes,
} from '../../shared/db/tables/pushes/small.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { findPointDevices, type PointDevice, type PointLookup } from '../../shared/query/targets/point.ts';
import { ParkedJobs } from '../../shared/queue/consumer.ts';
import { type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job, JobQueue } from '../../shared/queue/queue.ts';
import { smallPushesAtOnce } from '../limits.ts';
import { recordThroughOutage } from '../recording/outage.ts';

/** Most pushes of one statement. */
const size = 100;
/** Statements of one kind at a time: the next group forms while one commits. */
const concurrency = 2;

/** A failed group runs again push by push, so that one does not fail the others; not while the database is unavailable. */
const isOfOneItem = (error: unknown): boolean => !isConnectionFailure(error);

interface EndOfJob extends SmallEnd {
  job: Job<PlanJob>;
}

/**
 * The statements of small pushes in work: those that wait at the same time share one. A push that is alone waits for
 * nothing.
 */
export class SmallPushes {
  /** Bound of the planning jobs that hold a small push instead of a job permit. */
  readonly jobs = new ParkedJobs(smallPushesAtOnce);
  readonly #reads: QueryBatcher<PlanJob, Push | undefined>;
  readonly #lookups: QueryBatcher<PointLookup, PointDevice | undefined>;
  readonly #starts: QueryBatcher<SmallPlan, StartedPush | undefined>;
  readonly #ends: QueryBatcher<EndOfJob, EndedPush>;

  constructor({ db, queue, log }: { db: Database; queue: JobQueue; log: Logger }) {
    const group = { concurrency, size, isOfOneItem };
    this.#reads = new QueryBatcher({ ...group, run: (keys) => findPushes(db, keys) });
    this.#lookups = new QueryBatcher({ ...group, run: (lookups) => findPointDevices(db, lookups) });
    this.#starts = new QueryBatcher({
      ...group,
      keyOf: ({ appId, pushId }) => `${appId} ${pushId}`,
      run: (plans) => startSmallPushes(db, plans),
    });
    this.#ends = new QueryBatcher({
      ...group,
      keyOf: ({ appId, pushId }) => `${appId} ${pushId}`,
      run: (ends) =>
        recordThroughOutage({ log }, () =>
          db.transaction(async (tx) => {
            const ended = await endSmallPushes(tx, ends);
            await queue.completeAll(
              planJob,
              ends.map(({ job }) => job),
              tx,
            );
            return ended;
          }),
        ),
    });
  }

  /** Reads a push; undefined if it was deleted. */
  read(key: PlanJob): Promise<Push | undefined> {
    return this.#reads.load(key);
  }

  /** Finds the installation of a point target. */
  find(lookup: PointLookup): Promise<PointDevice | undefined> {
    return this.#lookups.load(lookup);
  }

  /** Plans a push in one step (`startSmallPushes`). */
  start(plan: SmallPlan): Promise<StartedPush | undefined> {
    return this.#starts.load(plan);
  }

  /** Ends a push and its planning job in one transaction (`endSmallPushes`). */
  end(end: EndOfJob): Promise<EndedPush> {
    return this.#ends.load(end);
  }
}
