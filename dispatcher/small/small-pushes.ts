import { isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import {
  type EndedPush,
  findPushes,
  type SmallPlan,
  type StartedPush,
  startSmallPushes,
} from '../../shared/db/tables/pushes/small.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { QueryBatcher } from '../../shared/fairness/query-batcher.ts';
import type { Logger } from '../../shared/process/logging.ts';
import {
  findPointDevices,
  type PointDevice,
  type PointLookup,
  uniqueColumns,
} from '../../shared/query/targets/point.ts';
import { ParkedJobs } from '../../shared/queue/consuming/consumer.ts';
import { type EndOfJob, endPushesWithJobs } from '../../shared/queue/ended-pushes.ts';
import type { PlanJob } from '../../shared/queue/jobs.ts';
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

/** A failed group runs again push by push, so that one does not fail the others; not while the database is unavailable. */
const isOfOneItem = (error: unknown): boolean => !isConnectionFailure(error);

/**
 * The statements of small pushes in work: those that wait at the same time share one. A push that is alone waits for
 * nothing.
 */
export class SmallPushes {
  /** Bound of the planning jobs that hold a small push instead of a job permit. */
  readonly jobs = new ParkedJobs(smallPushesAtOnce);
  /** Connections of its own, with `smallSettings`. */
  readonly database: Database;
  readonly #reads: QueryBatcher<PlanJob, Push | undefined>;
  readonly #lookups: QueryBatcher<PointLookup, PointDevice | undefined>;
  readonly #starts: QueryBatcher<SmallPlan, StartedPush | undefined>;
  readonly #ends: QueryBatcher<EndOfJob, EndedPush>;

  constructor({ db, log }: { db: Database; log: Logger }) {
    this.database = db;
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
      run: (ends) => recordThroughOutage({ log }, () => endPushesWithJobs(db, ends)),
    });
  }

  /** Runs the statements for no push on each connection that stays open, which then has them parsed. */
  warmUp(): Promise<void> {
    return this.database.warmUp(runStatements, idleSmallConnections);
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

  /** Ends a push and its planning job in one transaction (`endPushesWithJobs`). */
  end(end: EndOfJob): Promise<EndedPush> {
    return this.#ends.load(end);
  }
}

async function runStatements(connection: Handle): Promise<void> {
  await findPushes(connection, []);
  for (const column of uniqueColumns)
    await findPointDevices(connection, [{ appId: '', column, names: [''], activeSince: new Date(0) }]);
  await startSmallPushes(connection, []);
  await endPushesWithJobs(connection, []);
}
