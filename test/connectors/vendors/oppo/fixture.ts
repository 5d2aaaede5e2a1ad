import { oppo, oppoConnector } from '../../../../connectors/vendors/oppo/index.ts';
import { createOppoApp, startOppoGateway } from '../../../../ops/sandbox/vendors/oppo/server.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import { type ContractFixture, gatewayInstance } from '../../contract/fixture.ts';

/** Returns registration id number `n` of a device in China. */
export const oppoId = (n: number): string => `CN_${n.toString(16).padStart(32, '0')}`;

export const fixture: ContractFixture = {
  connector: oppo,
  shortTimeout: oppoConnector({ ...defaultHttpTiming, requestMs: 300 }),
  deviceType: 'android',
  credentials: {
    ...createOppoApp(),
    endpoint: 'https://127.0.0.1:9',
    authEndpoint: 'https://127.0.0.1:9',
  },
  secrets: ['masterSecret'],
  deviceToken: oppoId,
  async start() {
    const gateway = await startOppoGateway();
    const { app, tokenIssuer, ambiguousTokens, unsubscribed } = gateway.memory;
    const answer = (code: number) =>
      gateway.misbehave({ kind: 'answer', status: 200, body: { code, message: 'refused' } });
    return gatewayInstance(gateway, {
      credentials: { ...app, authEndpoint: gateway.url },
      throttle: () => answer(55),
      refuseCredentials: () => answer(14),
      expireTokens: () => tokenIssuer.expireAll(),
      useUpDay: () => answer(33),
      makeAmbiguous: (deviceToken) => ambiguousTokens.add(deviceToken),
      behave: () => {
        ambiguousTokens.clear();
        unsubscribed.clear();
      },
    });
  },
};
