import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AllVendors, startVendors } from '../support/gateways/all-vendors.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
const dispatchers = useDispatcherProcesses(service);
let vendors: AllVendors;

beforeAll(async () => {
  vendors = await startVendors(service);
});
afterAll(() => vendors.close());

/** More than the devices of two batches and of two requests. */
const devices = 5000;

test('kill -9 of the dispatcher interrupts a recall, which then continues', {
  timeout: 180_000,
}, async () => {
  const { xiaomi } = vendors.gateways;
  const app = await vendors.app('vendor_b');
  await vendors.add(app, 'vendor_b', devices);
  const first = await dispatchers.start();
  const { body } = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data: { alert: 'Everything costs 1' } },
  });
  const push = body.objectId;
  await service.untilDone(app, push);
  const sent = xiaomi.total;
  xiaomi.misbehave({ kind: 'slow', delayMs: 1000 });
  const path = `/console/api/apps/${app.appId}/notifications/${push}`;
  const reply = service.api.request('POST', `${path}/recall`, { admin: true, body: {} });
  await xiaomi.waitFor(sent + 1);
  const ended = new Promise((resolve) => first.once('exit', resolve));
  first.kill('SIGKILL');
  await ended;
  const expected = { connectors: { vendor_b: { recalled: devices } } };
  // No dispatcher works, so the reply contains what the recall will do.
  expect(await reply).toMatchObject({ status: 200, body: expected });
  const recall = async () => (await service.api.request('GET', path, { admin: true })).body.recall;
  expect(await recall()).toMatchObject({ status: 'in-queue' });
  xiaomi.behave();
  await dispatchers.start();
  await expect.poll(recall, { timeout: 60_000 }).toMatchObject({ status: 'done', ...expected });
  expect(xiaomi.violations).toEqual([]);
});
