import { type Rate, type TestLimit, toPushMessage } from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import {
  grantTest,
  paceShare,
  reserveRate,
  reserveSlot,
  type Slot,
} from '../../shared/db/tables/gateway-limits.ts';
import { findPush } from '../../shared/db/tables/pushes.ts';
import type { Grant } from '../../shared/db/tables/usage.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import { recordCapped } from '../recording/unsent.ts';
import { isLate } from '../sending/pace.ts';
import type { SendSlot } from '../sending/task.ts';

/**
 * Lead time of a new time slot: the time to reach the thread and to load the recipients. The first
 * slot of a push has a longer lead (`handOverMs`), because the connection must be opened too.
 */
const leadMs = 100;

/**
 * A batch whose slot begins within this time goes to its thread, which waits for the remaining
 * time.
 */
const handOverMs = 250;

/**
 * When a batch with a rate may be sent: now in a time slot, or not before a time by the database's
 * clock.
 */
export type SendTime =
  | { kind: 'now'; slot: SendSlot }
  | { kind: 'later'; afterMs: number; at: Date };

/**
 * Reserves a time slot for a batch in the flow control of its push (protocol/push.md#flow-control).
 * A batch that is delivered again keeps its slot, unless the slot is over or the rate was changed.
 * Returns undefined if the push has no flow control.
 */
export async function reserveFlowControl(
  { db, clock }: Pick<DispatcherDeps, 'db' | 'clock'>,
  { ids, stored }: BatchInWork,
): Promise<SendTime | undefined> {
  if (!stored.isPaced) return undefined;
  const isUsable = stored.slot !== null && !isLate(-stored.slot.inMs, stored.slot.durationMs);
  const slot = isUsable
    ? stored.slot
    : await reserveSlot(db, ids, { leadMs, firstLeadMs: handOverMs });
  return slot ? sendTimeOf(slot, clock.now()) : undefined;
}

/** Converts a reserved slot into the time at which its batch may be sent. */
export function sendTimeOf({ at, inMs, durationMs }: Slot, nowMs: number): SendTime {
  if (inMs <= handOverMs) return { kind: 'now', slot: { startAtMs: nowMs + inMs, durationMs } };
  return { kind: 'later', afterMs: inMs - handOverMs, at: new Date(at.getTime() - handOverMs) };
}

/**
 * Maximum delay with which a batch may still use its slot, if the whole batch leaves at once. No
 * other batch uses that time.
 */
const wholeBatchToleranceMs = 1000;

const isUsable = ({ inMs, durationMs }: Slot): boolean =>
  durationMs === 0 ? -inMs <= wholeBatchToleranceMs : !isLate(-inMs, durationMs);

/** Returns whether the rate has room for the whole batch now, so that it needs no time slot. */
const isImmediate = ({ inMs, durationMs }: Slot): boolean => inMs <= 1 && durationMs === 0;

/**
 * Reserves time for a batch in the rate of its gateway, which all dispatchers share. A batch that
 * is delivered again keeps its slot unless the slot is over. Returns undefined if the gateway has
 * no rate, or if the rate has room for the whole batch.
 */
export async function reserveGatewayRate(
  deps: Pick<DispatcherDeps, 'db' | 'appCache' | 'clock'>,
  batch: BatchInWork,
): Promise<SendTime | undefined> {
  const { connector: id, profile: name, rateSlot } = batch.stored;
  const connector = connectors.get(id);
  if (!connector?.rate) return undefined;
  const profiles = await deps.appCache.profiles(batch.ids.appId);
  const profile = profiles.find(
    (candidate) => candidate.connector === id && candidate.name === name,
  );
  const credentials = connector.credentials.safeParse(profile?.credentials);
  const rate = credentials.success ? connector.rate(credentials.data) : null;
  if (!rate) return undefined;
  const slot =
    rateSlot && isUsable(rateSlot)
      ? rateSlot
      : await reserve(deps, batch, {
          rate: { ...rate, perSecond: rate.perSecond * paceShare },
          ...connector.limits,
        });
  return isImmediate(slot) ? undefined : sendTimeOf(slot, deps.clock.now());
}

function reserve(
  { db }: Pick<DispatcherDeps, 'db'>,
  { ids: { appId, batchId }, stored: { connector, profile, open, isPersonal } }: BatchInWork,
  { rate, ...limits }: { rate: Rate; recipientsPerRequest: number },
): Promise<Slot> {
  const recipientsPerRequest = isPersonal ? 1 : limits.recipientsPerRequest;
  const units = rate.counts === 'recipients' ? open : Math.ceil(open / recipientsPerRequest);
  // A batch of several requests is sent evenly. Otherwise all of them would leave when there is
  // room for the last one.
  const isEven = recipientsPerRequest === 1 || open > recipientsPerRequest;
  const key = { appId, batchId, connector, profile };
  return db.transaction((tx) => reserveRate(tx, key, rate, { units, isEven }));
}

/**
 * Applies the limits of a test push (protocol/push.md#test-pushes): recipients beyond the limit end
 * `capped`. Returns the reason if no recipient is left.
 */
export async function checkTestLimit(
  deps: Pick<DispatcherDeps, 'db'>,
  { ids, stored }: BatchInWork,
): Promise<string | undefined> {
  const connector = connectors.get(stored.connector);
  if (!connector?.testLimit || stored.attempt > 0) return undefined;
  const push = await findPush(deps.db, ids.appId, ids.pushId);
  const limit = push && connector.testLimit(toPushMessage(push));
  if (!limit) return undefined;
  const devices = stored.size;
  const test = { ...ids, connector: stored.connector, devices };
  const granted = await deps.db.transaction((tx) => grantTest(tx, test, limit));
  if (granted >= devices) return undefined;
  const why = reasonOf(limit);
  if (granted === 0) return why;
  await recordCapped(deps, ids, { granted, reason: why });
  return undefined;
}

const reasonOf = ({ pushesPerDay, devicesPerPush }: TestLimit): string =>
  reason('testLimit', { devices: devicesPerPush, times: pushesPerDay });

/**
 * Counts the recipients of a batch towards the app's daily cap (protocol/push.md#daily-recipients).
 * A batch counts once, even if it is delivered several times. A retry batch does not count, because
 * its first batch did. Recipients beyond the cap end `capped`. Returns the reason if no recipient
 * is left.
 */
export async function checkDailyCap(
  deps: Pick<DispatcherDeps, 'db' | 'appCache' | 'queries'>,
  { ids, stored }: BatchInWork,
): Promise<string | undefined> {
  // A recall without a replacement sends no message.
  if (stored.attempt > 0 || stored.isRecall) return undefined;
  const app = await deps.appCache.app(ids.appId);
  if (!app) return undefined;
  const cap = app.options.dailyRecipientCap;
  const grant =
    stored.grant ?? (await deps.queries.grant({ ...ids, cap })) ?? (await readGrant(deps, ids));
  if (!grant || grant.granted >= grant.size) return undefined;
  const why = reason('appCap', { cap });
  if (grant.granted === 0) return why;
  await recordCapped(deps, ids, { granted: grant.granted, reason: why });
  return undefined;
}

/** Reads the grant that another process obtained for the batch after this process had loaded it. */
async function readGrant(
  { queries }: Pick<DispatcherDeps, 'queries'>,
  ids: DeliverJob,
): Promise<Grant | null> {
  const batch = await queries.readSnapshot(ids);
  return batch?.grant ?? null;
}
