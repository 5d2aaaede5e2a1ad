import { beforeAll, describe, expect, test } from 'vitest';
import { connectDevices } from '../../ops/sandbox/devices/devices.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { useTestService } from '../support/service.ts';
import { countJobs } from '../support/tables.ts';

describe('a push from POST /1.1/push to its record', () => {
  const service = useTestService();
  beforeAll(async () => {
    await service.dispatch();
  });

  async function appWithIos(count: number): Promise<{ app: App; tokens: string[] }> {
    const app = await service.api.createApp();
    await service.addApnsProfile(app);
    return { app, tokens: await service.addIosInstallations(app, count) };
  }

  async function push(app: App, body: object): Promise<string> {
    const response = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    expect(response, JSON.stringify(response.body)).toMatchObject({ status: 200 });
    return response.body.objectId;
  }

  test('to 3,000 devices: each token gets one request, and the record is exact', async () => {
    const { app, tokens } = await appWithIos(3000);
    const objectId = await push(app, { data: { alert: 'Hello' } });
    const record = await service.untilDone(app, objectId);
    expect(record).toMatchObject({
      status: 'done',
      devices: 3000,
      successes: 3000,
      iosSuccesses: 3000,
      invalidTokens: 0,
    });
    expect(tokens.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
  });

  test('to one device is planned and delivered by one job', async () => {
    const { app, tokens } = await appWithIos(1);
    const objectId = await push(app, { data: { alert: 'Hello' }, where: { deviceType: 'ios' } });
    expect(await service.untilDone(app, objectId)).toMatchObject({
      status: 'done',
      devices: 1,
      successes: 1,
    });
    expect(service.apns.seen(tokens[0] ?? '')).toBe(1);
    expect(await countJobs(service.db, app, { queue: 'deliver-%' })).toBe(0);
  });

  test('to iOS and connected Android devices reaches each, and counts acks', async () => {
    const { app } = await appWithIos(20);
    const ids = Array.from({ length: 30 }, (_, i) => `device-${i}`);
    for (const installationId of ids)
      await service.api.request('POST', '/1.1/installations', {
        app,
        body: { deviceType: 'android', installationId },
      });
    const contents: unknown[] = [];
    const devices = await connectDevices({
      apiUrl: service.api.url,
      appId: app.appId,
      installationIds: ids,
      onMessage: (_id, content) => contents.push(content),
    });
    try {
      const objectId = await push(app, {
        data: { alert: 'Hello', title: 'All', android: { title: 'Android' } },
      });
      await devices.acked(30);
      await service.untilDone(app, objectId);
      const record = async () =>
        (await service.api.request('GET', `/1.1/notifications/${objectId}`, { app })).body;
      await expect.poll(record).toMatchObject({
        devices: 50,
        successes: 50,
        iosSuccesses: 20,
        lcSuccesses: 30,
      });
      expect(contents).toHaveLength(30);
      expect(contents[0]).toMatchObject({ alert: 'Hello', title: 'Android' });
    } finally {
      await devices.close();
    }
  });
});
