import { honor, honorConnector } from '../../../../connectors/vendors/honor/index.ts';
import { createHonorApp, startHonorGateway } from '../../../../ops/sandbox/vendors/honor/server.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import { type ContractFixture, gatewayInstance } from '../../contract/fixture.ts';

/** Returns registration id number `n`. */
export const honorToken = (n: number): string => `BAEBQ${n.toString(36).padStart(40, '0')}_-`;

export const fixture: ContractFixture = {
  connector: honor,
  shortTimeout: honorConnector({ ...defaultHttpTiming, requestMs: 300 }),
  deviceType: 'android',
  credentials: {
    ...createHonorApp(),
    endpoint: 'https://127.0.0.1:9',
    authEndpoint: 'https://127.0.0.1:9',
  },
  secrets: ['clientSecret'],
  deviceToken: honorToken,
  async start() {
    const gateway = await startHonorGateway();
    const { app, tokenIssuer, ambiguousTokens } = gateway.memory;
    const answer = (status: number) =>
      gateway.misbehave({ kind: 'answer', status, body: { code: status, message: 'refused' } });
    return gatewayInstance(gateway, {
      credentials: { ...app, authEndpoint: gateway.url },
      throttle: () => answer(429),
      refuseCredentials: () => answer(401),
      expireTokens: () => tokenIssuer.expireAll(),
      breakDown: () => answer(500),
      makeAmbiguous: (deviceToken) => ambiguousTokens.add(deviceToken),
      behave: () => {
        ambiguousTokens.clear();
      },
    });
  },
};
