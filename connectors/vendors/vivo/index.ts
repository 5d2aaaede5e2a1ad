import { defaultHttpTiming, type HttpTiming } from '../../../shared/http/client.ts';
import type { Connector } from '../../contract/connector.ts';
import { classErrorIn } from '../../kit/class-layers.ts';
import { inspectVivo, openVivo, rateOf, type VivoCredentials, vivoCredentials } from './client.ts';
import {
  can,
  identityOfVivo,
  limits,
  previewVivo,
  renderVivo,
  testLimit,
  type VivoPayload,
  vivoMembers,
} from './payload.ts';
import { readVivoReceipts } from './receipts.ts';

/** Creates the connector. Tests pass shorter timeouts. */
export function vivoConnector(
  timing: HttpTiming = defaultHttpTiming,
): Connector<VivoCredentials, VivoPayload> {
  return {
    id: 'vendor_e',
    can,
    limits,
    tokenField: 'registrationId',
    credentials: vivoCredentials,
    render: (message) => renderVivo(message),
    preview: previewVivo,
    identityOf: identityOfVivo,
    rate: rateOf,
    testLimit,
    classError: (members, path) => classErrorIn(vivoMembers, members, path),
    notShown: () => ['image', 'buttons'],
    inspect: inspectVivo,
    receipts: readVivoReceipts,
    open: (credentials, context) => openVivo(credentials, { context, timing }),
  };
}

/** vivo push (protocol/vivo.md). */
export const vivo = vivoConnector();
