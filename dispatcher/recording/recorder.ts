import { retryMs } from '../../shared/backoff.ts';
import { dayMs } from '../../shared/clock.ts';
import { forEachItem } from '../../shared/db/outage.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { dueIn } from '../../shared/db/query.ts';
import {
  type Batch,
  checkpointBatch,
  insertBatches,
  lockBatch,
  markRetried,
  type NewBatch,
  settleBatches,
} from '../../shared/db/tables/batches.ts';
import {
  deleteInvalid,
  readInvalidAnswers,
  saveKeptTokens,
} from '../../shared/db/tables/invalid-tokens.ts';
import { insertFailures } from '../../shared/db/tables/push-failures.ts';
import {
  type ClosedPush,
  findSettledPushes,
  recordProfileError,
} from '../../shared/db/tables/push-progress.ts';
import { saveFailureCount } from '../../shared/db/tables/pushes.ts';
import { insertGatewayMessages } from '../../shared/db/tables/receipts.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import { type OutcomeTotals, outcomes, sumTotals } from '../../shared/domain/outcome.ts';
import { deletableOf, type KeptTokens, keptOf } from '../../shared/domain/pushes/invalid-tokens.ts';
import { allTotals } from '../../shared/domain/pushes/record.ts';
import { reason, reasonText } from '../../shared/domain/reasons.ts';
import { type DeliverJob, deliverJob, type PlanJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { recordThroughOutage } from '../batched-queries.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult, RetryGroup } from '../sending/task.ts';
import { type BatchInWork, endJob } from './batch-in-work.ts';

/**
 * Minimum failures of a push that count towards the limit of stored failures of its app. Pushes
 * with fewer failures store few rows.
 */
const minCountedFailures = 100;

type ClosingDeps = Pick<
  DispatcherDeps,
  'db' | 'queries' | 'clock' | 'metrics' | 'log' | 'webhooks'
>;

/**
 * Closes a push if all its batches are settled. Called after each batch. Ends `job`, the planning
 * job, in the same transaction. Then deletes the installations with invalid tokens.
 */
export async function closePush(
  deps: ClosingDeps,
  ids: { appId: string; pushId: number },
  job?: Job<PlanJob>,
): Promise<void> {
  const closed = await deps.queries.end({ appId: ids.appId, id: ids.pushId, job });
  if (closed) await finishClosed(deps, ids, closed);
}

/** Updates the metrics of a closed push, and deletes the installations with invalid tokens. */
async function finishClosed(
  deps: ClosingDeps,
  { appId, pushId }: { appId: string; pushId: number },
  closed: ClosedPush,
): Promise<void> {
  const tookMs = Math.max(0, deps.clock.now() - closed.beganAt.getTime());
  deps.metrics.pushCompleteSeconds.observe(tookMs / 1000);
  const outcomes = allTotals(closed.totals);
  const unreached = sumTotals(outcomes) - (outcomes.sent ?? 0);
  if (unreached >= minCountedFailures)
    await saveFailureCount(deps.db, { appId, id: pushId }, unreached);
  if ((outcomes.invalid_token ?? 0) > 0)
    await deleteInvalidTokens(deps, { appId, pushId, objectId: closed.objectId });
}

/**
 * Deletes the installations of a finished push whose tokens are invalid. If a gateway called most
 * tokens of a profile invalid, their installations are kept and the record says so
 * (protocol/delivery.md#promise-7). Only the totals of the whole push show whether this is the
 * case.
 */
async function deleteInvalidTokens(
  { db, log, webhooks }: Pick<DispatcherDeps, 'db' | 'log' | 'webhooks'>,
  { objectId, ...push }: { appId: string; pushId: number; objectId: string },
): Promise<void> {
  const kept: KeptTokens[] = [];
  for (const { successes, ...answers } of await readInvalidAnswers(db, push)) {
    const deletable = deletableOf(answers);
    if (deletable.called || deletable.proven)
      await deleteInvalid(db, { ...push, profile: answers, deletable, successes }, (tx, devices) =>
        webhooks.emitInvalid(tx, { appId: push.appId, push: objectId, devices }),
      );
    const ofProfile = keptOf(answers);
    if (!ofProfile) continue;
    kept.push(ofProfile);
    log.warn(
      { app: push.appId, ...ofProfile },
      'most tokens are called invalid: their devices are kept',
    );
  }
  if (kept.length > 0) await saveKeptTokens(db, push, kept);
}

const maxClosedAtOnce = 100;

/**
 * Closes pushes that a crash left open after their last batch. Returns the number of pushes that it
 * found. If some cannot be closed, rejects after it has closed the others.
 */
export async function closeSettledPushes(deps: ClosingDeps): Promise<number> {
  const found = await findSettledPushes(deps.db, maxClosedAtOnce);
  await forEachItem(found, ({ appId, id }) => closePush(deps, { appId, pushId: id }));
  return found.length;
}

/** A batch that was sent: its result, and whether the tries count towards their limit. */
export interface SentBatch {
  result: DeliverResult;
  isCounted: boolean;
}

/**
 * Records the result of a sent batch. Returns true if the batch is settled. If some recipients are
 * unsent, it stores the outcomes so far and returns false. The batch then returns to the queue.
 */
export async function recordResult(
  deps: DispatcherDeps,
  batch: BatchInWork,
  { result: reported, isCounted }: SentBatch,
): Promise<boolean> {
  const result = isCounted
    ? endSpentTries(reported, batch.stored.tries)
    : withUncountedTries(reported);
  countCalls(deps, result);
  const isSettled = !result.states.hasOpen;
  if (isSettled) await recordSettled(deps, batch, result);
  else await recordPartial(deps, batch, result);
  return isSettled;
}

interface Settlement {
  result: DeliverResult;
  totals: OutcomeTotals;
  /** The push, if this result has closed it. */
  closed?: ClosedPush | undefined;
}

/**
 * Settles a sent batch in one transaction: totals, failure reasons, invalid tokens, retry batches
 * and the end of its job (develop/architecture.md#life-of-a-push).
 */
async function recordSettled(
  deps: DispatcherDeps,
  batch: BatchInWork,
  result: DeliverResult,
): Promise<void> {
  const { appId } = batch.ids;
  const settlement =
    (await settleAlone(deps, batch, result)) ?? (await settleWithRetries(deps, batch, result));
  if (settlement) {
    countRecipients(deps, appId, result.connector, settlement.totals);
    countRepeats(deps, result.connector, settlement.result.retries);
  }
  countGatewayUsage(deps, appId, { result, recipients: settlement?.totals.sent ?? 0 });
  if (settlement?.closed) await finishClosed(deps, batch.ids, settlement.closed);
}

/**
 * Settles a batch that needs no retry, in a statement that it shares with other batches. Returns
 * undefined if the batch needs a retry, or if the result no longer matches the stored batch.
 */
async function settleAlone(
  deps: DispatcherDeps,
  batch: BatchInWork,
  result: DeliverResult,
): Promise<Settlement | undefined> {
  if (result.retries.length > 0 || result.profileError !== null) return undefined;
  const settled = resultOf(batch.ids, result);
  const { ids, job, only } = batch;
  const end = only && {
    appId: ids.appId,
    id: ids.pushId,
    job: only.job,
    firstSentAt: only.firstSentAt,
  };
  const recorded = await deps.queries.record({
    batch: settled,
    ...detailsOf(batch, result),
    job,
    end,
  });
  if (!recorded.isSettled) return undefined;
  if (only) {
    only.isEnded = true;
    only.isClosed = recorded.closed !== undefined;
  }
  return { result, totals: settled.totals, closed: recorded.closed };
}

/** Settles a batch in its own transaction. */
function settleWithRetries(
  deps: DispatcherDeps,
  batch: BatchInWork,
  result: DeliverResult,
): Promise<Settlement | undefined> {
  return recordThroughOutage(deps, () =>
    deps.db.transaction(async (tx) => {
      const settled = await settle(tx, batch.ids, result);
      if (settled) await writeDetails(deps, tx, batch, settled.result);
      await endJob(deps, tx, batch);
      return settled;
    }),
  );
}

const resultOf = (
  { appId, batchId: id }: DeliverJob,
  { states, retriedCount, sentBy }: DeliverResult,
) => ({
  appId,
  id,
  states,
  retriedCount,
  sentBy,
  totals: states.totals(),
});

/** Returns the failures and message ids of a result in the form in which they are stored. */
const detailsOf = (
  { ids, stored }: BatchInWork,
  { connector, profile, failures, messages }: DeliverResult,
) => ({
  failures: { batch: { ...ids, connector, profile, unanswered: stored.unanswered }, failures },
  messages: { batch: { ...ids, connector }, messages },
});

/**
 * Settles a batch. Leaves out recipients that another process has moved to retry batches since the
 * batch was loaded, because the retry batches count them. Returns undefined if the batch was settled
 * before.
 */
async function settle(
  tx: Handle,
  ids: DeliverJob,
  result: DeliverResult,
): Promise<Settlement | undefined> {
  const batch = resultOf(ids, result);
  const [isSettled] = await settleBatches(tx, [batch]);
  if (isSettled) return { result, totals: batch.totals };
  const locked = await lockBatch(tx, ids.appId, ids.batchId);
  return locked && settle(tx, ids, withoutIndexes(result, locked, new Set(locked.retried)));
}

async function writeDetails(
  deps: DispatcherDeps,
  tx: Handle,
  batch: BatchInWork,
  result: DeliverResult,
): Promise<void> {
  const { ids } = batch;
  const { connector, profile, profileError } = result;
  const { failures, messages } = detailsOf(batch, result);
  await insertFailures(tx, [failures]);
  await insertGatewayMessages(tx, [messages]);
  await recordRetries(deps, tx, batch, result.retries);
  const { appId, batchId, pushId } = ids;
  await deps.webhooks.emitOutcomes(tx, [{ appId, id: batchId, bytes: result.states.bytes }]);
  if (profileError === null) return;
  const push = { appId, id: pushId };
  const objectId = await recordProfileError(tx, push, `${connector}/${profile}`, profileError);
  if (objectId === undefined) return;
  const data = {
    push: objectId,
    reason: reasonText(profileError),
    connector,
    profile,
    connectors: null,
  };
  await deps.webhooks.emit(tx, {
    appId,
    type: 'push.failed',
    data,
    onceKey: `${objectId} ${connector}/${profile}`,
  });
}

/**
 * Records the outcomes so far of a batch that returns to the queue, in one transaction. Recipients
 * that the gateway postponed move to a retry batch, so that neither a probe nor a pause shortens
 * their wait.
 */
async function recordPartial(
  deps: DispatcherDeps,
  batch: BatchInWork,
  result: DeliverResult,
): Promise<void> {
  const { messages } = detailsOf(batch, result);
  const retries = await recordThroughOutage(deps, () =>
    deps.db.transaction(async (tx) => {
      await insertGatewayMessages(tx, [messages]);
      return result.retries.length === 0
        ? checkpoint(tx, batch, result)
        : moveRetried(deps, tx, batch, result);
    }),
  );
  countRepeats(deps, batch.stored.connector, retries);
}

async function checkpoint(db: Handle, { ids, stored }: BatchInWork, result: DeliverResult) {
  const { appId, pushId, batchId } = ids;
  const { unanswered } = stored;
  const { connector, profile } = result;
  const row = { appId, id: batchId, pushId, connector, profile, unanswered };
  await checkpointBatch(db, row, result);
  return result.retries;
}

/**
 * Checkpoints a batch, and moves the recipients that need a retry to retry batches. Returns these
 * retries.
 */
async function moveRetried(
  deps: DispatcherDeps,
  tx: Handle,
  batch: BatchInWork,
  result: DeliverResult,
): Promise<RetryGroup[]> {
  const locked = await lockBatch(tx, batch.ids.appId, batch.ids.batchId);
  if (!locked) return [];
  const own = withoutIndexes(result, locked, new Set(locked.states.closedIndexes));
  await checkpoint(tx, batch, own);
  await markRetried(
    tx,
    locked,
    own.retries.flatMap(({ indexes }) => indexes),
  );
  await recordRetries(deps, tx, batch, own.retries);
  return own.retries;
}

/** Removes the recipients at the given indexes from a result. Their stored states remain. */
function withoutIndexes(result: DeliverResult, stored: Batch, removed: Set<number>): DeliverResult {
  const installations = new Set([...removed].map((index) => stored.recipients[index]));
  const keep = <T>(list: T[], indexes: number[]) =>
    list.filter((_, i) => !removed.has(indexes[i] ?? -1));
  return {
    ...result,
    states: result.states.withStatesOf(stored.states, removed),
    retriedCount: stored.retried.length,
    failures: result.failures.filter(({ installation }) => !installations.has(installation)),
    retries: result.retries
      .map((retry) => ({
        ...retry,
        indexes: keep(retry.indexes, retry.indexes),
        recipients: keep(retry.recipients, retry.indexes),
        why: keep(retry.why, retry.indexes),
        badges: retry.badges && keep(retry.badges, retry.indexes),
      }))
      .filter(({ indexes }) => indexes.length > 0),
  };
}

/**
 * Waits between the tries of one recipient. The twelve tries take at least three minutes.
 * `maxRequestedMs` limits a wait that the gateway requests.
 */
const waits = { firstMs: 1000, maxMs: 60_000, maxRequestedMs: dayMs };

/** Maximum tries of one recipient that reach the gateway. */
const maxTries = 12;

/**
 * Ends recipients that have used up their tries as `failed`, with the last reason. Tries that did
 * not reach the gateway do not count.
 */
function endSpentTries(result: DeliverResult, tries: number): DeliverResult {
  if (tries + 1 < maxTries) return result;
  const spent = result.retries.filter(({ isReached }) => isReached);
  if (spent.length === 0) return result;
  const states = result.states.copy();
  const failures = [...result.failures];
  for (const { indexes, recipients, why } of spent)
    for (const [i, installation] of recipients.entries()) {
      const { status, reason: lastReason } = why[i] ?? { status: 0, reason: 'unknown' };
      const ending = reason('retriesExhausted', { why: lastReason });
      states.settle(indexes[i] ?? 0, 'failed');
      failures.push({ installation, outcome: 'failed', status, reason: ending });
    }
  return {
    ...result,
    states,
    failures,
    retries: result.retries.filter(({ isReached }) => !isReached),
  };
}

const withUncountedTries = (result: DeliverResult): DeliverResult => ({
  ...result,
  retries: result.retries.map((retry) => ({ ...retry, isReached: false })),
});

/**
 * Writes retry batches and their jobs. If the push expires before the retry, the job starts at the
 * expiry, and the gates count the recipients as expired.
 */
async function recordRetries(
  deps: DispatcherDeps,
  tx: Handle,
  { ids: { appId, pushId }, stored }: BatchInWork,
  retries: RetryGroup[],
): Promise<void> {
  const attempt = stored.attempt + 1;
  for (const retry of retries) {
    const due = await dueIn(tx, waitMs(retry, stored.attempt));
    const startAfter = due < stored.expiresAt ? due : stored.expiresAt;
    const batch: NewBatch = {
      connector: stored.connector,
      profile: stored.profile,
      recipients: retry.recipients,
      badges: retry.badges,
      attempt,
      tries: stored.tries + (retry.isReached ? 1 : 0),
      unanswered: stored.unanswered + (retry.isRepeat ? 1 : 0),
      isRepeat: retry.isRepeat,
      lastReason: mostFrequent(retry.why.map((one) => one.reason)),
      notBefore: startAfter,
      expiresAt: stored.ownExpiry,
      language: stored.language,
      quiet: stored.quiet,
      quietUntil: stored.quietUntil,
      hasJob: true,
    };
    const jobs = (await insertBatches(tx, appId, pushId, [batch])).map((batchId) => ({
      appId,
      pushId,
      batchId,
    }));
    await deps.queue.send(deliverJob(stored.connector), jobs, { tx, startAfter });
  }
}

/**
 * Returns the wait before a retry, in ms. A first retry starts at once if the gateway did not cause
 * it.
 */
const waitMs = ({ afterMs }: RetryGroup, retries: number): number =>
  afterMs === 0 && retries === 0 ? 0 : retryMs(retries, afterMs, waits);

function mostFrequent(words: string[]): string | null {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

export function countRecipients(
  { metrics }: DispatcherDeps,
  app: string,
  connector: ConnectorId,
  totals: OutcomeTotals,
): void {
  // Adds 0 for the other outcomes too, so that Prometheus knows each series before its first event.
  for (const outcome of outcomes)
    metrics.recipients.inc({ app, connector, outcome }, totals[outcome] ?? 0);
}

/**
 * Counts the recipients that get a retry. Also counts, by reason, those whose request got no
 * answer.
 */
function countRepeats(
  { metrics }: DispatcherDeps,
  connector: ConnectorId,
  retries: RetryGroup[],
): void {
  for (const { indexes } of retries) metrics.recipientsRetried.inc({ connector }, indexes.length);
  for (const { isRepeat, why } of retries)
    if (isRepeat)
      for (const one of why)
        metrics.recipientsRepeated.inc({ connector, reason: reasonText(one.reason) });
}

/**
 * Counts the requests that the gateway answered and the recipients that it accepted, as the
 * gateway's own statistics do.
 */
function countGatewayUsage(
  { gatewayUsage }: DispatcherDeps,
  appId: string,
  { result, recipients }: { result: DeliverResult; recipients: number },
): void {
  const { connector, profile, calls } = result;
  if (connector === 'channel') return;
  const answered = calls.filter(({ status }) => status > 0);
  const requests = answered.reduce((sum, { count }) => sum + count, 0);
  if (requests > 0 || recipients > 0)
    gatewayUsage.add({ appId, connector, profile }, requests, recipients);
}

function countCalls(
  { metrics }: DispatcherDeps,
  { connector, calls, durations }: DeliverResult,
): void {
  for (const { status, reason: label, count } of calls)
    metrics.gatewayResponses.inc({ connector, status, reason: label }, count);
  metrics.gatewayRequestSeconds.add(connector, durations);
}
