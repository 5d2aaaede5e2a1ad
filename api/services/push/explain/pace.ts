import type { Handle } from '../../../../shared/db/pool.ts';
import { readPastRate } from '../../../../shared/db/tables/installations/audience.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import type { ConnectorShare } from './audience.ts';

export interface Pace {
  /** At the pace that was asked for; null where none was. */
  estimatedSeconds: number | null;
  /** What the estimate rests on, or what is known instead. */
  pace: string;
}

/** How long sending would take (protocol/delivery.md#promise-5: `flow_control` is reached when the gateways allow it). */
export async function paceOf(
  tx: Handle,
  app: App,
  { order, shares }: { order: PushOrder; shares: Map<ConnectorId, ConnectorShare> },
): Promise<Pace> {
  const devices = sendable(shares);
  if (order.flowControl !== null)
    return {
      estimatedSeconds: Math.ceil(devices / order.flowControl),
      pace: `${order.flowControl} recipients per second were asked for, if the gateways allow it.`,
    };
  const past = await readPastRate(tx, app.appId);
  const known =
    past === undefined
      ? 'no large push of this app was finished lately'
      : `the last large push of this app went at ${Math.round(past)} recipients per second, which would take ${Math.ceil(devices / past)} s here`;
  return { estimatedSeconds: null, pace: `No pace was asked for; ${known}.` };
}

/** Devices that some profile serves. */
function sendable(shares: Map<ConnectorId, ConnectorShare>): number {
  let devices = 0;
  for (const share of shares.values()) for (const n of share.profiles.values()) devices += n;
  return devices;
}
