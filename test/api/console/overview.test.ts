import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { deleteRows } from '../../support/tables.ts';
import { type ConsoleCall, callerOf } from './callers.ts';

const service = useTestService();
let operator: ConsoleCall;
beforeAll(async () => {
  operator = await callerOf(service.api, 'operator', { name: 'Li' });
  await service.dispatch();
});

const overviewOf = async (app: App) => (await operator('GET', `/overview?app=${app.appId}`)).body;
const readPush = async (app: App, id: string) =>
  (await operator('GET', `/apps/${app.appId}/notifications/${id}`)).body;
const progressOf = async (app: App, id: string) =>
  (await operator('GET', `/apps/${app.appId}/notifications/${id}/progress`)).body;
const send = async (app: App, body: object = {}): Promise<string> => {
  const reply = await operator('POST', `/apps/${app.appId}/push`, {
    body: { data: { alert: 'Hello' }, ...body },
  });
  expect([reply.status, reply.body.objectId]).toEqual([201, expect.any(String)]);
  return reply.body.objectId;
};
const addChannelDevices = async (app: App, count: number) => {
  for (let at = 0; at < count; at += 1) {
    const body = { deviceType: 'android', installationId: `device-${at}` };
    const reply = await service.api.request('POST', '/1.1/installations', { app, body });
    expect(reply.status).toBe(201);
  }
};
const act = (app: App, id: string, verb: string) =>
  operator('POST', `/apps/${app.appId}/notifications/${id}/${verb}`, { body: {} });
const breaker = (app: App, verb: string) =>
  operator('POST', `/breakers/apns:${app.appId}:_default/${verb}`, { body: {} });

test('a push that no device on the device channel has acknowledged is no success', async () => {
  const app = await service.api.createApp();
  await addChannelDevices(app, 2);
  const id = await send(app);
  await service.untilDone(app, id);
  expect(await progressOf(app, id)).toMatchObject({
    connectors: { channel: { sent: 2 } },
    acked: 0,
  });
  const { body } = await operator('GET', `/apps/${app.appId}/notifications`);
  expect(body.results[0]).toMatchObject({ outcomes: { sent: 2 }, successes: 0 });
  expect(await overviewOf(app)).toMatchObject({ outcomes24h: { sent: 2 }, unacknowledged24h: 2 });
});

test('the steps of a new app end with the first push, even without credentials', async () => {
  const app = await service.api.createApp();
  await addChannelDevices(app, 1);
  const id = await send(app);
  await service.untilDone(app, id);
  await expect.poll(async () => (await overviewOf(app)).today.recipients).toBe(1);
  await deleteRows(service.db, 'notification', app);
  expect((await overviewOf(app)).setup).toEqual({
    hasProfile: false,
    hasDevice: true,
    hasPush: true,
  });
});

test('the progress of a move gives the reason of devices without a profile as a text', async () => {
  const app = await service.api.createApp();
  await service.addIosInstallations(app, 1);
  const { body } = await operator('GET', `/apps/${app.appId}/move-in`);
  expect(body.gateways).toMatchObject([
    { connector: 'apns', devices: 1, problem: expect.stringMatching(/^[^\t{]+$/) },
  ]);
});

test('credentials that a gateway refuses are a finding, until a push is sent', async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 2);
  expect((await overviewOf(app)).findings).toEqual([]);
  service.apns.misbehave({ kind: 'answer', status: 403, reason: 'InvalidProviderToken' });
  await service.untilDone(app, await send(app));
  expect((await overviewOf(app)).findings).toMatchObject([
    {
      connector: 'apns',
      profile: '_default',
      problems: [expect.stringMatching(/^InvalidProviderToken/)],
      meanings: [{ code: 'InvalidProviderToken' }],
    },
  ]);
  service.apns.behave();
  await service.untilDone(app, await send(app));
  expect((await overviewOf(app)).findings).toEqual([]);
});

describe('credentials of a vendor without hybridPush', () => {
  const credentials = { appId: '100', appSecret: 'secret' };
  const unused = 'hybridPush is off: no device gets pushes by these credentials.';
  /** Creates an app with a Huawei device and devices that no vendor serves. */
  const addApp = async (options: object): Promise<App> => {
    const app = await service.api.createApp(options);
    const path = `/console/api/apps/${app.appId}/profiles/vendor_a/_default`;
    const put = await service.api.request('PUT', path, { admin: true, body: credentials });
    expect(put.status).toBe(200);
    const body = {
      deviceType: 'android',
      vendor: 'HMS',
      registrationId: 'r1',
      installationId: 'i1',
    };
    expect((await service.api.request('POST', '/1.1/installations', { app, body })).status).toBe(
      201,
    );
    await addChannelDevices(app, 1);
    return app;
  };
  const limitsOf = async (app: App): Promise<string[]> => {
    const { body } = await operator('POST', `/apps/${app.appId}/push/explain`, {
      body: { data: { alert: 'x' } },
    });
    return body.limits;
  };

  test('are unused: overview, profile and dry run report it', async () => {
    const app = await addApp({});
    expect((await overviewOf(app)).findings).toMatchObject([
      { connector: 'vendor_a', problems: [unused], meanings: [{ code: 'hybridOff' }] },
    ]);
    const profile = await operator('GET', `/apps/${app.appId}/profiles/vendor_a/_default`);
    expect(profile.body).toMatchObject({ findings: [unused], devices: 0 });
    expect(await limitsOf(app)).toEqual([
      expect.stringMatching(/^hybridPush is off\. Devices of vendors .*: 1\.$/),
    ]);
  });

  test('are used after hybridPush is on, and no page reports a finding', async () => {
    const app = await addApp({ hybridPush: true });
    expect((await overviewOf(app)).findings).toEqual([]);
    const profile = await operator('GET', `/apps/${app.appId}/profiles/vendor_a/_default`);
    expect(profile.body).toMatchObject({ findings: [], devices: 1 });
    expect(await limitsOf(app)).toEqual([]);
  });
});

