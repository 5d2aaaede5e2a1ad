import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { hourMs, systemClock } from '../../../shared/clock.ts';
import { insertRecurring } from '../../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { parsePush } from '../../../shared/domain/pushes/push.ts';
import { RawClient } from '../../channel/support/raw-client.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices, insertDevices, startScheduledPushes } from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});
afterEach(() => service.apns.behave());

const variables = { name: { field: 'name', default: 'friend' } };
const content = { data: { alert: 'Hello {{name}}' }, variables };
const poll = { interval: 50, timeout: 60_000 };

/** Creates an app with a device that has a name, and one without. */
async function createApp(
  options: object = {},
): Promise<{ app: App; named: string; other: string }> {
  const app = await service.api.createApp(options);
  await service.addApnsProfile(app);
  const [named = ''] = await service.addIosInstallations(app, 1, { name: 'Ann' });
  const [other = ''] = await service.addIosInstallations(app, 1);
  return { app, named, other };
}

const textsOf = (token: string): string[] =>
  service.apns.requests
    .filter((request) => request.token === token)
    .map(({ body }) => JSON.parse(body.toString()).aps.alert);

describe('variables fill the text of each device', () => {
  test('with the values at the time of a scheduled push', async () => {
    const { app, named, other } = await createApp();
    const push_time = new Date(systemClock.now() + hourMs).toISOString();
    const objectId = await beginPush(service, app, { ...content, push_time });
    await changeDevices(service.db, app, { fields: { name: 'Bea' } }, [named]);
    await startScheduledPushes(service.db, app);
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { sent: 2 } });
    expect([textsOf(named), textsOf(other)]).toEqual([['Hello Bea'], ['Hello friend']]);
  });

  test('in a recurring push', async () => {
    const { app, named, other } = await createApp();
    const body = { ...content, where: {} };
    await insertRecurring(service.db, app.appId, {
      name: 'weekly',
      expression: '0 0 29 2 *',
      timeZone: 'UTC',
      startsAt: null,
      endsAt: null,
      isEnabled: true,
      body,
      pushOrder: parsePush(body, undefined, 0).pushOrder,
      notificationId: null,
      lifeSeconds: null,
      nextAt: new Date(systemClock.now()),
      by: { name: 'Li', tokenId: null },
    });
    await expect
      .poll(() => [textsOf(named), textsOf(other)], poll)
      .toEqual([['Hello Ann'], ['Hello friend']]);
  });

  test('in a push at local time, which counts them once', async () => {
    const { app, named, other } = await createApp();
    const push_time = new Date(systemClock.now()).toISOString().slice(0, 16);
    await changeDevices(service.db, app, { timeZone: 'Etc/UTC' });
    const objectId = await beginPush(service, app, {
      ...content,
      push_time,
      push_time_local: true,
    });
    await expect
      .poll(() => [textsOf(named), textsOf(other)], poll)
      .toEqual([['Hello Ann'], ['Hello friend']]);
    const path = `/console/api/apps/${app.appId}/notifications/${objectId}`;
    const { body } = await service.api.request('GET', path, { admin: true });
    expect(body.variables).toEqual([{ name: 'name', devices: 2, fallback: 1 }]);
  });

  test('in a push to one device, with a rate, and with a frequency cap', async () => {
    const { app, named, other } = await createApp({ devicePushesPerDay: 2 });
    const one = await beginPush(service, app, { ...content, where: { deviceToken: named } });
    expect(await service.untilDone(app, one)).toMatchObject({ devices: 1, outcomes: { sent: 1 } });
    const paced = await beginPush(service, app, { ...content, flow_control: 1000 });
    expect(await service.untilDone(app, paced)).toMatchObject({ outcomes: { sent: 2 } });
    const limited = await beginPush(service, app, content);
    expect(await service.untilDone(app, limited)).toMatchObject({
      outcomes: { sent: 1, capped: 1 },
    });
    expect([textsOf(named), textsOf(other)]).toEqual([
      ['Hello Ann', 'Hello Ann'],
      ['Hello friend', 'Hello friend'],
    ]);
  });

  test('together with the badge of each device, and in a message that shows nothing', async () => {
    const { app, named, other } = await createApp();
    await changeDevices(service.db, app, { badge: 6 }, [named]);
    const badge = { ...content, data: { ...content.data, badge: 'Increment' } };
    await service.untilDone(app, await beginPush(service, app, badge));
    const bodyOf = (token: string) =>
      JSON.parse(
        service.apns.requests.findLast((request) => request.token === token)?.body.toString() ??
          '{}',
      );
    expect(bodyOf(named).aps).toEqual({ badge: 7, alert: 'Hello Ann' });
    expect(bodyOf(other).aps).toEqual({ badge: 1, alert: 'Hello friend' });
    const quiet = {
      where: { deviceType: 'ios' },
      data: { alert: '{{name}}', 'content-available': 1 },
      variables: { name: { field: 'name', default: '' } },
    };
    await service.untilDone(app, await beginPush(service, app, quiet));
    expect(bodyOf(named).aps).toEqual({ alert: 'Ann', 'content-available': 1 });
    const last = service.apns.requests.findLast(({ token }) => token === other);
    expect(bodyOf(other).aps).toEqual({ 'content-available': 1 });
    expect(last?.headers).toMatchObject({ 'apns-push-type': 'background', 'apns-priority': '5' });
  });

  test('on the device channel, connected or not', async () => {
    const app = await service.api.createApp();
    await insertDevices(
      service.db,
      app,
      ['online', 'offline'].map((name) => ({
        deviceType: 'android',
        installationId: name,
        fields: { name },
      })),
    );
    const url = `${service.api.url.replace('http', 'ws')}/1.1/channel`;
    const online = await RawClient.login(url, app.appId, 'online');
    const objectId = await beginPush(service, app, content);
    expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 2 });
    await online.untilFrames((frames) => frames.some((frame) => frame.includes('Hello online')));
    const offline = await RawClient.login(url, app.appId, 'offline');
    await offline.untilFrames((frames) => frames.some((frame) => frame.includes('Hello offline')));
    expect(offline.frames.join()).not.toContain('Hello online');
    await Promise.all([online.close(), offline.close()]);
  });
});
