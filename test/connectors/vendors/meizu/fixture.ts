import { createHash } from 'node:crypto';
import { meizu, meizuConnector } from '../../../../connectors/vendors/meizu/index.ts';
import { startMeizuGateway } from '../../../../ops/sandbox/vendors/meizu/server.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import {
  type ContractFixture,
  type GatewayInstance,
  gatewayInstance,
} from '../../contract/fixture.ts';

export const meizuApp = { appId: '100999', appSecret: 'ccd3f2a1b0' };

/** Returns a push id in Meizu's format. */
export const pushIdOf = (n: number): string =>
  `RA5${createHash('sha256').update(String(n)).digest('hex').slice(0, 44)}`;

export const fixture: ContractFixture = {
  connector: meizu,
  shortTimeout: meizuConnector({ ...defaultHttpTiming, requestMs: 300 }),
  deviceType: 'android',
  credentials: { ...meizuApp, endpoint: 'https://127.0.0.1:9' },
  secrets: ['appSecret'],
  deviceToken: pushIdOf,
  start,
};

async function start(): Promise<GatewayInstance> {
  const gateway = await startMeizuGateway(meizuApp);
  const answer = (code: string) =>
    gateway.misbehave({
      kind: 'answer',
      status: 200,
      body: { code, message: '', value: '', redirect: '' },
    });
  return gatewayInstance(gateway, {
    credentials: { ...meizuApp },
    throttle: () => answer('110010'),
    refuseCredentials: () => answer('1006'),
    useUpDay: () => answer('110019'),
    makeAmbiguous: (deviceToken) =>
      gateway.misbehave({
        kind: 'answer',
        status: 200,
        token: deviceToken,
        body: { code: '110003', message: '', value: '' },
      }),
    behave: () => {
      gateway.targetCodes.clear();
    },
  });
}
