import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { callerOf } from '../../api/console/callers.ts';
import { RawClient } from '../../channel/support/raw-client.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import {
  addDevicesIn,
  awakeZone,
  hoursOfNow,
  makeDue,
} from '../../support/gateways/quiet-hours.ts';
import { useTestService } from '../../support/service.ts';
import {
  changePush,
  countDueJobs,
  insertDevices,
  readBatches,
  readPushes,
} from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await Promise.all([service.dispatch(), service.dispatch()]);
});
afterEach(() => service.apns.behave());

const hours = hoursOfNow();
const poll = { interval: 30, timeout: 60_000 };

async function appWith(asleepCount: number, options: object = {}) {
  const app = await service.api.createApp({ quietHours: hours, ...options });
  await service.addApnsProfile(app);
  return { app, tokens: await addDevicesIn(service, app, 'Etc/UTC', asleepCount) };
}

const admin = async (method: string, path: string, body?: object) => {
  const reply = await service.api.request(method, `/console/api${path}`, { admin: true, body });
  expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300);
  return reply.body;
};
const pathOf = ({ appId }: App, objectId: string, verb = '') =>
  `/apps/${appId}/notifications/${objectId}${verb && `/${verb}`}`;
const control = (app: App, objectId: string, verb: string, body?: object) =>
  admin('POST', pathOf(app, objectId, verb), body);
const untilRecord = (app: App, objectId: string, record: object) =>
  expect.poll(() => admin('GET', pathOf(app, objectId)), poll).toMatchObject(record);

/** Sends a push and waits until all its recipients wait for the end of their quiet hours. */
async function untilAllWait(app: App, devices: number, body: object = {}): Promise<string> {
  const objectId = await beginPush(service, app, body);
  await untilRecord(app, objectId, { state: 'sending', quietWaits: devices });
  return objectId;
}

/**
 * Ends the quiet hours. Each recipient then gets the push once and counts as a recipient that
 * waited.
 */
