import type { Handle } from '../../../../shared/db/pool.ts';
import { readPastRate } from '../../../../shared/db/tables/audience.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { type ForecastText, forecast } from '../../../../shared/domain/texts/texts.ts';
import type { ConnectorShare } from './audience.ts';

/** Part of the reply with the duration of sending. */
export interface DurationEstimate {
  /** Null without `flow_control`. */
  estimatedSeconds: number | null;
  /** Rate of the estimate, or of the last large push; wire name. */
  pace: ForecastText;
}

/** Estimates how long sending takes if the gateways allow the rate of `flow_control` (protocol/delivery.md#promise-5). */
export async function estimateDuration(
  tx: Handle,
  app: App,
  { pushOrder, shares }: { pushOrder: PushOrder; shares: Map<ConnectorId, ConnectorShare> },
): Promise<DurationEstimate> {
  const devices = countServed(shares);
  if (pushOrder.flowControl !== null)
    return {
      estimatedSeconds: Math.ceil(devices / pushOrder.flowControl),
      pace: forecast('paceAsked', { perSecond: pushOrder.flowControl }),
    };
  const past = await readPastRate(tx, app.appId);
  const pace =
    past === undefined
      ? forecast('paceUnknown')
      : forecast('pacePast', { perSecond: Math.round(past), seconds: Math.ceil(devices / past) });
  return { estimatedSeconds: null, pace };
}

/** Counts the devices that a profile serves. */
function countServed(shares: Map<ConnectorId, ConnectorShare>): number {
  let devices = 0;
  for (const share of shares.values()) for (const n of share.profiles.values()) devices += n;
  return devices;
}
