import { findTrace } from '../../shared/db/tables/pushes.ts';
import { contextToContinue, inSpan, isTracing } from '../../shared/process/tracing.ts';
import type { JobEnd, Permit } from '../../shared/queue/consumer.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { GatewayPermit } from '../breakers/gateway-queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import {
  type BatchInWork,
  type BatchJob,
  type FreshBatch,
  loadBatch,
  type OnlyBatch,
} from '../recording/batch-in-work.ts';
import { closePush, recordResult, type SentBatch } from '../recording/recorder.ts';
import { recordPostponed, recordUnsent } from '../recording/unsent.ts';
import type { Lane } from '../sending/pool.ts';
import type { KnownPush, SendSlot } from '../sending/task.ts';
import { FirstSend } from './first-send.ts';
import { decide, type GateDecision, reserve } from './gates.ts';
import { holdBatch } from './holding.ts';

interface PushIds {
  appId: string;
  pushId: number;
}

/**
 * Runs work for a push inside a span that continues the trace of the call that sent the push. With
 * tracing it costs one query by the primary key.
 */
export async function tracePush<T>(
  { db }: Pick<DispatcherDeps, 'db'>,
  name: 'plan' | 'batch',
  { appId, pushId, batchId }: PushIds & { batchId?: number },
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
 * Runs the requests of a batch, which a thread sends, inside one span: each request has less than a
 * microsecond for tracing, so the span has their numbers by answer.
 */
function traceGateway(connector: string, work: () => Promise<SentBatch>): Promise<SentBatch> {
  return inSpan(
    'gateway',
    { kind: 'client', attributes: { 'carillon.connector': connector } },
    async (span) => {
      const sent = await work();
      const calls = sent.result.calls.map(({ status, reason, count }) =>
        `${count} × ${status} ${reason}`.trim(),
      );
      span?.setAttribute('carillon.answers', calls);
      return sent;
    },
  );
}

/** What a batch gets from the job that brought it. */
interface DeliverContext {
  /** Tells it to stop. */
  signal: AbortSignal;
  /** The job permit, which a slow batch releases early. */
  permit?: Permit;
  /** Its own job; absent for a batch of a push to few, which the planning job delivers. */
  job?: BatchJob;
  only?: OnlyBatch | undefined;
  fresh?: FreshBatch | undefined;
}

/** End of one round of a batch: that of its job, or `changed`: one more round. */
type RoundEnd = JobEnd | 'changed';

/** Most recipients of a batch that the express thread takes. */
const expressSize = 1000;

/**
 * Slot duration from which a batch waits more than it works, so that it releases its job permit at
 * once.
 */
const longSlotMs = 250;

/**
 * Delivers one batch: load, decide, reserve, send, record, close. Returns `again` when the
 * dispatcher stopped before all of it was sent.
 */
export async function deliverBatch(
  deps: DispatcherDeps,
  ids: DeliverJob,
  context: DeliverContext,
): Promise<JobEnd> {
  // A push that is paused, resumed or cancelled while a batch is in work changes the decision.
  for (let round = context; ; round = { ...context, fresh: undefined }) {
    const end = await tracePush(deps, 'batch', ids, () => deliverOnce(deps, ids, round));
    if (end !== 'changed') return end;
  }
}

async function deliverOnce(
  deps: DispatcherDeps,
  ids: DeliverJob,
  context: DeliverContext,
): Promise<RoundEnd> {
  // Before the state of the push is read: a later pause or cancellation changes the counter.
  const interruptCount = context.fresh?.interruptCount ?? deps.pool.interruptCount(ids.pushId);
  const batch = await loadBatch(deps, ids, context);
  if (!batch) return 'done';
  const decision = await decide(deps, batch);
  if (decision.kind !== 'send') return recordDecision(deps, batch, decision);
  const reservation = await reserve(deps, batch);
  if (reservation.kind !== 'send') return recordDecision(deps, batch, reservation);
  if (context.signal.aborted) return 'again';
  const push = deps.pushCache.get(ids.pushId);
  const known = push && { push, interruptCount };
  return sendAndRecord(deps, batch, { ...context, slot: reservation.slot, known });
}

/** Records a batch that is not sent now. */
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
 * Closes the push if the settled batch is the last one. The planning job closes a push that it
 * delivers itself, together with its own end.
 */
async function closeIfLast(deps: DispatcherDeps, { ids, job }: BatchInWork): Promise<'done'> {
  if (job) await closePush(deps, ids);
  return 'done';
}

interface SendContext extends DeliverContext {
  slot: SendSlot | undefined;
  known: KnownPush | undefined;
}

/**
 * Sends and records a batch; after a probe of a half-open breaker went well, also the rest of it.
 */
async function sendAndRecord(
  deps: DispatcherDeps,
  batch: BatchInWork,
  context: SendContext,
): Promise<RoundEnd> {
  const { appId } = batch.ids;
  const { connector, profile } = batch.stored;
  if (context.slot && context.slot.durationMs >= longSlotMs) context.permit?.release();
  for (;;) {
    const permit = await deps.breakers.acquire({ connector, appId, profile }, context.permit);
    if (permit.kind === 'wait')
      return recordDecision(deps, batch, { kind: 'postpone', afterMs: permit.afterMs });
    const firstSend = new FirstSend(deps, batch);
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
 * Returns the thread's kind. The first batch of a large push uses the express thread, like a push
 * to few: so the push begins at once, even while the bulk threads send another one.
 */
function laneOf(
  { job, stored }: Pick<BatchInWork, 'job' | 'stored'>,
  slot: SendSlot | undefined,
): Lane {
  const isFirst = stored.firstSentAt === null && slot === undefined && stored.size <= expressSize;
  return job && !isFirst ? 'bulk' : 'express';
}

/** Sends a batch in a thread and gives the permit back. A probe has no slot. */
async function send(
  { pool }: DispatcherDeps,
  { ids, ...batch }: BatchInWork,
  { permit, slot, known }: Omit<SendContext, 'permit'> & { permit: GatewayPermit },
): Promise<SentBatch> {
  const { probeSize, progressMemory } = permit;
  const ownSlot = probeSize === undefined ? slot : undefined;
  const { connector } = batch.stored;
  const task = {
    ...{ ...ids, connector, probeSize, progressMemory, slot: ownSlot, known },
    size: batch.stored.size,
  };
  const result = await pool.run(task, laneOf(batch, slot)).catch(async (error: unknown) => {
    await permit.release(undefined);
    throw error;
  });
  return { result, isCounted: await permit.release(result) };
}
