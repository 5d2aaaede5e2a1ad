import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestService } from '../../../support/service.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let app: App;
let sender: ConsoleCall;
let operator: ConsoleCall;
const data = { alert: 'Hello' };

const base = () => `/apps/${app.appId}`;
const explain = async (body: object) =>
  (await sender('POST', `${base()}/push/explain`, { body })).body;
const send = (body: object, headers: Record<string, string> = {}, query = '') =>
  sender('POST', `${base()}/push${query}`, { body, headers });
const recordOf = async (id: string) =>
  (await operator('GET', `${base()}/notifications/${id}`)).body;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  sender = await callerOf(service.api, 'sender', { name: 'Li' });
  operator = await callerOf(service.api, 'operator', { name: 'Anna' });
});

describe('a push by a sender', () => {
  test('goes to a condition or to listed devices, and shows its sender', async () => {
    const tokens = await service.addIosInstallations(app, 2);
    const first = await send({ data, where: {}, chanels: 'x' });
    expect(first).toMatchObject({
      status: 201,
      body: { status: 'in-queue', warnings: [expect.any(String)] },
    });
    const listed = await send({ data, device_type: 'ios', device_ids: tokens });
    expect(listed.status).toBe(201);
    for (const { body } of [first, listed])
      expect(await recordOf(body.objectId)).toMatchObject({
        createdBy: 'Li',
        'from-service': 'console',
      });
    const own = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data },
    });
    expect(await recordOf(own.body.objectId)).toMatchObject({
      createdBy: null,
      'from-service': 'push',
    });
    const sources = (await operator('GET', `${base()}/notifications?source=console`)).body.results;
    expect(sources.map(({ createdBy }: { createdBy: string }) => createdBy)).toEqual(['Li', 'Li']);
  });

  test('is refused for the same reasons as a push of the app', async () => {
    for (const [body, status, code] of [
      [{}, 400, 1],
      [{ data, where: { $x: 1 } }, 400, 102],
      [{ data: { alert: 'x'.repeat(4096) } }, 400, 116],
      [{ data: { alert: 1 } }, 400, 111],
    ] as const)
      expect(await send(body)).toMatchObject({ status, body: { code } });
    expect((await sender('POST', '/apps/nowhere/push', { body: { data } })).status).toBe(404);
    expect((await send({ data }, {}, '?undoSeconds=61')).status).toBe(400);
  });

  test('is sent once for one Idempotency-Key, even if the audience changed', async () => {
    const { digest } = await explain({ data });
    const headers = { 'Idempotency-Key': 'once1', 'X-Carillon-Explained': digest };
    const first = await send({ data }, headers);
    expect(first.status).toBe(201);
    await service.addIosInstallations(app, 5);
    const second = await send({ data }, headers);
    expect(second).toMatchObject({ status: 201, body: { objectId: first.body.objectId } });
    expect((await send({ data, req_id: 'other' }, headers)).body.error).toContain('differ');
    expect((await send({ data }, { 'Idempotency-Key': 'no-key!' })).status).toBe(400);
  });

  test('counts towards the rate of the app', async () => {
    const slow = await service.api.createApp({ pushCallsPerMinute: 1 });
    const call = () => sender('POST', `/apps/${slow.appId}/push`, { body: { data } });
    expect((await call()).status).toBe(201);
    expect((await call()).status).toBe(429);
  });
});

describe('the digest of a dry run', () => {
  test('allows an audience changed by at most 5 %, else returns the new number', async () => {
    const where = { group: 'a' };
    const body = { data, where };
    await service.addIosInstallations(app, 20, where);
    const { devices, digest } = await explain(body);
    expect(devices).toBe(20);
    await service.addIosInstallations(app, 1, where);
    expect((await send(body, { 'X-Carillon-Explained': digest })).status).toBe(201);
    await service.addIosInstallations(app, 1, where);
    const moved = await send(body, { 'X-Carillon-Explained': digest });
    expect(moved).toMatchObject({ status: 409, body: { code: 409, devices: 22, explained: 20 } });
    const again = await send({ where, data }, { 'X-Carillon-Explained': moved.body.digest });
    expect(again.status).toBe(201);
  });

  test('is valid for one body and app, and cannot be forged', async () => {
    const { digest } = await explain({ data });
    const [number, mark] = digest.split('.');
    for (const [body, text] of [
      [{ data: { alert: 'Other' } }, digest],
      [{ data, where: { group: 'a' } }, digest],
      [{ data }, `${Number(number) + 1}.${mark}`],
      [{ data }, 'nothing'],
    ] as const)
      expect(await send(body, { 'X-Carillon-Explained': text })).toMatchObject({
        status: 409,
        body: { explained: null },
      });
  });
});

describe('a push that can be undone', () => {
  test('waits for its seconds; after a cancellation it does not exist for the app', async () => {
    const { body } = await send({ data }, {}, '?undoSeconds=10');
    expect(body.status).toBe('scheduled');
    const record = await recordOf(body.objectId);
    const waitMs = Date.parse(record['push-time']) - Date.parse(record.createdAt);
    // The two times come from two clocks of one machine.
    expect(waitMs).toBeGreaterThanOrEqual(10_000 - 100);
    expect(Date.parse(record.expiresAt) - Date.parse(record['push-time'])).toBe(7 * 86_400_000);
    const path = `${base()}/notifications/${body.objectId}/cancel`;
    expect(await sender('POST', path)).toMatchObject({
      status: 200,
      body: { status: 'cancelled' },
    });
    const seen = await service.api.request('GET', `/1.1/tables/Notifications/${body.objectId}`, {
      app,
      master: true,
    });
    expect(seen.status).toBe(404);
    expect((await sender('POST', path)).status).toBe(409);
  });

  test('starts automatically at its time', async () => {
    const own = await service.api.createApp();
    await service.addApnsProfile(own);
    await service.addIosInstallations(own, 1);
    await service.dispatch();
    const reply = await sender('POST', `/apps/${own.appId}/push?undoSeconds=1`, { body: { data } });
    expect(reply.body.status).toBe('scheduled');
    expect(await service.untilDone(own, reply.body.objectId)).toMatchObject({
      status: 'done',
      successes: 1,
    });
  });
});

describe('control by a sender', () => {
  test('works for the pushes of its own token', async () => {
    const own = (await send({ data }, {}, '?undoSeconds=60')).body.objectId;
    const other = await callerOf(service.api, 'sender', { name: 'Li' });
    const cancel = (call: ConsoleCall, id: string) =>
      call('POST', `${base()}/notifications/${id}/cancel`);
    expect((await cancel(other, own)).body.error).toContain('own token');
    expect((await cancel(sender, own)).status).toBe(200);
    const ofApp = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data },
    });
    expect((await cancel(sender, ofApp.body.objectId)).status).toBe(403);
  });
});
