import { Batcher } from '../shared/batcher.ts';
import { isConnectionFailure } from '../shared/db/limits/database-errors.ts';
import { retryDuringOutage } from '../shared/db/outage.ts';
import type { Database, Handle } from '../shared/db/pool.ts';
import {
  findPointDevices,
  type PointDevice,
  type PointLookup,
} from '../shared/db/tables/audience.ts';
import {
  type BatchKey,
  insertBatchesOf,
  type NewBatch,
  type SettledBatch,
  settleBatches,
} from '../shared/db/tables/batches.ts';
import { type BatchFailures, insertFailures } from '../shared/db/tables/push-failures.ts';
import {
  type BatchSnapshot,
  type ClosedPush,
  type ClosingPush,
  closeSettled,
  type FirstSendTime,
  markFirstSends,
  planWholePushes,
  readBatchSnapshots,
  type WholePlan,
} from '../shared/db/tables/push-progress.ts';
import { findPushes, type PushKey } from '../shared/db/tables/pushes.ts';
import { type BatchMessages, insertGatewayMessages } from '../shared/db/tables/receipts.ts';
import { type ChargedBatch, type Grant, grantRecipients } from '../shared/db/tables/usage.ts';
import { RecipientStates } from '../shared/domain/outcome.ts';
import type { Push } from '../shared/domain/pushes/record.ts';
import type { Logger } from '../shared/process/logging.ts';
import { type DeliverJob, type JobKind, type PlanJob, planJob } from '../shared/queue/jobs.ts';
import type { Job, JobQueue } from '../shared/queue/queue.ts';

/** A push that one step plans, with all its batches. */
export interface WholePush extends WholePlan {
  batches: readonly NewBatch[];
}

/** Result of a batch of which nothing is tried again, with the job that brought it. */
export interface BatchResult {
  batch: SettledBatch;
  failures: BatchFailures;
  messages: BatchMessages;
  /** Absent for a batch that the planning job delivers. */
  job?: { kind: JobKind<DeliverJob>; job: Job<DeliverJob> } | undefined;
  /** The push to close with the result; absent if it has other batches. */
  end?: PushEnd | undefined;
}

/** A push to close, with the planning job that ends then. */
export interface PushEnd extends ClosingPush {
  job?: Job<PlanJob> | undefined;
}

/** How a result was recorded. */
export interface Recorded {
  /** False, and nothing was changed, if the result does not count (`settleBatches`). */
  isSettled: boolean;
  /** The push, if the result has closed it. */
  closed: ClosedPush | undefined;
}

/** Most items of one statement, and most failures. */
const most = { items: 100, failures: 5000 };
/**
 * Statements of one kind at a time. The next batch of items forms while one commits: fewer, larger
 * ones take less CPU time.
 */
const concurrency = 1;

/** Connections that stay open without pushes. */
export const idleBatchedConnections = 2;

/** A failed batch of items runs again item by item, unless the database is unavailable. */
function batched<T, R>(
  run: (items: T[]) => Promise<R[]>,
  options: { uniqueBy?(item: T): string; weightOf?(item: T): number } = {},
): Batcher<T, R> {
  return new Batcher<T, R>({
    ...{ concurrency, size: most.items, ...options },
    run,
    runOne: async (item) => (await run([item]))[0] as R,
    isShared: isConnectionFailure,
  });
}

/**
 * The statements of planning, delivery and recording. Pushes and batches that need the same
 * statement at the same time share it: most pushes go to one device, and a statement for each would
 * cost more than the push. A push that is alone waits for nothing. As many items wait at most as
 * jobs are in work (`limits.ts`).
 */
export class BatchedQueries {
  /** Its connections, with the settings of `onePlanSettings`. */
  readonly database: Database;
  readonly #pushes: Batcher<PushKey, Push | undefined>;
  readonly #devices: Batcher<PointLookup, PointDevice | undefined>;
  readonly #plans: Batcher<WholePush, number[] | undefined>;
  readonly #snapshots: Batcher<BatchKey, BatchSnapshot | undefined>;
  readonly #grants: Batcher<ChargedBatch, Grant | undefined>;
  readonly #firstSends: Batcher<FirstSendTime, boolean>;
  readonly #results: Batcher<BatchResult, Recorded>;
  readonly #ends: Batcher<PushEnd, ClosedPush | undefined>;

