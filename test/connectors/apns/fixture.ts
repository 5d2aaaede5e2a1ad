import { defaultTuning } from '../../../connectors/apns/client.ts';
import { apns, apnsConnector } from '../../../connectors/apns/index.ts';
import { createApnsCredentials, startApnsGateway } from '../../../ops/sandbox/apns/server.ts';
import { systemClock } from '../../../shared/clock.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { deviceToken, shortTimeoutTuning } from '../../support/gateways/apns.ts';
import type { ContractFixture } from '../contract/fixture.ts';

function profile(endpoint: string): { credentials: JsonObject; publicKey: string } {
  const { publicKey, ...token } = createApnsCredentials();
  return { credentials: { auth: 'token', ...token, endpoint }, publicKey };
}

export const apnsFixture: ContractFixture = {
  connector: apns,
  shortTimeout: apnsConnector({ ...defaultTuning, timing: shortTimeoutTuning.timing }),
  deviceType: 'ios',
  credentials: profile('https://127.0.0.1:9').credentials,
  secrets: ['privateKey'],
  deviceToken,
  async start() {
    const { publicKey, ...key } = createApnsCredentials();
    const gateway = await startApnsGateway({ keys: [{ ...key, publicKey }] });
    const answer = (status: number, reason: string, count?: number) =>
      gateway.misbehave({
        kind: 'answer',
        status,
        reason,
        ...(count === undefined ? {} : { count }),
      });
    return {
      credentials: { auth: 'token', ...key, endpoint: gateway.url, ca: gateway.ca },
      seen: (deviceToken) => gateway.seen(deviceToken),
      get total() {
        return gateway.total;
      },
      get violations() {
        return gateway.protocolErrors;
      },
      kill: (deviceToken) => gateway.deadTokens.set(deviceToken, systemClock.now()),
      throttle: () => answer(429, 'TooManyRequests'),
      refuseCredentials: () => answer(403, 'InvalidProviderToken'),
      hang: () => gateway.misbehave({ kind: 'hang' }),
      breakDown: () => answer(503, 'ServiceUnavailable'),
      answerFor: ({ isTokenCall: _, body = '', ...more }) =>
        gateway.misbehave({ kind: 'answer', body, ...more }),
      behave: () => {
        gateway.behave();
        gateway.deadTokens.clear();
      },
      forget: () => gateway.forget(),
      close: () => gateway.close(),
    };
  },
};
