import type { Handle } from '../../shared/db/pool.ts';
import { insertGatewayMessages } from '../../shared/db/tables/gateways/messages.ts';
import { settleBatch } from '../../shared/db/tables/pushes/batches.ts';
import { recordProfileError } from '../../shared/db/tables/pushes/progress.ts';
import { insertFailures } from '../../shared/db/tables/pushes/reports/recipient-failures.ts';
import type { OutcomeTotals } from '../../shared/domain/outcome.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult } from '../sending/task.ts';
import { type BatchInWork, endJob } from './batch-in-work.ts';
import { countGatewayUsage, countRecipients, countRepeats } from './counts.ts';
import { recordThroughOutage } from './outage.ts';
import { withoutRetried } from './partial.ts';
import { recordRetries } from './retried.ts';
import type { SentBatch } from './sent-batch.ts';

/** Result of a batch as it was settled, and its totals. */
interface Settlement {
  result: DeliverResult;
  totals: OutcomeTotals;
}

/**
 * Settles a sent batch in one transaction: totals, reasons, dead tokens, retry batches, and the end of its job
 * (develop/architecture.md#life-of-a-push).
 */
export async function recordSettled(
  deps: DispatcherDeps,
  batch: BatchInWork,
  sent: SentBatch,
): Promise<void> {
  const { appId } = batch.ids;
  const { connector } = sent.result;
  const settlement = await recordThroughOutage(deps, () =>
    deps.db.transaction(async (tx) => {
      const settled = await settle(tx, batch.ids, sent.result);
      if (settled) await writeDetails(deps, tx, batch, { ...settled, isCounted: sent.isCounted });
      await endJob(deps, tx, batch);
      return settled;
    }),
  );
  if (settlement) {
    countRecipients(deps, appId, connector, settlement.totals);
    countRepeats(deps, connector, settlement.result.retries);
  }
  countGatewayUsage(deps, appId, { result: sent.result, recipients: settlement?.totals.sent ?? 0 });
}

/**
 * Settles a batch with its result, less the recipients that are in retry batches by now; undefined when it was settled
 * already.
 */
async function settle(tx: Handle, ids: DeliverJob, result: DeliverResult): Promise<Settlement | undefined> {
  const { states, retriedCount, sentBy } = result;
  const totals = states.totals();
  const batch = { appId: ids.appId, id: ids.batchId, retriedCount, sentBy };
  if (await settleBatch(tx, batch, states, totals)) return { result, totals };
  const rest = await withoutRetried(tx, ids, result);
  return rest && settle(tx, ids, rest);
}

async function writeDetails(
  deps: DispatcherDeps,
  tx: Handle,
  batch: BatchInWork,
  { result, isCounted }: SentBatch & Settlement,
): Promise<void> {
  const { ids, stored } = batch;
  const { unanswered } = stored;
  const { connector, profile, failures, messages, retries, profileError } = result;
  await insertFailures(tx, { ...ids, connector, profile, unanswered }, failures);
  await insertGatewayMessages(tx, { ...ids, connector }, messages);
  await recordRetries(deps, tx, batch, { retries, isCounted });
  if (profileError !== null)
    await recordProfileError(
      tx,
      { appId: ids.appId, id: ids.pushId },
      `${connector}/${profile}`,
      profileError,
    );
}
