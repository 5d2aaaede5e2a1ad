import type { Rate } from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import { reserveRate } from '../../shared/db/tables/gateways/rates.ts';
import { paceShare, type Slot } from '../../shared/db/tables/pushes/pace.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import { isLate } from '../sending/pace.ts';
import { type SendTime, sendTimeOf } from './flow-control.ts';

/** Lateness up to which a batch that leaves all at once may use its slot: no other batch has its time. */
const wholeBatchToleranceMs = 1000;

const isUsable = ({ inMs, durationMs }: Slot): boolean =>
  durationMs === 0 ? -inMs <= wholeBatchToleranceMs : !isLate(-inMs, durationMs);

/** Whether the rate has room for the whole batch now, so that it needs no slot. */
const isImmediate = ({ inMs, durationMs }: Slot): boolean => inMs <= 1 && durationMs === 0;

/**
 * Reserves time for a batch in the rate of its gateway, which all dispatchers share. A batch that is taken again keeps
 * its slot unless it missed it. Undefined for a gateway without a rate, or with room for the whole batch.
 */
export async function reserveGatewayRate(
  deps: Pick<DispatcherDeps, 'db' | 'appCache' | 'clock'>,
  batch: BatchInWork,
): Promise<SendTime | undefined> {
  const { connector: id, profile: name, rateSlot } = batch.stored;
  const connector = connectors.get(id);
  if (!connector?.rate) return undefined;
  const profiles = await deps.appCache.profiles(batch.ids.appId);
  const profile = profiles.find((candidate) => candidate.connector === id && candidate.name === name);
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
  // A batch of several requests is spread: otherwise all of them would leave when there is room for the last one.
  const isSpread = recipientsPerRequest === 1 || open > recipientsPerRequest;
  const key = { appId, batchId, connector, profile };
  return db.transaction((tx) => reserveRate(tx, key, rate, { units, isSpread }));
}
