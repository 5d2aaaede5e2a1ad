import { afterEach, describe, expect, test } from 'vitest';
import { type HonorGateway, startHonorGateway } from '../../../ops/sandbox/vendors/honor/server.ts';
import {
  type HuaweiGateway,
  startHuaweiGateway,
} from '../../../ops/sandbox/vendors/huawei/server.ts';
import { honorToken } from '../../connectors/vendors/honor/fixture.ts';
import { huaweiToken } from '../../connectors/vendors/huawei/fixture.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { some, useVendorService } from '../../support/gateways/vendor-service.ts';

let huawei: HuaweiGateway;
let honor: HonorGateway;

const vendors = useVendorService(async () => {
  huawei = await startHuaweiGateway();
  honor = await startHonorGateway();
  const { appId, appSecret, serviceAccount } = huawei.memory.app;
  const ofHuawei = { appId, appSecret, serviceAccount, authEndpoint: huawei.url };
  const ofHonor = { ...honor.memory.app, badgeClass: 'com.e.Main', authEndpoint: honor.url };
  return [
    { connector: 'vendor_a', gateway: huawei, credentials: ofHuawei },
    { connector: 'vendor_f', gateway: honor, credentials: ofHonor },
  ];
});
afterEach(() => honor.memory.failTokens.clear());

/** Returns the registration id of a device for the v3 API. */
const newerToken = (n: number) => `MAMz${huaweiToken(n)}`;
const hello = { alert: 'Hello' };

describe('a push to devices of Huawei and Honor', () => {
  test('reaches each once over v1, v3 and Honor, and deletes invalid devices', async () => {
    const app = await vendors.app();
    const older = await vendors.add(app, 'vendor_a', some(huaweiToken, 1200));
    const newer = await vendors.add(app, 'vendor_a', some(newerToken, 100));
    const honors = await vendors.add(app, 'vendor_f', some(honorToken, 300));
    const dead = [...older.slice(0, 3), ...newer.slice(0, 2)];
    for (const token of dead) huawei.deadTokens.add(token);
    honor.deadTokens.add(honors[0] ?? '');
    const record = await vendors.push(app, { alert: 'Hello', badge: 3 });
    expect(record).toMatchObject({
      devices: 1600,
      hmsSuccesses: 1295,
      honorSuccesses: 299,
      invalidTokens: 6,
    });
    // Refused tokens are tried with Huawei's other API, because the form of a token does not reveal
    // its system.
    for (const token of [...older, ...newer])
      expect(huawei.seen(token)).toBe(dead.includes(token) ? 2 : 1);
    for (const token of honors) expect(honor.seen(token)).toBe(1);
    expect([huawei.tokenCalls, honor.tokenCalls]).toEqual([1, 1]);
    expect([...huawei.violations, ...honor.violations]).toEqual([]);
    const body = JSON.parse(honor.requests[0]?.body.toString() ?? '');
    expect(body.android.notification.badge).toEqual({ setNum: 3, badgeClass: 'com.e.Main' });
    await expect.poll(async () => (await vendors.left(app)).length).toBe(1594);
  });

  test('passes a silent message to the apps of both', async () => {
    const app = await vendors.app();
    await vendors.add(app, 'vendor_a', some(huaweiToken, 2));
    await vendors.add(app, 'vendor_f', some(honorToken, 2));
    expect(await vendors.push(app, { silent: true, k: 1 })).toMatchObject({
      devices: 4,
      successes: 4,
    });
    const [{ message }, { data }] = [huawei, honor].map(({ requests }) =>
      JSON.parse(requests[0]?.body.toString() ?? ''),
    );
    for (const text of [message.data, data])
      expect(JSON.parse(text)).toEqual({ silent: true, k: 1 });
  });

  test('deletes no device if a gateway reports every token as invalid', async () => {
    const app = await vendors.app();
    for (const token of await vendors.add(app, 'vendor_a', some(huaweiToken, 50)))
      huawei.deadTokens.add(token);
    await vendors.add(app, 'vendor_f', some(honorToken, 5));
    expect(await vendors.push(app, hello)).toMatchObject({ honorSuccesses: 5, invalidTokens: 50 });
    expect(await vendors.left(app)).toHaveLength(55);
  });

  test('stops with a hint only at the gateway with a wrong configuration', async () => {
    const app = await vendors.app();
    await vendors.add(app, 'vendor_a', some(huaweiToken, 1500));
    await vendors.add(app, 'vendor_f', some(honorToken, 5));
    const body = {
      code: '80300002',
      msg: 'No permission to send message to these tmIDs.',
      requestId: '',
    };
    huawei.misbehave({ kind: 'answer', status: 200, body });
    const record = await vendors.push(app, hello);
    expect(record).toMatchObject({ devices: 1505, successes: 5, honorSuccesses: 5 });
    expect(JSON.stringify(record.errors ?? record.status)).toContain('AppGallery Connect');
    expect(await vendors.left(app)).toHaveLength(1505);
  });

  test('retries only the devices with a temporary failure at Honor', async () => {
    const app = await vendors.app();
    const tokens = await vendors.add(app, 'vendor_f', some(honorToken, 20));
    const failing = tokens.slice(0, 2);
    for (const token of failing) honor.memory.failTokens.add(token);
    const id = await beginPush(vendors.service, app);
    await honor.waitFor(1);
    honor.memory.failTokens.clear();
    expect(await vendors.service.untilDone(app, id)).toMatchObject({ honorSuccesses: 20 });
    for (const token of tokens) {
      expect(honor.delivered(token)).toBe(1);
      expect(honor.seen(token)).toBe(failing.includes(token) ? 2 : 1);
    }
  });
});
