import type { Connector } from '../contract/connector.ts';

import { openChannels } from './channels.ts';
import { type ApnsTuning, defaultTuning, openApns } from './client.ts';
import { type ApnsCredentials, apnsCredentials, inspectApns } from './credentials.ts';
import {
  type ApnsPayload,
  badgeOf,
  classError,
  identityOfApns,
  previewApns,
  renderApns,
} from './payload.ts';
import { chooseApnsProfile, developmentLimit } from './routing.ts';

/** Creates the connector. Tests pass other timeouts and connection limits. */
export function apnsConnector(tuning: ApnsTuning): Connector<ApnsCredentials, ApnsPayload> {
  return {
    id: 'apns',
    can: { passThrough: false, badge: true, collapse: true },
    // One token per request, and 4096 bytes (protocol/apns.md#request). For VoIP, rendering allows
    // 5120 bytes.
    limits: { recipientsPerRequest: 1, bodyBytes: 4096 },
    tokenField: 'deviceToken',
    credentials: apnsCredentials,
    render: renderApns,
    preview: previewApns,
    identityOf: identityOfApns,
    choose: chooseApnsProfile,
    massLimit: developmentLimit,
    badge: badgeOf,
    classError,
    inspect: inspectApns,
    channels: openChannels,
    open: (credentials, context) => openApns(credentials, context, tuning),
  };
}

/** Apple's push service (protocol/apns.md). */
export const apns = apnsConnector(defaultTuning);
