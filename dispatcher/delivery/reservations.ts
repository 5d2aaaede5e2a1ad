import { type Rate, toPushMessage } from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import {
  grantTest,
  paceShare,
  reserveRate,
  reserveSlot,
  type Slot,
} from '../../shared/db/tables/gateway-limits.ts';
import type { BatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import { findPush } from '../../shared/db/tables/pushes.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import { recordCapped } from '../recording/unsent.ts';
import { isLate } from '../sending/pace.ts';
import { checkGates, type Gate, type GateDecision, pass } from './gates.ts';

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
 * Reserves a time slot for a batch in the flow control of its push (protocol/push.md#flow-control).
 * A batch that is delivered again keeps its slot, unless the slot is over or the rate was changed.
 */
const flowControl: Gate = async ({ db, clock }, { ids, stored }) => {
  if (!stored.isPaced) return pass;
  const isInTime = stored.slot !== null && !isLate(-stored.slot.inMs, stored.slot.durationMs);
  const slot = isInTime
    ? stored.slot
    : await reserveSlot(db, ids, { leadMs, firstLeadMs: handOverMs });
  return slot ? sendIn(slot, stored, clock.now()) : pass;
};

/**
 * Sends a batch in its slot, or postpones it to just before the slot. A batch whose slot is later
 * than the expiry of the push is delivered again at the expiry, and then counted as expired.
 */
function sendIn(
  { at, inMs, durationMs }: Slot,
  { expiresAt }: BatchSnapshot,
  nowMs: number,
): GateDecision {
  if (inMs <= handOverMs) return { kind: 'send', slot: { startAtMs: nowMs + inMs, durationMs } };
  const startMs = at.getTime() - handOverMs;
  const beyondMs = Math.max(0, startMs - expiresAt.getTime());
  const afterMs = Math.max(0, inMs - handOverMs - beyondMs);
  return { kind: 'postpone', afterMs, at: new Date(startMs - beyondMs) };
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
 * Reserves time for a batch in the rate of its gateway, which all pushes of a profile share over all
 * dispatchers. A batch that is delivered again keeps its slot unless the slot is over. A batch for
 * which the rate has room is sent at once.
 */
const gatewayRate: Gate = async (deps, batch) => {
  const { connector: id, profile: name, rateSlot } = batch.stored;
  const connector = connectors.get(id);
  if (!connector?.rate) return pass;
  const profiles = await deps.appCache.profiles(batch.ids.appId);
  const profile = profiles.find(
    (candidate) => candidate.connector === id && candidate.name === name,
  );
  const credentials = connector.credentials.safeParse(profile?.credentials);
  const rate = credentials.success ? connector.rate(credentials.data) : null;
  if (!rate) return pass;
  const slot =
    rateSlot && isUsable(rateSlot)
      ? rateSlot
      : await reserveTime(deps, batch, {
          rate: { ...rate, perSecond: rate.perSecond * paceShare },
          ...connector.limits,
        });
  return isImmediate(slot) ? pass : sendIn(slot, batch.stored, deps.clock.now());
};

function reserveTime(
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

/** Ends a batch of which no recipient may be sent to, and the recipients beyond `granted`. */
async function cap(
  deps: DispatcherDeps,
  ids: DeliverJob,
  { granted, reason: why }: { granted: number; reason: string },
): Promise<GateDecision> {
  if (granted === 0) return { kind: 'settle', outcome: 'capped', reason: why };
  await recordCapped(deps, ids, { granted, reason: why });
  return pass;
}

/**
 * Applies the limits of a test push (protocol/push.md#test-pushes): recipients beyond the limit end
 * `capped`.
 */
const testLimit: Gate = async (deps, { ids, stored }) => {
  const connector = connectors.get(stored.connector);
  if (!connector?.testLimit || stored.attempt > 0) return pass;
  const push = await findPush(deps.db, ids.appId, ids.pushId);
  const limit = push && connector.testLimit(toPushMessage(push));
  if (!limit) return pass;
  const devices = stored.size;
  const test = { ...ids, connector: stored.connector, devices };
  const granted = await deps.db.transaction((tx) => grantTest(tx, test, limit));
  if (granted >= devices) return pass;
  const { pushesPerDay: times, devicesPerPush } = limit;
  return cap(deps, ids, {
    granted,
    reason: reason('testLimit', { devices: devicesPerPush, times }),
  });
};

/**
 * Counts the recipients of a batch towards the app's daily cap (protocol/push.md#daily-recipients).
 * A batch counts once, even if it is delivered several times. A retry batch does not count, because
 * its first batch did. Recipients beyond the cap end `capped`.
 */
const dailyCap: Gate = async (deps, { ids, stored }) => {
  // A recall without a replacement sends no message.
  if (stored.attempt > 0 || stored.isRecall) return pass;
  const app = await deps.appCache.app(ids.appId);
  if (!app) return pass;
  const { dailyRecipientCap } = app.options;
  const granted =
    stored.granted ??
    (await deps.queries.grant({ ...ids, cap: dailyRecipientCap })) ??
    // Another process obtained the grant after this process had loaded the batch.
    (await deps.queries.readSnapshot(ids))?.granted ??
    null;
  if (granted === null || granted >= stored.size) return pass;
  return cap(deps, ids, { granted, reason: reason('appCap', { cap: dailyRecipientCap }) });
};

/**
 * Gates that reserve time or recipients for a batch. A batch that is delivered again keeps both.
 * The daily cap comes after the time slots, because it counts on the day of sending. It is the last
 * gate, because a grant is not returned if a later gate postpones the batch.
 */
const reservations: Gate[] = [flowControl, gatewayRate, testLimit, dailyCap];

/** Reserves time slots and recipients for a batch that is about to be sent. */
export const reserve = (deps: DispatcherDeps, batch: BatchInWork): Promise<GateDecision> =>
  checkGates(reservations, deps, batch);
