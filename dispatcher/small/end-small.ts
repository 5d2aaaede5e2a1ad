import { deleteProven } from '../../shared/db/tables/installations/invalid-tokens.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import type { PlanJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { firstSendMs } from '../delivery/first-send.ts';
import type { DispatcherDeps } from '../deps.ts';
import { countCalls, countGatewayUsage, countRecipients } from '../recording/counts.ts';
import type { SentBatch } from '../recording/sent-batch.ts';

/** End of a small push: its batch with the result, or neither if no installation matched. */
interface End {
  job: Job<PlanJob>;
  push: Push;
  batchId: number | null;
  sent: SentBatch | undefined;
  /** When it was first sent, unless that is saved already. */
  firstSentAt: Date | null;
}

/** Whether a result ends its push: nothing is open or retried, and nothing is learned about the profile. */
const isFinal = ({ result: { states, retries, retriedCount, profileError, messages } }: SentBatch): boolean =>
  !states.hasOpen &&
  retries.length === 0 &&
  retriedCount === 0 &&
  profileError === null &&
  messages.length <= 1;

/**
 * Settles the batch, closes the push and completes its job, together with other pushes that end at the same time. Returns
 * false, and does nothing, for a result that does not end the push.
 */
export async function endSmall(deps: DispatcherDeps, end: End): Promise<boolean> {
  const { job, push, batchId, sent, firstSentAt } = end;
  if (sent && !isFinal(sent)) return false;
  const totals = sent?.result.states.totals() ?? {};
  const batch =
    sent && batchId !== null
      ? {
          id: batchId,
          connector: sent.result.connector,
          profile: sent.result.profile,
          states: Buffer.from(sent.result.states.bytes),
          totals,
          failure: sent.result.failures[0] ?? null,
          messageId: sent.result.messages[0]?.messageId ?? null,
        }
      : null;
  const ended = await deps.small.end({ job, appId: push.appId, pushId: push.id, batch, firstSentAt });
  if (sent) count(deps, push.appId, { sent, isSettled: ended.isSettled });
  if (ended.isSettled && batch?.failure) await deleteProven(deps.db, push.appId, batch.failure);
  if (ended.closed) {
    const waits = { began: ended.closed, job: job.data };
    if (firstSentAt) deps.metrics.pushFirstSendSeconds.observe(firstSendMs(firstSentAt, waits) / 1000);
    const tookMs = Math.max(0, deps.clock.now() - pushBeganAtMs(ended.closed));
    deps.metrics.pushCompleteSeconds.observe(tookMs / 1000);
  }
  return true;
}

function count(
  deps: DispatcherDeps,
  appId: string,
  { sent: { result }, isSettled }: { sent: SentBatch; isSettled: boolean },
): void {
  const totals = isSettled ? result.states.totals() : {};
  countCalls(deps, result);
  countRecipients(deps, appId, result.connector, totals);
  countGatewayUsage(deps, appId, { result, recipients: totals.sent ?? 0 });
}
