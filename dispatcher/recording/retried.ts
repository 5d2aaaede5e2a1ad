import { randomInt } from 'node:crypto';
import type { Handle } from '../../shared/db/pool.ts';
import { insertBatches } from '../../shared/db/tables/pushes/batches.ts';
import { type BatchSnapshot, dueIn } from '../../shared/db/tables/pushes/delivery.ts';
import { outcomeCode } from '../../shared/domain/outcome.ts';
import { type DeliverJob, deliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult, RetryGroup } from '../sending/task.ts';

/** The longest pause between two tries of the dispatcher's own choosing. */
const maxBackoffMs = 60_000;
const firstBackoffMs = 1000;

/** A recipient whose gateway answered so often that it shall be asked again is given up. */
const maxTries = 12;

/**
 * Gives up the recipients whose tries are used up: counted failed with the last reason. Only tries that
 * reached the gateway count, and none while its breaker is open (`isCounted`).
 */
export function endSpentTries(result: DeliverResult, tries: number, isCounted: boolean): DeliverResult {
  if (!isCounted || tries + 1 < maxTries) return result;
  const spent = result.retries.filter((retry) => retry.isReached);
  if (spent.length === 0) return result;
  const settled = Uint8Array.from(result.settled);
  const failures = [...result.failures];
  for (const { indexes, recipients, why } of spent)
    for (const [i, installation] of recipients.entries()) {
      settled[indexes[i] ?? 0] = outcomeCode('failed');
      const { status, reason } = why[i] ?? { status: 0, reason: 'unknown' };
      const told = `retries exhausted: ${reason}`;
      failures.push({ installation, outcome: 'failed', status, reason: told, deadAsOfMs: null });
    }
  return { ...result, settled, failures, retries: result.retries.filter((retry) => !retry.isReached) };
}

/**
 * Puts recipients into a batch of their own that starts after what the gateway asked for, or after a
 * back-off with full jitter. Where the push expires first, the batch finds that out and counts it.
 */
export async function recordRetry(
  deps: DispatcherDeps,
  tx: Handle,
  task: DeliverJob,
  { batch, retry, isCounted }: { batch: BatchSnapshot; retry: RetryGroup; isCounted: boolean },
): Promise<void> {
  const { connector, profile } = batch;
  const attempt = batch.attempt + 1;
  const due = await dueIn(tx, retryDelayMs(retry, attempt));
  const startAfter = due < batch.expiresAt ? due : batch.expiresAt;
  const ids = await insertBatches(tx, task.appId, task.pushId, [
    {
      connector,
      profile,
      recipients: retry.recipients,
      badges: retry.badges,
      attempt,
      tries: batch.tries + (retry.isReached && isCounted ? 1 : 0),
      unanswered: batch.unanswered + (retry.isRepeat ? 1 : 0),
      isRepeat: retry.isRepeat,
      lastReason: mostFrequent(retry.why.map(({ reason }) => reason)),
      notBefore: startAfter,
      hasJob: true,
    },
  ]);
  const jobs = ids.map((batchId) => ({ appId: task.appId, pushId: task.pushId, batchId }));
  await deps.queue.send(deliverJob(connector), jobs, { tx, startAfter });
}

function retryDelayMs(retry: RetryGroup, attempt: number): number {
  const ceilingMs = Math.min(firstBackoffMs * 2 ** Math.min(attempt, 10), maxBackoffMs);
  const jitterMs = randomInt(1, ceilingMs + 1);
  return retry.afterMs === null ? jitterMs : retry.afterMs + Math.min(jitterMs, firstBackoffMs);
}

function mostFrequent(words: string[]): string | null {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
