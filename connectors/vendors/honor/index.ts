import type { HttpTiming } from '../../../shared/http/client.ts';
import type { Connector } from '../../contract/connector.ts';
import { classErrorIn } from '../../kit/class-layers.ts';
import { type HonorCredentials, honorCredentials, inspectHonor, openHonor } from './client.ts';
import {
  bodyOf,
  can,
  type HonorPayload,
  honorMembers,
  identityOfHonor,
  limits,
  notShown,
  renderHonor,
  testLimit,
} from './payload.ts';
import { readReceipts } from './receipts.ts';

/** Creates the connector. Tests pass shorter timeouts. */
export function honorConnector(timing?: HttpTiming): Connector<HonorCredentials, HonorPayload> {
  return {
    id: 'vendor_f',
    can,
    limits,
    tokenField: 'registrationId',
    credentials: honorCredentials,
    render: (message) => renderHonor(message),
    preview: (payload) => bodyOf(payload, ['TOKEN']),
    identityOf: identityOfHonor,
    // Honor publishes no rate (protocol/honor.md#message). Like for Huawei, recipients are counted.
    rate: ({ ratePerSecond: perSecond }) =>
      perSecond === undefined ? null : { perSecond, counts: 'recipients', burst: 0, rampMs: 0 },
    testLimit,
    classError: (members, path) =>
      classErrorIn(honorMembers, members, path, { notification: 'android.notification' }),
    notShown,
    inspect: inspectHonor,
    receipts: readReceipts,
    open: (credentials, context) => openHonor(credentials, context, timing),
  };
}

/** Honor Push (protocol/honor.md). */
export const honor = honorConnector();
