import { retryDuringOutage } from '../../shared/db/outage.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { insertGatewayMessages } from '../../shared/db/tables/gateways/messages.ts';
import { deleteInvalidInstallations } from '../../shared/db/tables/installations/invalid-tokens.ts';
import {
  type Batch,
  insertFailures,
  lockBatch,
  markJobCreated,
  type RecipientFailure,
  settleBatch,
} from '../../shared/db/tables/pushes/batches.ts';
import { type BatchSnapshot, dueIn } from '../../shared/db/tables/pushes/delivery.ts';
import { recordProfileError } from '../../shared/db/tables/pushes/progress.ts';
import {
  type Outcome,
  type OutcomeTotals,
  openCode,
  outcomeCode,
  outcomes,
  totalsOf,
} from '../../shared/domain/outcome.ts';
import type { Permit } from '../../shared/queue/consumer.ts';
import { type DeliverJob, deliverJob, type JobKind } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { wakeWhenDue } from '../delivery/flow-control.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult, RetryGroup } from '../sending/task.ts';
import { closePush } from './closing.ts';
import { recordPartial, withoutRetried } from './partial-result.ts';
import { endSpentTries, recordRetry } from './retried.ts';

/** A batch with the job that it came by; a push to few has none of its own. */
export interface DeliverOptions {
  kind?: JobKind<DeliverJob>;
  job?: Job<DeliverJob>;
  /** What it holds of its consumer while it is in work. */
  permit?: Permit;
}

interface Recording extends DeliverOptions {
  batch: BatchSnapshot;
  result: DeliverResult;
  /** Whether this try is one of those that are bounded: the gateway could be asked. */
  isCounted: boolean;
}

/**
 * Records what became of a batch: one transaction with outcome totals, reasons, dead tokens, retries and
 * the job done (develop/architecture.md#life-of-a-push). False when the stop left recipients unsent: those settled are kept, the
 * batch goes back.
 */
export async function recordResult(
  deps: DispatcherDeps,
  task: DeliverJob,
  recording: Recording,
): Promise<boolean> {
  const { batch, isCounted } = recording;
  const result = endSpentTries(recording.result, batch.tries, isCounted);
  countCalls(deps, result);
  if (result.settled.includes(openCode)) {
    const kept = await recorded(deps, () => recordPartial(deps, task, { batch, result, isCounted }));
    countRepeats(deps, batch.connector, kept);
    return false;
  }
  const settled = await recorded(deps, () =>
    deps.db.transaction(async (tx) => {
      const own = await settle(tx, task, result);
      if (own) await writeDetails(deps, tx, task, { batch, ...own, isCounted });
      await completeJob(deps, tx, recording);
      return own;
    }),
  );
  if (settled) {
    countRecipients(deps, task.appId, result.connector, settled.totals);
    countRepeats(deps, result.connector, settled.result.retries);
  }
  countHanded(deps, task.appId, { result, recipients: settled?.totals.sent ?? 0 });
  // Whoever fails to close it here leaves that to the reaper.
  await closePush(deps, task.appId, task.pushId);
  return true;
}

/** Settles the batch with what counts of the result; undefined when somebody else has. */
async function settle(
  tx: Handle,
  task: DeliverJob,
  result: DeliverResult,
): Promise<{ result: DeliverResult; totals: OutcomeTotals } | undefined> {
  const { appId, batchId: id } = task;
  const totals = totalsOf(result.settled);
  const { movedCount } = result;
  if (await settleBatch(tx, { appId, id, movedCount }, result.settled, totals)) return { result, totals };
  const rest = await withoutRetried(tx, task, result);
  return rest && settle(tx, task, rest);
}

/** What could not be recorded for this long is given up: the batch is then taken again. */
const recordPatienceMs = 120_000;

/**
 * Records through an outage of the database. What a thread has sent is known only here until it is recorded:
 * losing it to a restart of PostgreSQL would send to all of the batch once more.
 */
function recorded<T>({ log }: DispatcherDeps, work: () => Promise<T>): Promise<T> {
  const message = 'the database is away; outcomes wait to be recorded';
  return retryDuringOutage({ log, message, patienceMs: recordPatienceMs }, work);
}

async function writeDetails(
  deps: DispatcherDeps,
  tx: Handle,
  task: DeliverJob,
  { batch, result, totals, isCounted }: Omit<Recording, keyof DeliverOptions> & { totals: OutcomeTotals },
): Promise<void> {
  await insertFailures(tx, { ...task, connector: result.connector }, result.failures);
  await insertGatewayMessages(tx, { ...task, connector: result.connector }, result.messages);
  // Without a success of its own a batch deletes nothing; the push's end may still do so (protocol/delivery.md#promise-7).
  if ((totals.sent ?? 0) > 0) await deleteInvalidInstallations(tx, task.appId, result.failures);
  for (const retry of result.retries) await recordRetry(deps, tx, task, { batch, retry, isCounted });
  if (result.halt !== null) {
    const push = { appId: task.appId, id: task.pushId };
    await recordProfileError(tx, push, `${result.connector}/${result.profile}`, result.halt);
  }
}

