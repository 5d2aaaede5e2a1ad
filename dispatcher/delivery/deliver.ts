import type { BatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import { findTrace } from '../../shared/db/tables/pushes.ts';
import { pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import { contextToContinue, inSpan, isTracing } from '../../shared/process/tracing.ts';
import type { ConcurrencySlot, JobEnd } from '../../shared/queue/consumer.ts';
import type { DeliverJob, PlanJob } from '../../shared/queue/jobs.ts';
import type { GatewayPermit } from '../breakers/gateway-queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import {
  type BatchInWork,
  type BatchJob,
  endJob,
  type OnlyBatch,
} from '../recording/batch-in-work.ts';
import { closePush, recordResult, type SentBatch } from '../recording/recorder.ts';
import { recordPostponed, recordUnsent } from '../recording/unsent.ts';
import type { ThreadPool } from '../sending/pool.ts';
import type { CallCount, DeliverTask, PlannedPush, SendSlot } from '../sending/task.ts';
import { decide, type GateDecision } from './gates.ts';
import { holdBatch } from './holding.ts';
import { reserve } from './reservations.ts';

/**
 * Runs `work` for a push in a span that continues the trace of the call that sent the push. If
 * tracing is on, this costs one query by primary key.
 */
export async function tracePush<T>(
  { db }: Pick<DispatcherDeps, 'db'>,
  name: 'plan' | 'batch',
  { appId, pushId, batchId }: PlanJob & Partial<DeliverJob>,
  work: () => Promise<T>,
): Promise<T> {
  if (!isTracing()) return work();
  const found = await findTrace(db, appId, pushId);
  const parent = await contextToContinue(async () => found?.traceParent ?? null);
  const attributes = {
    'carillon.app': appId,
    ...(found ? { 'carillon.push': found.objectId } : {}),
    ...(batchId === undefined ? {} : { 'carillon.batch': batchId }),
  };
  return inSpan(name, { kind: 'consumer', attributes, parent }, work);
}

/**
 * Runs the requests of a batch in one span. A span for each request would cost too much, so the
 * span carries the number of requests by answer.
 */
function traceGateway(connector: string, work: () => Promise<SentBatch>): Promise<SentBatch> {
  return inSpan(
    'gateway',
    { kind: 'client', attributes: { 'carillon.connector': connector } },
    async (span) => {
      const sent = await work();
      const textOf = ({ status, reason, count }: CallCount) =>
        `${count} × ${status} ${reason}`.trim();
      span?.setAttribute('carillon.answers', sent.result.calls.map(textOf));
      return sent;
    },
  );
}

/** State of a batch that the planning job has just written, and its push. */
export interface PlannedBatch {
  stored: BatchSnapshot;
  plannedPush: PlannedPush;
}

/** Context that the job of a batch passes to its delivery. */
interface DeliverContext {
  /** Aborted when the dispatcher stops. */
  signal: AbortSignal;
  /** Concurrency slot of the job. A slow batch releases it early. */
  concurrencySlot?: ConcurrencySlot;
  /** The job of the batch. Absent if the planning job of a small push delivers the batch. */
  job?: BatchJob;
  only?: OnlyBatch | undefined;
  planned?: PlannedBatch | undefined;
}

/**
 * Result of one round of a delivery: the end of the job, or `changed` if the state of the push has
 * changed and another round must start.
 */
type RoundEnd = JobEnd | 'changed';

/** Maximum recipients of a batch that the express thread sends. */
const expressSize = 1000;

/**
 * A batch with a time slot of at least this duration mostly waits. It releases its concurrency slot
 * at once.
 */
const longSlotMs = 250;

/**
 * Delivers one batch: loads its state, checks the gates, reserves time and recipients, sends,
 * records and closes the push. Returns `again` if the dispatcher stops before the whole batch is
 * sent.
 */
export async function deliverBatch(
  deps: DispatcherDeps,
  ids: DeliverJob,
  context: DeliverContext,
): Promise<JobEnd> {
  // If the push is paused, resumed or cancelled during a round, the gates decide again in the next
  // round.
  for (let round = context; ; round = { ...context, planned: undefined }) {
    const end = await tracePush(deps, 'batch', ids, () => deliverOnce(deps, ids, round));
    if (end !== 'changed') return end;
  }
}

async function deliverOnce(
  deps: DispatcherDeps,
  ids: DeliverJob,
  context: DeliverContext,
): Promise<RoundEnd> {
  const { planned, job, only } = context;
  const stored = planned?.stored ?? (await deps.queries.readSnapshot(ids));
  if (!stored || stored.isSettled) {
    await endJob(deps, deps.db, context);
    return 'done';
  }
  const batch = { ids, stored, job, only };
  const decision = await decide(deps, batch);
  if (decision.kind !== 'send') return recordDecision(deps, batch, decision);
  const reservation = await reserve(deps, batch);
  if (reservation.kind !== 'send') return recordDecision(deps, batch, reservation);
  if (context.signal.aborted) return 'again';
  return sendAndRecord(deps, batch, { ...context, slot: reservation.slot });
}

/** Records the decision of a gate not to send the batch now. */
async function recordDecision(
  deps: DispatcherDeps,
  batch: BatchInWork,
  decision: Exclude<GateDecision, { kind: 'send' }>,
): Promise<RoundEnd> {
  switch (decision.kind) {
    case 'settle':
      await recordUnsent(deps, batch, decision);
      return closeIfLast(deps, batch);
    case 'postpone':
      await recordPostponed(deps, batch, decision);
      return 'done';
    case 'hold':
      return holdBatch(deps, batch);
  }
}

/**
 * Closes the push if this batch was the last one. The planning job of a small push closes it
 * together with its own end.
 */
async function closeIfLast(deps: DispatcherDeps, { ids, job }: BatchInWork): Promise<'done'> {
  if (job) await closePush(deps, ids);
  return 'done';
}

interface SendContext extends DeliverContext {
  slot: SendSlot | undefined;
}

/**
 * Sends and records a batch. If the batch was a probe of a half-open breaker and succeeded, sends
 * its other recipients too.
 */
async function sendAndRecord(
  deps: DispatcherDeps,
  batch: BatchInWork,
  context: SendContext,
): Promise<RoundEnd> {
  const { appId } = batch.ids;
  const { connector, profile } = batch.stored;
  if (context.slot && context.slot.durationMs >= longSlotMs) context.concurrencySlot?.release();
  // From here on, a push to one device mostly waits for its gateway.
  if (context.only && batch.stored.size === 1) context.concurrencySlot?.release(deps.singles);
  let firstSend: FirstSend | undefined;
  for (;;) {
    const permit = await deps.breakers.acquire(
      { connector, appId, profile },
      context.concurrencySlot,
    );
    if (permit.kind === 'wait')
      return recordDecision(deps, batch, { kind: 'postpone', afterMs: permit.afterMs });
    firstSend ??= new FirstSend(deps, batch);
    const sent = await firstSend.during(
      traceGateway(connector, () => send(deps, batch, { ...context, permit })),
    );
    const isSettled = await recordResult(deps, batch, sent);
    await firstSend.end();
    if (isSettled) return closeIfLast(deps, batch);
    const { isInterrupted, hasUnsent } = sent.result;
    if (isInterrupted && !context.signal.aborted && !deps.pool.isStopping) return 'changed';
    if (!hasUnsent || context.signal.aborted) return 'again';
  }
}

/**
 * Chooses the threads for a batch. The express thread sends small pushes and the first batch of a
 * large push, so that each push begins at once even while the bulk threads send another push.
 */
function threadPoolOf(
  { job, stored }: Pick<BatchInWork, 'job' | 'stored'>,
  slot: SendSlot | undefined,
): ThreadPool {
  const isFirst = stored.firstSentAt === null && slot === undefined && stored.size <= expressSize;
  return job && !isFirst ? 'bulk' : 'express';
}

/** Sends a batch in a thread, and releases the gateway permit. A probe has no time slot. */
async function send(
  { pool }: DispatcherDeps,
  { ids, ...batch }: BatchInWork,
  { permit, slot, planned }: Omit<SendContext, 'permit'> & { permit: GatewayPermit },
): Promise<SentBatch> {
  const { probeSize, progressMemory } = permit;
  const ownSlot = probeSize === undefined ? slot : undefined;
  const { connector } = batch.stored;
  const task: DeliverTask = {
    ...ids,
    connector,
    probeSize,
    progressMemory,
    slot: ownSlot,
    plannedPush: planned?.plannedPush,
    size: batch.stored.size,
  };
  const result = await pool.run(task, threadPoolOf(batch, slot)).catch(async (error: unknown) => {
    await permit.release(undefined);
    throw error;
  });
  return { result, isCounted: await permit.release(result) };
}

/**
 * Returns how long Carillon took until the first send, in ms. The time counts from the beginning of
 * the push, or from the end of the last wait that somebody requested, such as quiet hours.
 * Requested waits must not trigger an alert.
 */
function firstSendMs(at: Date, { ids, stored }: BatchInWork): number {
  const { notBefore, quietUntil } = stored;
  const ends = [notBefore?.getTime(), quietUntil?.getTime(), ids.waitedUntilMs].map(
    (ms) => ms ?? 0,
  );
  return Math.max(0, at.getTime() - Math.max(pushBeganAtMs(stored), ...ends));
}

/** If the first send takes longer, its time is saved before the result. */
const slowMs = 1000;

/**
 * Saves the time of the first send of a push. Does nothing if the time is already saved. Saving
 * runs in parallel with sending. If the push has only one batch, the time is saved together with
 * the result, unless sending is slow.
 */
class FirstSend {
  readonly #deps: DispatcherDeps;
  readonly #batch: BatchInWork;
  /** Null once the time is saved or is being saved. */
  #at: Date | null;

  constructor(deps: DispatcherDeps, batch: BatchInWork) {
    this.#deps = deps;
    this.#batch = batch;
    this.#at = batch.stored.firstSentAt ? null : new Date(deps.clock.now());
  }

  /** Waits until the batch is sent. If saving the time has begun, also waits until it is saved. */
  async during<T>(sending: Promise<T>): Promise<T> {
    const { only } = this.#batch;
    if (only) only.firstSentAt = this.#at;
    let saved = only ? undefined : this.#save();
    const saveSlow = () => {
      saved = this.#save();
      if (only) only.firstSentAt = null;
    };
    const timer = only && this.#at ? setTimeout(saveSlow, slowMs) : undefined;
    try {
      return await sending;
    } finally {
      clearTimeout(timer);
      await saved;
    }
  }

  /** Saves the time if the push has only one batch and its result did not save it. */
  async end(): Promise<void> {
    const { only } = this.#batch;
    if (!only?.firstSentAt) return;
    if (only.isClosed) this.#observe(only.firstSentAt);
    else await this.#save();
    only.firstSentAt = null;
  }

  /** Never rejects: the batch is already being sent, and the next batch saves its own time. */
  async #save(): Promise<void> {
    const at = this.#at;
    if (!at) return;
    this.#at = null;
    const { queries, log } = this.#deps;
    const { appId, pushId: id } = this.#batch.ids;
    try {
      if (await queries.markFirstSend({ appId, id, at })) this.#observe(at);
    } catch (error) {
      log.warn({ err: error, push: id }, 'could not save the time of the first send');
    }
  }

  #observe(at: Date): void {
    const { pushFirstSendSeconds } = this.#deps.metrics;
    pushFirstSendSeconds.observe(firstSendMs(at, this.#batch) / 1000);
  }
}
