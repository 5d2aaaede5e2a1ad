import { type Grant, grantRecipients } from '../../shared/db/tables/apps/usage.ts';
import { checkpointBatch, findBatch } from '../../shared/db/tables/pushes/batches.ts';
import { type BatchSnapshot, readBatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import { openCode, outcomeCode } from '../../shared/domain/outcome.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Takes the recipients of a batch from the app's daily cap (protocol/push.md#daily-recipients), once however often the
 * batch is taken; a retry batch was counted where it came from. Where the rest of the day is too small the
 * first are let through and the others end `capped`. Gives a sentence when nobody is let through.
 */
export async function checkDailyCap(
  deps: Pick<DispatcherDeps, 'db' | 'appCache'>,
  task: DeliverJob,
  batch: BatchSnapshot,
): Promise<string | undefined> {
  if (batch.attempt > 0) return undefined;
  const app = await deps.appCache.app(task.appId);
  if (!app) return undefined;
  const cap = app.options.dailyRecipientCap;
  const reason = `the daily recipient cap of ${cap} is reached`;
  const grant = batch.grant ?? (await grantRecipients(deps.db, task, cap)) ?? (await readGrant(deps, task));
  if (!grant || grant.granted >= grant.size) return undefined;
  if (grant.granted === 0) return reason;
  await capRest(deps, task, { granted: grant.granted, reason });
  return undefined;
}

/** What another take of the same batch was granted between our look at it and our question. */
async function readGrant({ db }: Pick<DispatcherDeps, 'db'>, task: DeliverJob): Promise<Grant | null> {
  const batch = await readBatchSnapshot(db, task.appId, task.batchId);
  return batch?.grant ?? null;
}

/** Writes down that the recipients behind the first `granted` ended; doing so twice changes nothing. */
export async function capRest(
  { db }: Pick<DispatcherDeps, 'db'>,
  task: DeliverJob,
  { granted, reason }: { granted: number; reason: string },
): Promise<void> {
  const stored = await findBatch(db, task.appId, task.batchId);
  if (!stored || stored.isSettled) return;
  const settled = Uint8Array.from(stored.settled ?? new Uint8Array(stored.recipients.length));
  const capped = [...settled.keys()].filter((i) => i >= granted && settled[i] === openCode);
  if (capped.length === 0) return;
  for (const i of capped) settled[i] = outcomeCode('capped');
  const failures = capped.map((i) => ({
    installation: stored.recipients[i] ?? 0,
    outcome: 'capped' as const,
    status: 0,
    reason,
    deadAsOfMs: null,
  }));
  await checkpointBatch(db, stored, settled, failures);
}
