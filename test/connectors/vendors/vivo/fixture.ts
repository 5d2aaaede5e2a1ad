import { vivo, vivoConnector } from '../../../../connectors/vendors/vivo/index.ts';
import { createVivoApp, startVivoGateway } from '../../../../ops/sandbox/vendors/vivo/server.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import { type ContractFixture, gatewayInstance } from '../../contract/fixture.ts';

/** Returns registration id number `n`, 23 digits. */
export const vivoId = (n: number): string => `1555${String(n).padStart(19, '0')}`;

export const fixture: ContractFixture = {
  connector: vivo,
  shortTimeout: vivoConnector({ ...defaultHttpTiming, requestMs: 300 }),
  deviceType: 'android',
  credentials: {
    ...createVivoApp(),
    endpoint: 'https://127.0.0.1:9',
    authEndpoint: 'https://127.0.0.1:9',
  },
  secrets: ['appSecret'],
  deviceToken: vivoId,
  async start() {
    const gateway = await startVivoGateway();
    // Each contract test acts as another server with its own access token.
    gateway.memory.tokensPerSecond = Number.POSITIVE_INFINITY;
    const { app, tokenIssuer, statuses } = gateway.memory;
    const answer = (result: number) =>
      gateway.misbehave({ kind: 'answer', status: 200, body: { result, desc: 'refused' } });
    return gatewayInstance(gateway, {
      credentials: { ...app, authEndpoint: gateway.url },
      throttle: () => answer(10072),
      refuseCredentials: () => answer(10000),
      expireTokens: () => tokenIssuer.expireAll(),
      // Saving a message can be repeated, because it sends nothing.
      hang: () => gateway.misbehave({ kind: 'hang', path: '/message/pushToList' }),
      breakDown: () => gateway.misbehave({ kind: 'answer', status: 500 }),
      useUpDay: () => answer(10070),
      behave: () => {
        statuses.clear();
      },
    });
  },
};
