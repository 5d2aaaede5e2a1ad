import type { Connector } from '../contract/connector.ts';
import { defaultTuning, openWebPush, type WebPushTuning } from './client.ts';
import {
  completeWebPush,
  inspectWebPush,
  keyPairsOf,
  type WebPushCredentials,
  webPushCredentials,
} from './credentials.ts';
import {
  can,
  identityOfWebPush,
  limits,
  previewWebPush,
  renderWebPush,
  type WebPushPayload,
  webBadgeOf,
} from './payload.ts';

/** Creates the connector. Tests pass other timeouts. */
export function webPushConnector(
  tuning: WebPushTuning = defaultTuning,
): Connector<WebPushCredentials, WebPushPayload> {
  return {
    id: 'webpush',
    can,
    limits,
    tokenField: 'subscription',
    credentials: webPushCredentials,
    complete: completeWebPush,
    publicKeys: (credentials) => keyPairsOf(credentials).map(({ publicKey }) => publicKey),
    render: renderWebPush,
    preview: previewWebPush,
    identityOf: identityOfWebPush,
    badge: webBadgeOf,
    inspect: inspectWebPush,
    open: (credentials, context) => openWebPush(credentials, context, tuning),
  };
}

/** Web Push of browsers, and of apps that use UnifiedPush (protocol/webpush.md). */
export const webPush = webPushConnector();
