import { createHash } from 'node:crypto';
import { xiaomi, xiaomiConnector } from '../../../../connectors/vendors/xiaomi/index.ts';
import { startXiaomiGateway } from '../../../../ops/sandbox/vendors/xiaomi/server.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import {
  type ContractFixture,
  type GatewayInstance,
  gatewayInstance,
} from '../../contract/fixture.ts';

export const xiaomiApp = {
  appId: '2882303761517',
  appSecret: 'Rf5xk0m2+/==',
  packageName: 'com.example.app',
};

/** Returns a registration id in Xiaomi's format, with characters that a form must escape. */
export const regId = (n: number): string =>
  `+/${createHash('sha256').update(String(n)).digest('base64')}`;

export const fixture: ContractFixture = {
  connector: xiaomi,
  shortTimeout: xiaomiConnector({ ...defaultHttpTiming, requestMs: 300 }),
  deviceType: 'android',
  credentials: { ...xiaomiApp, endpoint: 'https://127.0.0.1:9' },
  secrets: ['appSecret'],
  deviceToken: regId,
  start,
};

async function start(): Promise<GatewayInstance> {
  const gateway = await startXiaomiGateway(xiaomiApp);
  const answer = (code: number) =>
    gateway.misbehave({ kind: 'answer', status: 200, body: { result: 'error', code } });
  return gatewayInstance(gateway, {
    credentials: { ...xiaomiApp },
    throttle: () => answer(200002),
    refuseCredentials: () => answer(21301),
    useUpDay: () => answer(200001),
    makeAmbiguous: (deviceToken) => gateway.illegalTokens.add(deviceToken),
    behave: () => {
      gateway.illegalTokens.clear();
      gateway.offlineTokens.clear();
    },
  });
}
