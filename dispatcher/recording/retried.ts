import { retryMs } from '../../shared/backoff.ts';
import { dayMs } from '../../shared/clock.ts';
import { dueIn } from '../../shared/db/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { insertBatches, type NewBatch } from '../../shared/db/tables/pushes/batches.ts';
import { deliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult, RetryGroup } from '../sending/task.ts';
import type { BatchInWork } from './batch-in-work.ts';

/** Waits between the tries of one recipient. The twelve tries take at least three minutes. */
const waits = { firstMs: 1000, longestMs: 60_000, longestAskedMs: dayMs };

/** Tries that reached the gateway, of one recipient. */
const maxTries = 12;

/**
 * Ends the recipients whose tries are used up as `failed`, with their last reason. Only tries that reached the gateway
 * are bounded.
 */
export function endSpentTries(result: DeliverResult, tries: number): DeliverResult {
  if (tries + 1 < maxTries) return result;
  const spent = result.retries.filter(({ isReached }) => isReached);
  if (spent.length === 0) return result;
  const states = result.states.copy();
  const failures = [...result.failures];
  for (const { indexes, recipients, why } of spent)
    for (const [i, installation] of recipients.entries()) {
      const { status, reason: lastReason } = why[i] ?? { status: 0, reason: 'unknown' };
      const reason = `retries exhausted: ${lastReason}`;
      states.settle(indexes[i] ?? 0, 'failed');
      failures.push({ installation, outcome: 'failed', status, reason, invalidAsOfMs: null });
    }
  return { ...result, states, failures, retries: result.retries.filter(({ isReached }) => !isReached) };
}

/** Writes retry batches with their jobs. Where the push expires first, the batch starts then and is counted expired. */
export async function recordRetries(
  deps: DispatcherDeps,
  tx: Handle,
  { ids: { appId, pushId }, stored }: BatchInWork,
  { retries, isCounted }: { retries: RetryGroup[]; isCounted: boolean },
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
      tries: stored.tries + (retry.isReached && isCounted ? 1 : 0),
      unanswered: stored.unanswered + (retry.isRepeat ? 1 : 0),
      isRepeat: retry.isRepeat,
      lastReason: mostFrequent(retry.why.map(({ reason }) => reason)),
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
 * Returns the wait of recipients that were tried again so often before; none if the cause was our
 * own, for the first time.
 */
const waitMs = ({ afterMs }: RetryGroup, retries: number): number =>
  afterMs === 0 && retries === 0 ? 0 : retryMs(retries, afterMs, waits);

function mostFrequent(words: string[]): string | null {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
