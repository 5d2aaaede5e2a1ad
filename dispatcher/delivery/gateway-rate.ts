import type { Rate, TestLimit } from '../../connectors/contract/connector.ts';
import { toPushMessage } from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import { grantTest } from '../../shared/db/tables/gateways/daily-use.ts';
import { reserveRate } from '../../shared/db/tables/gateways/rates.ts';
import type { BatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import type { Slot } from '../../shared/db/tables/pushes/pace.ts';
import { findPush } from '../../shared/db/tables/pushes/pushes.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import { capRest } from './daily-cap.ts';
import { type SendTime, sendTimeOf } from './flow-control.ts';

/** A batch that is to leave whole may come so late: it was counted, and nobody else has its time. */
const lateMs = 1000;
/** One that is spread over its time may not: what it would send now is other batches' time. */
const lateSpreadMs = 50;

const isKept = ({ inMs, durationMs }: Slot): boolean => inMs >= -(durationMs === 0 ? lateMs : lateSpreadMs);

/** Free to go: there is room for all of it now, so that it need not be punctual. */
const isFree = ({ inMs, durationMs }: Slot): boolean => inMs <= 1 && durationMs === 0;

/**
 * The time that the rate of its gateway leaves for a batch, reserved over all dispatchers once however often the
 * batch is taken, unless it was missed. Undefined where it may go at once: no rate is named, or there is room for it.
 */
export async function reserveGatewayRate(
  deps: Pick<DispatcherDeps, 'db' | 'appCache' | 'clock'>,
  { appId, batchId }: DeliverJob,
  batch: BatchSnapshot,
): Promise<SendTime | undefined> {
  const connector = connectors.get(batch.connector);
  if (!connector?.rate) return undefined;
  const profiles = await deps.appCache.profiles(appId);
  const profile = profiles.find(
    ({ connector, name }) => connector === batch.connector && name === batch.profile,
  );
  const credentials = connector.credentials.safeParse(profile?.credentials);
  const rate = credentials.success ? connector.rate(credentials.data) : null;
  if (!rate) return undefined;
  const slot =
    batch.rateSlot && isKept(batch.rateSlot)
      ? batch.rateSlot
      : await reserve(deps, { ...batch, appId, batchId }, { rate, ...connector.limits });
  return isFree(slot) ? undefined : sendTimeOf(slot, deps.clock.now());
}

function reserve(
  { db }: Pick<DispatcherDeps, 'db'>,
  batch: Pick<BatchSnapshot, 'connector' | 'profile' | 'open'> & { appId: string; batchId: number },
  { rate, recipientsPerRequest }: { rate: Rate; recipientsPerRequest: number },
): Promise<Slot> {
  const units = rate.counts === 'recipients' ? batch.open : Math.ceil(batch.open / recipientsPerRequest);
  // What fits into one request leaves with it; what needs several anyway leaves evenly, or all of it would leave in
  // the moment in which there is room for the last.
  const isSpread = recipientsPerRequest === 1 || batch.open > recipientsPerRequest;
  return db.transaction((tx) => reserveRate(tx, batch, rate, { units, isSpread }));
}

/**
 * Holds a push that is marked as a test to its limits (protocol/push.md#test-pushes): what is beyond ends `capped`. Gives a
 * sentence when nobody of the batch is let through.
 */
export async function checkTestLimit(
  deps: Pick<DispatcherDeps, 'db'>,
  task: DeliverJob,
  batch: BatchSnapshot,
): Promise<string | undefined> {
  const connector = connectors.get(batch.connector);
  if (!connector?.testLimit || batch.attempt > 0) return undefined;
  const push = await findPush(deps.db, task.appId, task.pushId);
  const limit = push && connector.testLimit(toPushMessage(push));
  if (!limit) return undefined;
  const devices = batch.size;
  const test = { ...task, connector: batch.connector, devices };
  const granted = await deps.db.transaction((tx) => grantTest(tx, test, limit));
  if (granted >= devices) return undefined;
  const reason = sentenceOf(limit);
  if (granted === 0) return reason;
  await capRest(deps, task, { granted, reason });
  return undefined;
}

const sentenceOf = ({ pushesPerDay, devicesPerPush }: TestLimit): string =>
  `test pushes go to at most ${devicesPerPush} devices, ${pushesPerDay} times a day`;
