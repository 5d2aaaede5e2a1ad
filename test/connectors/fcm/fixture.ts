import { defaultTuning } from '../../../connectors/fcm/client.ts';
import { fcmConnector } from '../../../connectors/fcm/index.ts';
import { createServiceAccount, startFcmGateway } from '../../../ops/sandbox/fcm/server.ts';
import { shortTimeoutTuning } from '../../support/gateways/apns.ts';
import {
  type ContractFixture,
  type GatewayInstance,
  gatewayInstance,
} from '../contract/fixture.ts';

const account = createServiceAccount();

/** Returns a registration token in FCM's format. */
export const fcmToken = (n: number): string =>
  `fcmInstance-${n.toString(16).padStart(10, '0')}:APA91b${n.toString(36).padStart(120, 'x')}`;

/** Returns a Firebase installation id. */
export const fid = (n: number): string => `${'cdef'[n % 4]}${n.toString(36).padStart(21, '_')}`;

const fixtureOf = (label: 'fcm' | 'vendor_g'): ContractFixture => ({
  connector: fcmConnector(label),
  shortTimeout: fcmConnector(label, { ...defaultTuning, timing: shortTimeoutTuning.timing }),
  deviceType: 'android',
  credentials: {
    serviceAccount: { ...account },
    endpoint: 'https://127.0.0.1:9',
    authEndpoint: 'https://127.0.0.1:9',
  },
  secrets: ['serviceAccount'],
  deviceToken: fcmToken,
  start,
});

async function start(): Promise<GatewayInstance> {
  const gateway = await startFcmGateway({ account });
  const answer = (status: number, code: string) =>
    gateway.misbehave({ kind: 'answer', status, body: { error: { code: status, status: code } } });
  return gatewayInstance(gateway, {
    credentials: {
      serviceAccount: { ...account },
      authEndpoint: gateway.url,
    },
    throttle: () => answer(429, 'RESOURCE_EXHAUSTED'),
    refuseCredentials: () => answer(403, 'PERMISSION_DENIED'),
    expireTokens: () => gateway.tokenIssuer.expireAll(),
    breakDown: () => answer(503, 'UNAVAILABLE'),
    behave: () => {
      gateway.foreignTokens.clear();
    },
  });
}

export const fcmFixture = fixtureOf('fcm');
export const vendorGFixture = fixtureOf('vendor_g');