  constructor({ db, queue, log }: { db: Database; queue: JobQueue; log: Logger }) {
    const through = <T>(work: (tx: Handle) => Promise<T>) =>
      recordThroughOutage({ log }, () => db.transaction(work));
    const uniqueBy = ({ id }: PushKey) => String(id);
    this.database = db;
    this.#pushes = batched((keys) => findPushes(db, keys));
    this.#devices = batched((lookups) => findPointDevices(db, lookups));
    this.#plans = batched((pushes: WholePush[]) => db.transaction((tx) => planWhole(tx, pushes)), {
      uniqueBy,
    });
    this.#snapshots = batched((keys) => readBatchSnapshots(db, keys));
    this.#grants = batched((batches: ChargedBatch[]) => grantRecipients(db, batches), {
      uniqueBy: ({ batchId }) => String(batchId),
    });
    this.#firstSends = batched((times: FirstSendTime[]) => markFirstSends(db, times), { uniqueBy });
    this.#results = batched(
      (results: BatchResult[]) => through((tx) => record(tx, queue, results)),
      {
        uniqueBy: ({ batch }) => String(batch.id),
        weightOf: ({ failures }) => 1 + (failures.failures.length * most.items) / most.failures,
      },
    );
    this.#ends = batched((ends: PushEnd[]) => through((tx) => end(tx, queue, ends)), { uniqueBy });
  }

  /** Reads a push; undefined if it was deleted. */
  findPush(key: PushKey): Promise<Push | undefined> {
    return this.#pushes.run(key);
  }

  /** Finds the device of a target that names one. */
  findDevice(lookup: PointLookup): Promise<PointDevice | undefined> {
    return this.#devices.run(lookup);
  }

  /**
   * Plans a push by one step. Returns the ids of its batches; undefined, and changes nothing, if
   * another planner has planned it, if it was paused or cancelled, and if another transaction has
   * locked it.
   */
  planWhole(push: WholePush): Promise<number[] | undefined> {
    return this.#plans.run(push);
  }

  /** Reads the state of a batch and its push; undefined if it was deleted. */
  readSnapshot(key: BatchKey): Promise<BatchSnapshot | undefined> {
    return this.#snapshots.run(key);
  }

  /** Charges a batch to the daily cap of its app (`grantRecipients`). */
  grant(batch: ChargedBatch): Promise<Grant | undefined> {
    return this.#grants.run(batch);
  }

  /** Saves the time of the first send of a push; true for the first call only. */
  markFirstSend(time: FirstSendTime): Promise<boolean> {
    return this.#firstSends.run(time);
  }

  /**
   * Settles a batch, writes its failures and message ids, ends its job, and closes its push if it
   * is the only batch, in one transaction.
   */
  record(result: BatchResult): Promise<Recorded> {
    return this.#results.run(result);
  }

  /**
   * Closes a push if all its batches are settled, and ends its planning job in the same
   * transaction. Undefined if it was not closed.
   */
  end(push: PushEnd): Promise<ClosedPush | undefined> {
    return this.#ends.run(push);
  }

  /** Runs statements for no rows on each connection that stays open, which then has them parsed. */
  warmUp(): Promise<void> {
    return this.database.warmUp(runStatements, idleBatchedConnections);
  }
}

async function planWhole(tx: Handle, pushes: WholePush[]): Promise<(number[] | undefined)[]> {
  const planned = await planWholePushes(tx, pushes);
  const ours = pushes.filter((_, i) => planned[i]);
  const ids = await insertBatchesOf(
    tx,
    ours.map(({ appId, id: pushId, batches }) => ({ appId, pushId, batches })),
  );
  const byPush = new Map(ours.map(({ id }, i) => [id, ids[i] ?? []]));
  return pushes.map(({ id }) => byPush.get(id));
}

async function record(tx: Handle, queue: JobQueue, results: BatchResult[]): Promise<Recorded[]> {
  const settled = await settleBatches(
    tx,
    results.map(({ batch }) => batch),
  );
  const ours = results.filter((_, i) => settled[i]);
  await insertFailures(
    tx,
    ours.map(({ failures }) => failures),
  );
  await insertGatewayMessages(
    tx,
    ours.map(({ messages }) => messages),
  );
  const jobs = ours.flatMap(({ job }) => job ?? []);
  for (const ofQueue of Map.groupBy(jobs, ({ kind }) => kind.queue).values())
    if (ofQueue[0])
      await queue.endAll(
        ofQueue[0].kind,
        ofQueue.map(({ job }) => job),
        tx,
      );
  const ends = ours.filter((result) => result.end !== undefined);
  const closed = await end(
    tx,
    queue,
    ends.flatMap((result) => result.end ?? []),
  );
  const closedBy = new Map(ends.map((result, i) => [result, closed[i]]));
  return results.map((result, i) => ({
    isSettled: settled[i] === true,
    closed: closedBy.get(result),
  }));
}

async function end(
  tx: Handle,
  queue: JobQueue,
  ends: PushEnd[],
): Promise<(ClosedPush | undefined)[]> {
  if (ends.length === 0) return [];
  const closed = await closeSettled(tx, ends);
  await queue.endAll(
    planJob,
    ends.flatMap(({ job }) => job ?? []),
    tx,
  );
  return closed;
}

/** A push and a batch that do not exist. */
const none = { appId: '', id: 0, batchId: 0 };

async function runStatements(connection: Handle): Promise<void> {
  await findPushes(connection, [none]);
  for (const column of ['object_id', 'installation_id', 'device_token'] as const)
    await findPointDevices(connection, [
      { appId: '', column, names: [''], activeSince: new Date(0) },
    ]);
  await planWholePushes(connection, [{ ...none, through: 0, devices: 0 }]);
  await readBatchSnapshots(connection, [none]);
  await grantRecipients(connection, [{ ...none, cap: 0 }]);
  await markFirstSends(connection, [{ ...none, at: new Date(0) }]);
  const states = new RecipientStates(new Uint8Array(1));
  await settleBatches(connection, [{ ...none, states, totals: {}, retriedCount: 0 }]);
  await closeSettled(connection, [none]);
}

/** Time after which a result that cannot be recorded is given up: its batch is then taken again. */
const recordPatienceMs = 120_000;

/**
 * Repeats a recording through an outage of the database. Only this process knows the outcomes until
 * they are recorded: without them a restart of PostgreSQL would repeat the whole batch.
 */
export function recordThroughOutage<T>(
  { log }: { log: Logger },
  record: () => Promise<T>,
): Promise<T> {
  const message = 'database unavailable; outcomes wait to be recorded';
  return retryDuringOutage({ log, message, patienceMs: recordPatienceMs }, record);
}