async function untilSentOnce(app: App, objectId: string, tokens: string[]): Promise<void> {
  await makeDue(service, app, awakeZone);
  const outcomes = { sent: tokens.length };
  expect(await service.untilDone(app, objectId)).toMatchObject({
    outcomes,
    quietWaits: tokens.length,
  });
  expect(tokens.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
}

/** Counts the paused batches, the due or running jobs, and the frozen plannings. */
async function batchesOf(app: App): Promise<{ waiting: number; due: number; held: number }> {
  const [batches, pushes, due] = await Promise.all([
    readBatches(service.db, app),
    readPushes(service.db, app),
    countDueJobs(service.db, app),
  ]);
  const waiting = batches.filter(({ isSettled, isHeld }) => !isSettled && isHeld).length;
  return { waiting: waiting, due, held: pushes.filter(({ isPlanHeld }) => isPlanHeld).length };
}

describe('a push that waits for the end of quiet hours', () => {
  test('stays paused at their end; if resumed before, it keeps waiting', async () => {
    const { app, tokens } = await appWith(3);
    const objectId = await untilAllWait(app, 3);
    await control(app, objectId, 'pause');
    await makeDue(service, app);
    await expect.poll(() => batchesOf(app), poll).toEqual({ waiting: 1, due: 0, held: 0 });
    await control(app, objectId, 'resume');
    await expect.poll(() => batchesOf(app), poll).toEqual({ waiting: 0, due: 0, held: 0 });
    await untilRecord(app, objectId, { state: 'sending', quietWaits: 3, outcomes: {} });
    await untilSentOnce(app, objectId, tokens);
  });

  test('is sent immediately when it is resumed after their end', async () => {
    const { app, tokens } = await appWith(2);
    const objectId = await untilAllWait(app, 2);
    await control(app, objectId, 'pause');
    await makeDue(service, app, awakeZone);
    await expect.poll(() => batchesOf(app), poll).toEqual({ waiting: 1, due: 0, held: 0 });
    await control(app, objectId, 'resume');
    await untilSentOnce(app, objectId, tokens);
  });

  test('waits if it is frozen when they end, and is sent when the app is unfrozen', async () => {
    const { app, tokens } = await appWith(2);
    const objectId = await untilAllWait(app, 2);
    await admin('PUT', `/apps/${app.appId}/freeze`, { reason: 'a wrong text' });
    await makeDue(service, app, awakeZone);
    await expect.poll(() => batchesOf(app), poll).toMatchObject({ due: 0, waiting: 1 });
    await admin('DELETE', `/apps/${app.appId}/freeze`);
    expect(await service.untilDone(app, objectId)).toMatchObject({
      outcomes: { sent: 2 },
      quietWaits: 2,
    });
    expect(tokens.map((token) => service.apns.seen(token))).toEqual([1, 1]);
  });

  test('keeps waiting if it is unfrozen during quiet hours', async () => {
    const { app, tokens } = await appWith(2);
    await admin('PUT', `/apps/${app.appId}/freeze`, { reason: 'a wrong text' });
    const objectId = await beginPush(service, app);
    await expect.poll(() => batchesOf(app), poll).toMatchObject({ due: 0, held: 1 });
    await admin('DELETE', `/apps/${app.appId}/freeze`);
    await untilRecord(app, objectId, { state: 'sending', quietWaits: 2 });
    await expect.poll(() => batchesOf(app), poll).toEqual({ waiting: 0, due: 0, held: 0 });
    await untilSentOnce(app, objectId, tokens);
  });

  test('ends immediately when it is cancelled', async () => {
    const { app, tokens } = await appWith(3);
    const objectId = await untilAllWait(app, 3);
    await control(app, objectId, 'cancel');
    await untilRecord(app, objectId, {
      outcomes: { dropped: 3 },
      quietWaits: 3,
      state: 'cancelled',
    });
    expect(tokens.map((token) => service.apns.seen(token))).toEqual([0, 0, 0]);
  });

  test('also waits for its gateway if the breaker is open at their end', async () => {
    const { app, tokens } = await appWith(2);
    const breaker = `/breakers/apns:${app.appId}:_default`;
    await admin('POST', `${breaker}/open`);
    const objectId = await untilAllWait(app, 2);
    await makeDue(service, app, awakeZone);
    await expect.poll(() => batchesOf(app), poll).toMatchObject({ due: 0 });
    expect(tokens.map((token) => service.apns.seen(token))).toEqual([0, 0]);
    await admin('POST', `${breaker}/release`);
    await admin('POST', `${breaker}/close`);
    await untilSentOnce(app, objectId, tokens);
  });

  test('waits first for its approval, then for the end of quiet hours', async () => {
    const { app, tokens } = await appWith(4, { approvalAboveDevices: 3 });
    const second = await callerOf(service.api, 'owner', { name: 'Li' });
    const objectId = await beginPush(service, app);
    await untilRecord(app, objectId, { status: 'paused', approval: { above: 3 } });
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(200);
    await untilRecord(app, objectId, { state: 'sending', quietWaits: 4 });
    await untilSentOnce(app, objectId, tokens);
  });

  test('ends as expired if its lifetime is shorter than the wait', async () => {
    const { app, tokens } = await appWith(2);
    const objectId = await untilAllWait(app, 2, { expiration_interval: 4 * 3600 });
    await changePush(service.db, app, { expiresAt: new Date(Date.now() + 60_000) });
    await makeDue(service, app);
    const reason = 'it expires before the quiet hours of the device end';
    expect(await service.untilDone(app, objectId)).toMatchObject({
      outcomes: { expired: 2 },
      errors: `apns: ${reason} (2)`,
    });
    const why = await admin('GET', `${pathOf(app, objectId)}/devices/${tokens[0]}`);
    expect(why).toMatchObject({ outcome: 'expired' });
    expect(JSON.stringify(why)).toContain(reason);
    expect(tokens.map((token) => service.apns.seen(token))).toEqual([0, 0]);
  });

  test('can be redriven meanwhile, and reaches devices without quiet hours', async () => {
    const { app, tokens } = await appWith(2);
    const awake = await addDevicesIn(service, app, awakeZone, 2);
    service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const objectId = await beginPush(service, app);
    await untilRecord(app, objectId, { outcomes: { failed: 2 }, quietWaits: 2 });
    await makeDue(service, app, awakeZone);
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { failed: 4 } });
    service.apns.behave();
    const all = [...tokens, ...awake];
    const before = all.map((token) => service.apns.seen(token));
    const since = () => all.map((token, i) => service.apns.seen(token) - (before[i] ?? 0));
    const again = await control(app, objectId, 'redrive', {});
    await untilRecord(app, again.objectId, { state: 'sending', devices: 4, quietWaits: 2 });
    await untilRecord(app, again.objectId, { outcomes: { sent: 2 } });
    expect(since()).toEqual([0, 0, 1, 1]);
    await makeDue(service, app, awakeZone);
    expect(await service.untilDone(app, again.objectId)).toMatchObject({ outcomes: { sent: 4 } });
    expect(since()).toEqual([1, 1, 1, 1]);
  });

  test('counts once towards the frequency cap, on the day it is planned', async () => {
    const { app, tokens } = await appWith(2);
    const objectId = await untilAllWait(app, 2, { device_cap: 1 });
    const next = await service.untilDone(app, await beginPush(service, app, { device_cap: 1 }));
    expect(next).toMatchObject({ outcomes: { capped: 2 } });
    expect(next.quietWaits ?? 0).toBe(0);
    await untilSentOnce(app, objectId, tokens);
  });

  test('reaches a device on the device channel at their end, connected or not', async () => {
    const app = await service.api.createApp({ quietHours: hours });
    await insertDevices(
      service.db,
      app,
      ['online', 'offline'].map((name) => ({
        deviceType: 'android',
        installationId: name,
        timeZone: 'Etc/UTC',
      })),
    );
    const url = `${service.api.url.replace('http', 'ws')}/1.1/channel`;
    const online = await RawClient.login(url, app.appId, 'online');
    const objectId = await untilAllWait(app, 2);
    const offline = await RawClient.login(url, app.appId, 'offline');
    expect([...online.messageIds, ...offline.messageIds]).toEqual([]);
    await offline.close();
    await makeDue(service, app, awakeZone);
    expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 2, quietWaits: 2 });
    await online.untilFrames(() => online.messageIds.length === 1);
    const back = await RawClient.login(url, app.appId, 'offline');
    await back.untilFrames(() => back.messageIds.length === 1);
    await Promise.all([online.close(), back.close()]);
  });
});