interface Postponing extends DeliverOptions {
  batch: BatchSnapshot;
  afterMs: number;
  /** The same by the database's clock, where it is to be punctual. */
  at?: Date | undefined;
}

/** Puts a batch back for a while by a new job; costs no attempt and is not counted. */
export async function postpone(
  deps: DispatcherDeps,
  task: DeliverJob,
  { batch, afterMs, at, ...options }: Postponing,
): Promise<void> {
  const startAfter = at ?? (await dueIn(deps.db, afterMs));
  await deps.db.transaction(async (tx) => {
    await markJobCreated(tx, task.appId, task.batchId);
    await completeJob(deps, tx, options);
    await deps.queue.send(deliverJob(batch.connector), [task], { tx, startAfter });
  });
  if (at) wakeWhenDue(deps, batch, afterMs);
}

interface Unsent extends DeliverOptions {
  batch: BatchSnapshot;
  outcome: Outcome;
  reason: string;
}

/** Counts what is left of a batch without sending it: the push expired, was cancelled, or its profile given up. */
export async function settleUnsent(deps: DispatcherDeps, task: DeliverJob, unsent: Unsent): Promise<void> {
  const ended = await deps.db.transaction(async (tx) => {
    const stored = await lockBatch(tx, task.appId, task.batchId);
    const totals = stored && (await endOpen(tx, stored, unsent));
    await completeJob(deps, tx, unsent);
    return totals && { connector: stored.connector, totals };
  });
  if (ended) countRecipients(deps, task.appId, ended.connector, ended.totals);
  await closePush(deps, task.appId, task.pushId);
}

/** Settles a locked batch: what is open of it ends in one way. */
async function endOpen(tx: Handle, batch: Batch, { outcome, reason }: Unsent): Promise<OutcomeTotals> {
  const settled = Uint8Array.from(batch.settled ?? new Uint8Array(batch.recipients.length));
  const failures: RecipientFailure[] = [];
  for (const [i, installation] of batch.recipients.entries()) {
    if (settled[i] !== openCode) continue;
    settled[i] = outcomeCode(outcome);
    failures.push({ installation, outcome, status: 0, reason, deadAsOfMs: null });
  }
  const totals = totalsOf(settled);
  await settleBatch(tx, { ...batch, movedCount: batch.retried.length }, settled, totals);
  await insertFailures(tx, batch, failures);
  return totals;
}

/** Ends the job that a batch came by, as part of `tx`; a push to few has none of its own. */
export async function completeJob(
  deps: DispatcherDeps,
  tx: Handle,
  { kind, job }: DeliverOptions,
): Promise<void> {
  if (kind && job) await deps.queue.complete(kind, job, tx);
}

function countRecipients(
  { metrics }: DispatcherDeps,
  app: string,
  connector: string,
  totals: OutcomeTotals,
): void {
  for (const outcome of outcomes) {
    const n = totals[outcome];
    if (n) metrics.recipients.inc({ app, connector, outcome }, n);
  }
}

/** Recipients that are sent to again because a request got no answer, by what became of that request. */
function countRepeats({ metrics }: DispatcherDeps, connector: string, retries: RetryGroup[]): void {
  for (const { isRepeat, why } of retries)
    if (isRepeat) for (const { reason } of why) metrics.recipientsRepeated.inc({ connector, reason });
}

/** Requests that the gateway answered, and devices it took: what its own books show. */
function countHanded(
  { gatewayUsage }: DispatcherDeps,
  appId: string,
  { result, recipients }: { result: DeliverResult; recipients: number },
): void {
  const { connector, profile, calls } = result;
  if (connector === 'channel') return;
  const answered = calls.filter(({ status }) => status > 0);
  const requests = answered.reduce((sum, { count }) => sum + count, 0);
  gatewayUsage.add({ appId, connector, profile }, { requests, recipients });
}

function countCalls({ metrics }: DispatcherDeps, result: DeliverResult): void {
  for (const { connector, status, reason, count } of result.calls)
    metrics.gatewayResponses.inc({ connector, status, reason }, count);
  for (const { connector, seconds } of result.callSeconds)
    for (const value of seconds) metrics.gatewayRequestSeconds.observe({ connector }, value);
}
