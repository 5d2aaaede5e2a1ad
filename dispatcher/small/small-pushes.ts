import { Batcher, type BatcherOptions } from '../../shared/batcher.ts';
import { isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
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
import {
  findPointDevices,
  type PointDevice,
  type PointLookup,
  uniqueColumns,
} from '../../shared/query/targets/point.ts';
import { ParkedJobs } from '../../shared/queue/consumer.ts';
import { type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job, JobQueue } from '../../shared/queue/queue.ts';
import { smallPushesAtOnce } from '../limits.ts';
import { recordThroughOutage } from '../recording/outage.ts';

/** Most pushes of one statement. */
const size = 100;
/** Connections that stay open while there are no small pushes. */
export const idleSmallConnections = 2;
/**
 * Their settings: each group is planned for its keys, since PostgreSQL would keep a plan that it made for empty tables.
 * Parsing, a third of the work before a statement is executed, is done once.
 */
export const smallSettings = { plan_cache_mode: 'force_custom_plan', jit: 'off' };
/**
 * Statements of one kind at a time. The next group forms while one commits: fewer, larger groups take less processor
 * time.
 */
const concurrency = 1;

/** End of a push to one device, with the job that planned it. */
export interface EndOfJob extends SmallEnd {
  job: Job<PlanJob>;
}

/** A failed group runs again push by push, so that one does not fail the others; not while the database is unavailable. */
function grouped<T, R>(
  run: (items: T[]) => Promise<R[]>,
  options: Pick<BatcherOptions<T, R>, 'uniqueBy'> = {},
): Batcher<T, R> {
  return new Batcher<T, R>({
    ...{ concurrency, size, ...options },
    run,
    runOne: async (item) => (await run([item]))[0] as R,
    isShared: isConnectionFailure,
  });
}

/**
 * The statements of small pushes in work: those that wait at the same time share one. A push that is alone waits for
 * nothing.
 */
export class SmallPushes {
  /** Bound of the planning jobs that hold a small push instead of a job permit. */
  readonly jobs = new ParkedJobs(smallPushesAtOnce);
  /** Connections of its own, with `smallSettings`. */
  readonly database: Database;
  readonly #reads: Batcher<PlanJob, Push | undefined>;
  readonly #lookups: Batcher<PointLookup, PointDevice | undefined>;
  readonly #starts: Batcher<SmallPlan, StartedPush | undefined>;
  readonly #ends: Batcher<EndOfJob, EndedPush>;

  constructor({ db, queue, log }: { db: Database; queue: JobQueue; log: Logger }) {
    this.database = db;
    this.#reads = grouped((keys) => findPushes(db, keys));
    this.#lookups = grouped((lookups) => findPointDevices(db, lookups));
    this.#starts = grouped((plans: SmallPlan[]) => startSmallPushes(db, plans), { uniqueBy: keyOf });
    this.#ends = grouped((ends: EndOfJob[]) => recordThroughOutage({ log }, () => endAll(db, queue, ends)), {
      uniqueBy: keyOf,
    });
  }

  /** Runs the statements for no push on each connection that stays open, which then has them parsed. */
  warmUp(): Promise<void> {
    return this.database.warmUp(runStatements, idleSmallConnections);
  }

  /** Reads a push; undefined if it was deleted. */
  read(key: PlanJob): Promise<Push | undefined> {
    return this.#reads.run(key);
  }

  /** Finds the installation of a point target. */
  find(lookup: PointLookup): Promise<PointDevice | undefined> {
    return this.#lookups.run(lookup);
  }

  /** Plans a push in one step (`startSmallPushes`). */
  start(plan: SmallPlan): Promise<StartedPush | undefined> {
    return this.#starts.run(plan);
  }

  /** Ends a push and its planning job in one transaction (`endSmallPushes`). */
  end(end: EndOfJob): Promise<EndedPush> {
    return this.#ends.run(end);
  }
}

const keyOf = ({ appId, pushId }: { appId: string; pushId: number }): string => `${appId} ${pushId}`;

/** Ends pushes and their planning jobs in one transaction. */
const endAll = (db: Database, queue: JobQueue, ends: readonly EndOfJob[]): Promise<EndedPush[]> =>
  db.transaction(async (tx) => {
    const ended = await endSmallPushes(tx, ends);
    await queue.endAll(
      planJob,
      ends.map(({ job }) => job),
      tx,
    );
    return ended;
  });

async function runStatements(connection: Handle): Promise<void> {
  await findPushes(connection, []);
  for (const column of uniqueColumns)
    await findPointDevices(connection, [{ appId: '', column, names: [''], activeSince: new Date(0) }]);
  await startSmallPushes(connection, []);
  await endSmallPushes(connection, []);
}
