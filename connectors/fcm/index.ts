import type { Connector } from '../contract/connector.ts';
import { classErrorIn } from '../kit/class-layers.ts';
import { defaultTuning, type FcmTuning, openFcm } from './client.ts';
import { type FcmCredentials, fcmCredentials, inspectFcm } from './credentials.ts';
import {
  can,
  type FcmLabel,
  type FcmPayload,
  fcmMembers,
  identityOfFcm,
  limits,
  notShown,
  previewFcm,
  renderFcm,
} from './payload.ts';

/**
 * Published rate of a project: 600,000 messages per minute, reached after a ramp of one minute
 * (protocol/fcm.md#limits).
 */
const published = { perSecond: 10_000, burst: 1000, rampMs: 60_000 };

/** Creates the connector. Tests pass other timeouts and connection limits. */
export function fcmConnector(
  id: FcmLabel,
  tuning: FcmTuning = defaultTuning,
): Connector<FcmCredentials, FcmPayload> {
  return {
    id,
    can,
    limits,
    tokenField: 'registrationId',
    credentials: fcmCredentials,
    render: (message) => renderFcm(id, message),
    preview: previewFcm,
    identityOf: (message) => identityOfFcm(id, message),
    rate: ({ ratePerSecond: perSecond = published.perSecond }) => ({
      ...published,
      perSecond,
      burst: Math.max(published.burst, perSecond / 10),
      counts: 'recipients',
    }),
    classError: (members, path) => classErrorIn(fcmMembers, members, path),
    notShown,
    inspect: inspectFcm,
    open: (credentials, context) => openFcm(id, credentials, { context, tuning }),
  };
}

/** Google's Firebase Cloud Messaging, HTTP v1 (protocol/fcm.md). */
export const fcm = fcmConnector('fcm');

/** FCM under its second connector id, with separate profiles. */
export const vendorG = fcmConnector('vendor_g');
