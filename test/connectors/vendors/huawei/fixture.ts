import { huawei, huaweiConnector } from '../../../../connectors/vendors/huawei/index.ts';
import {
  createHuaweiApp,
  startHuaweiGateway,
} from '../../../../ops/sandbox/vendors/huawei/server.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import { type ContractFixture, gatewayInstance } from '../../contract/fixture.ts';

/** Returns registration id number `n` of an Android device. */
export const huaweiToken = (n: number): string => `IQAAAACy${n.toString(36).padStart(40, '0')}_-`;

const { appId, appSecret, serviceAccount } = createHuaweiApp();

export const fixture: ContractFixture = {
  connector: huawei,
  shortTimeout: huaweiConnector({ ...defaultHttpTiming, requestMs: 300 }),
  deviceType: 'android',
  credentials: {
    appId,
    appSecret,
    serviceAccount,
    endpoint: 'https://127.0.0.1:9',
    authEndpoint: 'https://127.0.0.1:9',
  },
  secrets: ['appSecret'],
  deviceToken: huaweiToken,
  async start() {
    const gateway = await startHuaweiGateway();
    const { app, tokenIssuer } = gateway.memory;
    const answer = (status: number, code?: string) =>
      gateway.misbehave({
        kind: 'answer',
        status,
        body: code === undefined ? '' : { code, msg: 'refused', requestId: '1' },
      });
    return gatewayInstance(gateway, {
      credentials: {
        appId: app.appId,
        appSecret: app.appSecret,
        serviceAccount: app.serviceAccount,
        authEndpoint: gateway.url,
      },
      throttle: () => answer(503),
      refuseCredentials: () => answer(401, '80200001'),
      expireTokens: () => tokenIssuer.expireAll(),
      breakDown: () => answer(500, '81000001'),
    });
  },
};
