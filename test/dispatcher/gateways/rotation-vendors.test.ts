import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { GatewayInstance } from '../../../ops/sandbox/all/definition.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { profileConnectorIds } from '../../../shared/domain/labels.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let vendors: AllVendors;

beforeAll(async () => {
  vendors = await startVendors(service);
  await service.dispatch();
});
afterAll(() => vendors?.close());

/** Gateways without a call for access tokens. Only messages reveal a wrong credential. */
const withoutTokenCall = ['apns', 'vendor_b', 'vendor_c'];

const pem = (type: 'ec' | 'rsa') => {
  const pair =
    type === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
};

/**
 * Gateways without wrong credentials: a Web Push subscription keeps the key that it was made with,
 * whatever the candidate contains.
 */
const withoutWrong = ['webpush'];

/** Returns credentials with a key or secret that the gateway does not know. */
function wrong({ credentials }: GatewayInstance): JsonObject {
  const { serviceAccount, privateKey } = credentials;
  const secrets = ['appSecret', 'masterSecret', 'clientSecret'].filter(
    (name) => name in credentials,
  );
  return {
    ...credentials,
    ...Object.fromEntries(secrets.map((name) => [name, 'wrong'])),
    ...(privateKey === undefined ? {} : { privateKey: pem('ec') }),
    ...(typeof serviceAccount === 'object' && serviceAccount !== null
      ? { serviceAccount: { ...serviceAccount, private_key: pem('rsa') } }
      : {}),
  };
}

const call = async (app: App, connector: string, method: string, body?: object) => {
  const path = `/console/api/apps/${app.appId}/profiles/${connector}/_default/candidate`;
  return (await service.api.request(method, path, { admin: true, ...(body ? { body } : {}) })).body;
};

/** Repeats pushes until a batch is sent with the candidate. Each push reaches all devices. */
async function untilTried(app: App, connector: string): Promise<JsonObject> {
  for (;;) {
    const body = { data: { alert: 'x' } };
    const { objectId } = (
      await service.api.request('POST', '/1.1/push', { app, master: true, body })
    ).body;
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { sent: 20 } });
    const rotation = await call(app, connector, 'GET');
    if (rotation.asked > 0) return rotation;
  }
}

test.each(profileConnectorIds)(
  'a wrong candidate of %s loses no recipient, and a right candidate is accepted',
  async (connector) => {
    const app = await vendors.app(connector);
    const instance = vendors.instance(connector);
    const devices = await vendors.add(app, connector, 20);
    const staged = withoutWrong.includes(connector)
      ? undefined
      : await call(app, connector, 'PUT', wrong(instance));
    if (withoutTokenCall.includes(connector)) {
      expect(staged).toMatchObject({ state: 'canary' });
      expect(await untilTried(app, connector)).toMatchObject({
        state: 'rolled_back',
        reason: 'refused',
      });
    } else if (staged)
      expect(staged).toMatchObject({ state: 'staged', reason: expect.any(String), asked: 0 });
    expect(await call(app, connector, 'PUT', instance.credentials)).toMatchObject({
      state: 'canary',
    });
    expect(await untilTried(app, connector)).toMatchObject({
      state: 'canary',
      asked: 20,
      accepted: 20,
      refused: 0,
      worse: 0,
    });
    expect(devices.filter((device) => instance.seen(device) === 0)).toEqual([]);
    expect(instance.violations()).toEqual([]);
  },
);
