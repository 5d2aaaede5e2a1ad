import { Batcher } from '../shared/batcher.ts';
import { againAfterDeadlock, isConnectionFailure } from '../shared/db/limits/database-errors.ts';
import { retryDuringOutage } from '../shared/db/outage.ts';
import type { Database, Handle, TransactionWork } from '../shared/db/pool.ts';
import {
  type BatchKey,
  insertBatchesOf,
  type NewBatch,
  type SettledBatch,
  settleBatches,
} from '../shared/db/tables/batches.ts';
import { findPointDevices, type PointLookup } from '../shared/db/tables/point-devices.ts';
import { type BatchFailures, insertFailures } from '../shared/db/tables/push-failures.ts';
import {
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
import { type ChargedBatch, grantRecipients } from '../shared/db/tables/usage.ts';
import type { WebhookEvents } from '../shared/db/webhook-events.ts';
import { RecipientStates } from '../shared/domain/outcome.ts';
import { allTotals } from '../shared/domain/pushes/record.ts';
import type { Logger } from '../shared/process/logging.ts';
import { type DeliverJob, type JobKind, type PlanJob, planJob } from '../shared/queue/jobs.ts';
import type { Job, JobQueue } from '../shared/queue/queue.ts';
import { freshPlansAtOnce } from './limits.ts';

/** A push that one step plans completely, with all its batches. */
export interface WholePush extends WholePlan {
  batches: readonly NewBatch[];
}

/** Result of a batch that needs no retry, with the job that brought the batch. */
export interface BatchResult {
  batch: SettledBatch;
  failures: BatchFailures;
  messages: BatchMessages;
  /** Absent if the planning job delivers the batch. */
  job?: { kind: JobKind<DeliverJob>; job: Job<DeliverJob> } | undefined;
  /** The push to close with the result. Absent if the push has other batches. */
  end?: PushEnd | undefined;
}

/** A push to close, and its planning job, which ends in the same transaction. */
export interface PushEnd extends ClosingPush {
  job?: Job<PlanJob> | undefined;
}

/** What recording a result has changed. */
export interface Recorded {
  /** False if the result does not count (`settleBatches`). Nothing was changed then. */
  isSettled: boolean;
  /** The push, if this result has closed it. */
  closed: ClosedPush | undefined;
}

/**
 * Limits of one statement: maximum number of items (the pushes of one fetch), and maximum failures
 * of all its items.
 */
const limits = { items: freshPlansAtOnce, failures: 5000 };
/**
 * Concurrent statements of one kind. While one statement runs, the items of the next one gather,
 * because few large statements take less CPU time than many small ones.
 */
const concurrency = 1;

/** Connections that stay open while there are no pushes. */
export const idleBatchedConnections = 2;

/**
 * Returns a function that runs an item in a batched query. If a statement fails for the whole
 * batch, it runs again for each item alone. It does not run again if the database is unavailable.
 */
function batched<T, R>(
  run: (items: T[]) => Promise<R[]>,
  options: { uniqueBy?(item: NoInfer<T>): string; weightOf?(item: NoInfer<T>): number } = {},
): (item: T) => Promise<R> {
  const batcher = new Batcher<T, R>({
    concurrency,
    size: limits.items,
    ...options,
    run,
    runOne: async (item) => (await run([item]))[0] as R,
    isShared: isConnectionFailure,
  });
  return (item) => batcher.run(item);
}

/** What the statements write besides their rows: the ends of jobs, and events. */
interface Writing {
  queue: JobQueue;
  webhooks: Pick<WebhookEvents, 'emit' | 'emitOutcomes'>;
}

/**
 * Opens the batched queries of planning, delivery and recording. Most pushes go to one device, so
 * items that need the same statement at the same time share one statement. A single push waits for
 * nothing. The number of jobs in work limits the number of waiting items (`limits.ts`).
 */
export function openBatchedQueries({
  db,
  log,
  ...writing
}: Writing & { db: Database; log: Logger }) {
  const through = <T>(work: TransactionWork<T>) =>
    recordThroughOutage({ log }, () => db.transaction(work));
  const uniqueBy = ({ id }: PushKey) => String(id);
  return {
    /** Connections with the settings of `onePlanSettings`. */
    database: db,
    /** Reads a push; undefined if it was deleted. */
    findPush: batched((keys: PushKey[]) => findPushes(db, keys)),
    /** Finds the device of a push to a single device. */
    findDevice: batched((lookups: PointLookup[]) => findPointDevices(db, lookups)),
    /**
     * Plans all batches of a push in one statement (`planWholePushes`). Returns its batches, or
     * undefined if it was not planned.
     */
    planWhole: batched((pushes: WholePush[]) => db.transaction((tx) => planWhole(tx, pushes)), {
      uniqueBy,
    }),
    /** Reads the state of a batch and its push. Returns undefined if the batch was deleted. */
    readSnapshot: batched((keys: BatchKey[]) => readBatchSnapshots(db, keys)),
    /** Charges a batch to the daily cap of its app (`grantRecipients`). */
    grant: batched((batches: ChargedBatch[]) => grantRecipients(db, batches), {
      uniqueBy: ({ batchId }) => String(batchId),
    }),
    /** Saves the time of the first send of a push. Returns true only for the first call. */
    markFirstSend: batched((times: FirstSendTime[]) => markFirstSends(db, times), { uniqueBy }),
    /**
     * Settles a batch, writes its failures and message ids and ends its job, in one transaction.
     * Also closes the push if the batch is its only one.
     */
    record: batched(
      (results: BatchResult[]) => through((tx, last) => record(tx, last, writing, results)),
      {
        uniqueBy: ({ batch }) => String(batch.id),
        weightOf: ({ failures }) => 1 + (failures.failures.length * limits.items) / limits.failures,
      },
    ),
    /**
     * Closes a push if all its batches are settled, and ends its planning job, in one transaction.
     * Returns undefined if the push was not closed.
     */
    end: batched((ends: PushEnd[]) => through((tx, last) => end(tx, last, writing, ends)), {
      uniqueBy,
    }),
    /**
     * Runs the statements without rows on each permanent connection, so that they are prepared
     * before the first push.
     */
    warmUp: () => db.warmUp(runStatements, idleBatchedConnections),
  };
}

export type BatchedQueries = ReturnType<typeof openBatchedQueries>;

async function planWhole(tx: Handle, pushes: WholePush[]): Promise<(number[] | undefined)[]> {
  const planned = await planWholePushes(tx, pushes);
  const plannedPushes = pushes.filter((_, i) => planned[i]);
  const ids = await insertBatchesOf(
    tx,
    plannedPushes.map(({ appId, id: pushId, batches }) => ({ appId, pushId, batches })),
  );
  const byPush = new Map(plannedPushes.map(({ id }, i) => [id, ids[i] ?? []]));
  return pushes.map(({ id }) => byPush.get(id));
}

async function record(
  tx: Handle,
  last: Handle,
  writing: Writing,
  results: BatchResult[],
): Promise<Recorded[]> {
  const { queue, webhooks } = writing;
  const settled = await settleBatches(
    tx,
    results.map(({ batch }) => batch),
  );
  const settledResults = results.filter((_, i) => settled[i]);
  await insertFailures(
    tx,
    settledResults.map(({ failures }) => failures),
  );
  await insertGatewayMessages(
    tx,
    settledResults.map(({ messages }) => messages),
  );
  await webhooks.emitOutcomes(
    tx,
    settledResults.map(({ batch: { appId, id, states } }) => ({ appId, id, bytes: states.bytes })),
  );
  const jobs = settledResults.flatMap(({ job }) => job ?? []);
  for (const ofQueue of Map.groupBy(jobs, ({ kind }) => kind.queue).values())
    if (ofQueue[0])
      await queue.endAll(
        ofQueue[0].kind,
        ofQueue.map(({ job }) => job),
        tx,
      );
  const ends = settledResults.filter((result) => result.end !== undefined);
  const closed = await end(
    tx,
    last,
    writing,
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
  last: Handle,
  { queue, webhooks }: Writing,
  ends: PushEnd[],
): Promise<(ClosedPush | undefined)[]> {
  if (ends.length === 0) return [];
  const closed = await closeSettled(tx, ends);
  const events = closed.flatMap((push, i) => (push ? doneEvent(ends[i]?.appId ?? '', push) : []));
  await webhooks.emit(tx, ...events);
  await queue.endAll(
    planJob,
    ends.flatMap(({ job }) => job ?? []),
    last,
  );
  return closed;
}

const doneEvent = (appId: string, { objectId: push, devices, totals }: ClosedPush) => {
  const data = { push, devices, outcomes: allTotals(totals), connectors: totals };
  return { appId, type: 'push.done' as const, data };
};

/** Keys of a push and a batch that do not exist. */
const missingKeys = { appId: '', id: 0, batchId: 0 };

async function runStatements(connection: Handle): Promise<void> {
  await findPushes(connection, [missingKeys]);
  for (const column of ['object_id', 'installation_id', 'device_token'] as const)
    await findPointDevices(connection, [
      { appId: '', column, storedForms: [''], activeSince: new Date(0) },
    ]);
  await planWholePushes(connection, [{ ...missingKeys, through: 0, devices: 0 }]);
  await readBatchSnapshots(connection, [missingKeys]);
  await grantRecipients(connection, [{ ...missingKeys, cap: 0 }]);
  await markFirstSends(connection, [{ ...missingKeys, at: new Date(0) }]);
  const states = new RecipientStates(new Uint8Array(1));
  await settleBatches(connection, [{ ...missingKeys, states, totals: {}, retriedCount: 0 }]);
  await closeSettled(connection, [missingKeys]);
}

/** Maximum time to retry recording a result. After it, the batch is delivered again. */
const recordPatienceMs = 120_000;

/** Maximum tries of a transaction that records a result and is deadlocked. */
const deadlockTries = 5;

/**
 * Retries recording while the database is unavailable, and after a deadlock. Only this process knows
 * the outcomes until they are recorded. Without the retry, a restart of PostgreSQL would cause the
 * whole batch to be sent again.
 */
export function recordThroughOutage<T>(
  { log }: { log: Logger },
  record: () => Promise<T>,
): Promise<T> {
  const message = 'database unavailable; outcomes wait to be recorded';
  return retryDuringOutage({ log, message, patienceMs: recordPatienceMs }, () =>
    againAfterDeadlock(record, deadlockTries),
  );
}
