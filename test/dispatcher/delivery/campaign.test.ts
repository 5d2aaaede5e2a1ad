import { beforeAll, expect, test } from 'vitest';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});

test('lists show the internal name of a push, and no device gets it', async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 2);
  service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge', count: 1 });
  const campaign = 'Autumn sale, second wave';
  const body = { where: {}, data: { alert: 'hi' }, campaign };
  const objectId = await beginPush(service, app, body);
  await service.untilDone(app, objectId);
  const get = async (path: string) =>
    (await service.api.request('GET', `/console/api/apps/${app.appId}/${path}`, { admin: true }))
      .body;
  expect(await get(`notifications/${objectId}`)).toMatchObject({ campaign });
  expect(await get('notifications')).toMatchObject({ results: [{ campaign }] });
  expect(await get('undelivered')).toMatchObject({ results: [{ campaign, failed: 2 }] });
  await service.untilDone(app, await beginPush(service, app, body));
  const payloads = service.apns.requests.map(({ body: sent }) => String(sent)).join();
  expect(payloads).toContain('"hi"');
  expect(payloads).not.toContain('Autumn');
});

test.for([
  ['', 'campaign: '],
  ['x'.repeat(101), 'campaign: '],
  [7, 'campaign: '],
])('a push with the internal name %j is refused', async ([campaign, error]) => {
  const app = await service.api.createApp();
  const body = { where: {}, data: { alert: 'hi' }, campaign };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  expect(reply.status).toBe(400);
  expect(reply.body.error).toContain(error);
});
