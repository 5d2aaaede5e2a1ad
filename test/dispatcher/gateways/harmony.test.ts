import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { countRows } from '../../support/tables.ts';

const service = useTestService();
let vendors: AllVendors;
beforeAll(async () => {
  vendors = await startVendors(service);
  await service.dispatch();
});
afterAll(() => vendors.close());
afterEach(() => vendors.gateways.huawei.forget());

let serial = 0;
async function register(app: App, body: object): Promise<string> {
  serial += 1;
  const registrationId = `IQAAAAHarmony${serial}`;
  vendors.gateways.huawei.memory.harmonyTokens.add(registrationId);
  const device = { installationId: `harmony-${serial}`, registrationId, ...body };
  const reply = await service.api.request('POST', '/1.1/installations', { app, body: device });
  expect(reply.status).toBe(201);
  return registrationId;
}
const push = async (app: App, body: object) =>
  service.untilDone(app, await beginPush(service, app, body));
const seen = () =>
  vendors.gateways.huawei.requests.map(
    ({ path, tokens }) => `${path.slice(1, 3)} ${tokens.join()}`,
  );

describe('HarmonyOS devices', () => {
  test('get pushes through Huawei’s v3 API, for any type name and token form', async () => {
    const app = await vendors.app('vendor_a');
    const tokens: string[] = [];
    for (const deviceType of ['harmony', 'harmonyos', 'ohos', 'openharmony'])
      tokens.push(await register(app, { deviceType, vendor: 'HMS' }));
    // No vendor is given, because HarmonyOS has only one vendor.
    tokens.push(await register(app, { deviceType: 'harmony' }));
    const record = await push(app, { where: { deviceType: 'ohos' } });
    expect(record).toMatchObject({ devices: 5, successes: 5 });
    const { requests, violations } = vendors.gateways.huawei;
    expect(new Set(requests.map(({ path }) => path.slice(0, 3)))).toEqual(new Set(['/v3']));
    expect(requests.flatMap((request) => request.tokens).toSorted()).toEqual(tokens.toSorted());
    expect(violations).toEqual([]);
    vendors.gateways.huawei.forget();
    const alone = await push(app, { where: { installationId: `harmony-${serial}` } });
    expect(alone).toMatchObject({ devices: 1, successes: 1 });
    expect(seen()).toEqual([`v3 ${tokens.at(-1)}`]);
  });

  test('are refused at the call without a Huawei profile', async () => {
    const app = await vendors.app('vendor_b');
    await register(app, { deviceType: 'openharmony' });
    const body = { data: { alert: 'a' } };
    const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatch(/Huawei/);
  });

  test('that report the type android are reached, and none is deleted', async () => {
    const app = await vendors.app('vendor_a');
    const harmony = await register(app, { deviceType: 'android', vendor: 'HMS' });
    await vendors.add(app, 'vendor_a', 30);
    const record = await push(app, {});
    expect(record).toMatchObject({ devices: 31, successes: 31 });
    expect(seen()).toContain(`v3 ${harmony}`);
    expect(await countRows(service.db, 'installation', app)).toBe(31);
  });
});
