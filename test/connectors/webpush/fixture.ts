import { createHash } from 'node:crypto';
import { defaultTuning } from '../../../connectors/webpush/client.ts';
import { webPushConnector } from '../../../connectors/webpush/index.ts';
import { newKeyPair } from '../../../connectors/webpush/vapid.ts';
import { browserOf, type SimulatedService, tokenOf } from '../../../ops/sandbox/webpush/browser.ts';
import { startWebPushGateway } from '../../../ops/sandbox/webpush/server.ts';
import { shortTimeoutTuning } from '../../support/gateways/apns.ts';
import { type ContractFixture, gatewayInstance } from '../contract/fixture.ts';

const services = ['google', 'mozilla', 'apple', 'microsoft'] as const;

/** Credentials of a profile with its own keys. */
export const credentials = { subject: 'mailto:push@example.com', ...newKeyPair() };

/** Returns simulated browser number `n`. */
export const browser = (n: number, service?: SimulatedService) =>
  browserOf(createHash('sha256').update(`test ${n}`).digest('hex'), service);

export const webPushFixture: ContractFixture = {
  connector: webPushConnector(),
  shortTimeout: webPushConnector({ ...defaultTuning, timing: shortTimeoutTuning.timing }),
  deviceType: 'web',
  isBareStatus: true,
  credentials: { ...credentials, endpoint: 'https://127.0.0.1:9' },
  secrets: ['privateKey'],
  // Each service is tested with one message, so devices that must all get a request differ in it.
  deviceToken: (n) => tokenOf(browser(n, services[n % services.length])),
  async start() {
    const gateway = await startWebPushGateway({});
    return gatewayInstance(gateway, {
      credentials,
      throttle: () => gateway.misbehave({ kind: 'answer', status: 429 }),
      refuseCredentials: () =>
        gateway.misbehave({ kind: 'answer', status: 403, body: { reason: 'BadJwtToken' } }),
    });
  },
};
