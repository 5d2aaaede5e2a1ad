import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await service.dispatch();
});
afterAll(() => service?.close());

test('pushes with one notification_id are counted together under it, and singly under their objectIds', async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const tokens = await service.addIosInstallations(app, 30);
  service.apns.deadTokens.set(tokens[0] ?? '', Date.now() + 60_000);
  const ids: string[] = [];
  for (const expected of [29, 29, 29]) {
    const body = { data: { alert: 'Hello' }, notification_id: 'campaign7' };
    const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    ids.push(reply.body.objectId);
    expect(await service.untilDone(app, reply.body.objectId)).toMatchObject({ successes: expected });
  }
  const { body } = await service.api.request('GET', '/1.1/notifications/campaign7', { app });
  expect(body).toMatchObject({
    objectId: ids[2],
    notificationId: 'campaign7',
    devices: 30 + 29 + 29,
    successes: 87,
    iosSuccesses: 87,
    invalidTokens: 1,
  });
});
