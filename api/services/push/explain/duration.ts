import type { Handle } from '../../../../shared/db/pool.ts';
import { readPastRate } from '../../../../shared/db/tables/installations/audience.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import type { ConnectorShare } from './audience.ts';

/** Part of the reply with the duration of sending. */
export interface DurationEstimate {
  /** Null without `flow_control`. */
  estimatedSeconds: number | null;
  /** Rate of the estimate, or of the last large push; wire name. */
  pace: string;
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
      pace: `${pushOrder.flowControl} recipients per second were asked for, if the gateways allow it.`,
    };
  const past = await readPastRate(tx, app.appId);
  const known =
    past === undefined
      ? 'no large push of this app was finished lately'
      : `the last large push of this app went at ${Math.round(past)} recipients per second, which would take ${Math.ceil(devices / past)} s here`;
  return { estimatedSeconds: null, pace: `No pace was asked for; ${known}.` };
}

/** Counts the devices that a profile serves. */
function countServed(shares: Map<ConnectorId, ConnectorShare>): number {
  let devices = 0;
  for (const share of shares.values()) for (const n of share.profiles.values()) devices += n;
  return devices;
}
