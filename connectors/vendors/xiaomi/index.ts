import { defaultHttpTiming, type HttpTiming } from '../../../shared/http/client.ts';
import type { Connector } from '../../contract/connector.ts';
import {
  inspectXiaomi,
  openXiaomi,
  rateOf,
  type XiaomiCredentials,
  xiaomiCredentials,
} from './client.ts';
import {
  can,
  classError,
  identityOfXiaomi,
  limits,
  previewXiaomi,
  renderXiaomi,
  type XiaomiPayload,
} from './payload.ts';
import { readXiaomiReceipts } from './receipts.ts';

/** Creates the connector. Tests pass shorter timeouts. */
export function xiaomiConnector(
  timing: HttpTiming = defaultHttpTiming,
): Connector<XiaomiCredentials, XiaomiPayload> {
  return {
    id: 'vendor_b',
    can,
    limits,
    tokenField: 'registrationId',
    credentials: xiaomiCredentials,
    render: (message) => renderXiaomi(message),
    preview: previewXiaomi,
    identityOf: identityOfXiaomi,
    canRecall: (message) => identityOfXiaomi(message) !== null,
    rate: rateOf,
    classError,
    notShown: () => ['image', 'buttons'],
    inspect: inspectXiaomi,
    receipts: readXiaomiReceipts,
    open: (credentials, context) => openXiaomi(credentials, { context, timing }),
  };
}

/** Xiaomi's Mi Push (protocol/xiaomi.md). */
export const xiaomi = xiaomiConnector();
