import type { Handle } from '../../shared/db/pool.ts';
import { insertGatewayMessages } from '../../shared/db/tables/gateways/messages.ts';
import { settleBatches } from '../../shared/db/tables/pushes/batches.ts';
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
  const settlement = (await settleAlone(deps, batch, sent)) ?? (await settleWithRetries(deps, batch, sent));
  if (settlement) {
    countRecipients(deps, appId, connector, settlement.totals);
    countRepeats(deps, connector, settlement.result.retries);
  }
  countGatewayUsage(deps, appId, { result: sent.result, recipients: settlement?.totals.sent ?? 0 });
}

/**
 * Settles a batch of which nothing is tried again, together with others. Undefined for any other batch, and where the
 * result does not count as it is.
 */
async function settleAlone(
  { queries }: DispatcherDeps,
  batch: BatchInWork,
  { result }: SentBatch,
): Promise<Settlement | undefined> {
  if (result.retries.length > 0 || result.profileError !== null) return undefined;
  const settled = resultOf(batch.ids, result);
  const isSettled = await queries.record({ batch: settled, ...detailsOf(batch, result), job: batch.job });
  return isSettled ? { result, totals: settled.totals } : undefined;
}

/** Settles a batch in a transaction of its own. */
function settleWithRetries(
  deps: DispatcherDeps,
  batch: BatchInWork,
  sent: SentBatch,
): Promise<Settlement | undefined> {
  return recordThroughOutage(deps, () =>
    deps.db.transaction(async (tx) => {
      const settled = await settle(tx, batch.ids, sent.result);
      if (settled) await writeDetails(deps, tx, batch, { ...settled, isCounted: sent.isCounted });
      await endJob(deps, tx, batch);
      return settled;
    }),
  );
}

const resultOf = ({ appId, batchId: id }: DeliverJob, { states, retriedCount, sentBy }: DeliverResult) => ({
  ...{ appId, id, states, retriedCount, sentBy },
  totals: states.totals(),
});

/** Returns the failures and message ids of a result, as they are stored. */
const detailsOf = (
  { ids, stored }: BatchInWork,
  { connector, profile, failures, messages }: DeliverResult,
) => ({
  failures: { batch: { ...ids, connector, profile, unanswered: stored.unanswered }, failures },
  messages: { batch: { ...ids, connector }, messages },
});

/**
 * Settles a batch with its result, less the recipients that are in retry batches by now; undefined when it was settled
 * already.
 */
async function settle(tx: Handle, ids: DeliverJob, result: DeliverResult): Promise<Settlement | undefined> {
  const batch = resultOf(ids, result);
  const [isSettled] = await settleBatches(tx, [batch]);
  if (isSettled) return { result, totals: batch.totals };
  const rest = await withoutRetried(tx, ids, result);
  return rest && settle(tx, ids, rest);
}

async function writeDetails(
  deps: DispatcherDeps,
  tx: Handle,
  batch: BatchInWork,
  { result, isCounted }: SentBatch & Settlement,
): Promise<void> {
  const { ids } = batch;
  const { connector, profile, retries, profileError } = result;
  const { failures, messages } = detailsOf(batch, result);
  await insertFailures(tx, [failures]);
  await insertGatewayMessages(tx, [messages]);
  await recordRetries(deps, tx, batch, { retries, isCounted });
  if (profileError !== null)
    await recordProfileError(
      tx,
      { appId: ids.appId, id: ids.pushId },
      `${connector}/${profile}`,
      profileError,
    );
}
