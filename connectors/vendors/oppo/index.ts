import { defaultHttpTiming, type HttpTiming } from '../../../shared/http/client.ts';
import type { Connector } from '../../contract/connector.ts';
import { classErrorIn } from '../../kit/class-layers.ts';
import { inspectOppo, type OppoCredentials, openOppo, oppoCredentials, rateOf } from './client.ts';
import {
  can,
  identityOfOppo,
  limits,
  type OppoPayload,
  oppoMembers,
  previewOppo,
  renderOppo,
} from './payload.ts';
import { readOppoReceipts } from './receipts.ts';

/** Creates the connector. Tests pass shorter timeouts. */
export function oppoConnector(
  timing: HttpTiming = defaultHttpTiming,
): Connector<OppoCredentials, OppoPayload> {
  return {
    id: 'vendor_d',
    can,
    limits,
    tokenField: 'registrationId',
    credentials: oppoCredentials,
    render: (message) => renderOppo(message),
    preview: previewOppo,
    identityOf: identityOfOppo,
    rate: rateOf,
    classError: (members, path) =>
      classErrorIn(oppoMembers, members, path, { notification: 'notification' }),
    notShown: () => ['image', 'buttons'],
    inspect: inspectOppo,
    receipts: readOppoReceipts,
    open: (credentials, context) => openOppo(credentials, { context, timing }),
  };
}

/** OPPO's HeyTap push (protocol/oppo.md). */
export const oppo = oppoConnector();
