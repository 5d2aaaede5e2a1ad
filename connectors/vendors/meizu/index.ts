import { defaultHttpTiming, type HttpTiming } from '../../../shared/http/client.ts';
import type { Connector } from '../../contract/connector.ts';
import { classErrorIn } from '../../kit/class-layers.ts';
import {
  inspectMeizu,
  type MeizuCredentials,
  meizuCredentials,
  openMeizu,
  rateOf,
} from './client.ts';
import {
  can,
  identityOfMeizu,
  limits,
  type MeizuPayload,
  meizuMembers,
  previewMeizu,
  renderMeizu,
} from './payload.ts';
import { readMeizuReceipts } from './receipts.ts';

/** Creates the connector. Tests pass shorter timeouts. */
export function meizuConnector(
  timing: HttpTiming = defaultHttpTiming,
): Connector<MeizuCredentials, MeizuPayload> {
  return {
    id: 'vendor_c',
    can,
    limits,
    tokenField: 'registrationId',
    credentials: meizuCredentials,
    render: (message) => renderMeizu(message),
    preview: previewMeizu,
    identityOf: identityOfMeizu,
    rate: rateOf,
    classError: (members, path) => classErrorIn(meizuMembers, members, path),
    notShown: () => ['image', 'buttons'],
    inspect: inspectMeizu,
    receipts: readMeizuReceipts,
    open: (credentials, context) => openMeizu(credentials, { context, timing }),
  };
}

/** Meizu's Flyme push (protocol/meizu.md). */
export const meizu = meizuConnector();