test('a push that gets more devices while its progress is read has no negative time left', async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 3);
  await addChannelDevices(app, 2);
  await breaker(app, 'open');
  const id = await send(app);
  await expect
    .poll(() => progressOf(app, id))
    .toMatchObject({ connectors: { channel: { sent: 2 } } });
  const { pushRecords } = service.api.services;
  const record = await pushRecords.find(app.appId, id);
  await breaker(app, 'close');
  await service.untilDone(app, id);
  const early = { ...record, devices: 1, firstSentAt: new Date(Date.now() - 1000) };
  expect(await pushRecords.progressOf(early)).toMatchObject({ perSecond: 5, secondsLeft: 0 });
});

describe('a push that waits', () => {
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 3);
    await addChannelDevices(app, 2);
  });

  test('for a gateway, a freeze or a person has neither rate nor remaining time', async () => {
    await breaker(app, 'open');
    const id = await send(app);
    await expect
      .poll(() => progressOf(app, id))
      .toMatchObject({ connectors: { channel: { sent: 2 } } });
    expect(await progressOf(app, id)).toMatchObject({ perSecond: 0, secondsLeft: null });
    const freeze = `/apps/${app.appId}/freeze`;
    expect((await operator('PUT', freeze, { body: { reason: 'test' } })).status).toBe(200);
    await breaker(app, 'release');
    expect(await progressOf(app, id)).toMatchObject({ perSecond: 0, secondsLeft: null });
    expect((await act(app, id, 'pause')).status).toBe(200);
    expect((await operator('DELETE', freeze)).status).toBe(200);
    expect(await progressOf(app, id)).toMatchObject({
      status: 'paused',
      perSecond: 0,
      secondsLeft: null,
    });
    expect((await act(app, id, 'resume')).status).toBe(200);
    await service.untilDone(app, id);
  });

  test('and is cancelled counts in the outcomes of the day, as if being sent', async () => {
    const before = (await overviewOf(app)).outcomes24h;
    await breaker(app, 'open');
    const id = await send(app);
    await expect
      .poll(() => progressOf(app, id))
      .toMatchObject({ connectors: { channel: { sent: 2 } } });
    expect((await overviewOf(app)).outcomes24h.sent).toBe(before.sent + 2);
    expect((await act(app, id, 'cancel')).status).toBe(200);
    await expect
      .poll(async () => (await overviewOf(app)).outcomes24h)
      .toEqual({ ...before, sent: before.sent + 2, dropped: (before.dropped ?? 0) + 3 });
    await breaker(app, 'release');
  });

  test('for an approval is in overview and list, and the dry run announces it', async () => {
    const guarded = await service.api.createApp({ approvalAboveDevices: 4 });
    await service.addApnsProfile(guarded);
    await service.addIosInstallations(guarded, 3);
    await addChannelDevices(guarded, 2);
    const sender = await callerOf(service.api, 'sender', { name: 'Wang' });
    const body = { data: { alert: 'To all' } };
    const limitsOf = async (more: object) =>
      (
        await sender('POST', `/apps/${guarded.appId}/push/explain`, { body: { ...body, ...more } })
      ).body.texts.limits.map(({ code }: { code: string }) => code);
    expect(await limitsOf({ where: { deviceType: 'ios' } })).toEqual([]);
    expect(await limitsOf({})).toEqual(['needsApproval']);
    const { objectId: id } = (await sender('POST', `/apps/${guarded.appId}/push`, { body })).body;
    await expect.poll(async () => (await overviewOf(guarded)).waitingApproval).toHaveLength(1);
    expect((await overviewOf(guarded)).waitingApproval[0]).toMatchObject({
      objectId: id,
      createdBy: 'Wang',
      waitsForApproval: true,
    });
    const list = await operator('GET', `/apps/${guarded.appId}/notifications?status=paused`);
    expect(list.body.results[0]).toMatchObject({ objectId: id, waitsForApproval: true });
    expect((await act(guarded, id, 'approve')).status).toBe(200);
    await service.untilDone(guarded, id);
    expect((await overviewOf(guarded)).waitingApproval).toEqual([]);
    expect(await readPush(guarded, id)).toMatchObject({ waitsForApproval: false });
  });

  test('for a local time has that time in every list', async () => {
    const push_time = `${new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 11)}20:00:00`;
    const id = await send(app, { push_time, push_time_local: true, where: { deviceType: 'ios' } });
    const localTime = `${push_time}.000`;
    expect(await readPush(app, id)).toMatchObject({ state: 'scheduled', localTime });
    const scheduled = await operator('GET', `/apps/${app.appId}/scheduled`);
    expect(scheduled.body.results[0]).toMatchObject({ objectId: id, localTime });
  });
});
