import type { ChildProcess } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
const dispatchers = useDispatcherProcesses(service);

const exitOf = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

describe('kill -9 of the dispatcher in the middle of a push', () => {
  test('and a new start: no recipient is lost, and the record is exact', {
    timeout: 120_000,
  }, async () => {
    const app = await service.api.createApp();
    await service.addApnsProfile(app);
    const tokens = await service.addIosInstallations(app, 6000);
    const first = await dispatchers.start();
    const reply = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data: { alert: 'Hello' } },
    });
    await service.apns.waitFor(1500);
    const ended = exitOf(first);
    first.kill('SIGKILL');
    await ended;
    const sentBefore = service.apns.total;
    expect(sentBefore).toBeLessThan(6000);
    await dispatchers.start();
    const record = await service.untilDone(app, reply.body.objectId, 90_000);
    expect(record).toMatchObject({ status: 'done', devices: 6000, successes: 6000 });
    expect(tokens.filter((token) => service.apns.seen(token) === 0)).toEqual([]);
    // Settled batches are not sent again. Only batches in flight are repeated.
    expect(service.apns.total - 6000).toBeLessThan(sentBefore);
  });

  test('of a redrive: recipients who got it are skipped, others get it once, except in flight', {
    timeout: 120_000,
  }, async () => {
    const cap = 1000;
    const devices = 6000;
    const app = await service.api.createApp({ dailyRecipientCap: cap });
    await service.addApnsProfile(app);
    const tokens = await service.addIosInstallations(app, devices);
    const seen = () => tokens.reduce((sum, token) => sum + service.apns.seen(token), 0);
    const body = { data: { alert: 'Hello' } };
    const { objectId } = (
      await service.api.request('POST', '/1.1/push', { app, master: true, body })
    ).body;
    expect(await service.untilDone(app, objectId)).toMatchObject({
      outcomes: { sent: cap, capped: 5000 },
    });
    const reached = tokens.filter((token) => service.apns.seen(token) === 1);
    const last = dispatchers.latest();
    const ended = last && exitOf(last);
    const path = `/console/api/apps/${app.appId}`;
    const options = { dailyRecipientCap: 1_000_000 };
    await service.api.request('PATCH', path, { admin: true, body: { options } });
    // A changed option takes effect on every process within one second.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const redrive = `${path}/notifications/${objectId}/redrive`;
    const again = await service.api.request('POST', redrive, { admin: true, body: {} });
    await expect.poll(seen, { interval: 5, timeout: 30_000 }).toBeGreaterThan(cap + 1000);
    last?.kill('SIGKILL');
    await ended;
    const sentBefore = seen();
    expect(sentBefore).toBeLessThan(devices);
    await dispatchers.start();
    const record = await service.untilDone(app, again.body.objectId, 90_000);
    expect(record).toMatchObject({ devices: 5000, outcomes: { sent: 5000 } });
    expect(tokens.filter((token) => service.apns.seen(token) === 0)).toEqual([]);
    expect(reached.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
    expect(seen() - devices).toBeLessThan(sentBefore - cap);
    const refused = await service.api.request('POST', redrive, { admin: true, body: {} });
    expect(refused.body).toMatchObject({ code: 409 });
  });

  test('with SIGTERM instead: it exits with code 0, and another dispatcher continues', {
    timeout: 120_000,
  }, async () => {
    const app = await service.api.createApp();
    await service.addApnsProfile(app);
    const tokens = await service.addIosInstallations(app, 6000);
    const already = service.apns.total;
    const last = dispatchers.latest();
    const reply = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data: { alert: 'Hello' } },
    });
    await service.apns.waitFor(already + 1500);
    const ended = last && exitOf(last);
    last?.kill('SIGTERM');
    expect(await ended).toBe(0);
    await dispatchers.start();
    expect(await service.untilDone(app, reply.body.objectId, 90_000)).toMatchObject({
      status: 'done',
      devices: 6000,
      successes: 6000,
    });
    // A clean stop waits for the batches in flight, so nothing is repeated.
    expect(tokens.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
  });
});
