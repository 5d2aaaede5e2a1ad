import { beforeAll, describe, expect, test } from 'vitest';
import { listPushes, listPushGroup } from '../../../shared/db/tables/pushes.ts';
import { listScheduled } from '../../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { changePush } from '../../support/tables.ts';

/** No dispatcher runs, so pushes stay as they were accepted. */
const service = useTestService();
let app: App;

const list = (query: Record<string, string>) =>
  service.api.request('GET', `/1.1/notifications?${new URLSearchParams(query)}`, {
    app,
    master: true,
  });

async function push(body: object): Promise<string> {
  const whole = { data: { alert: 'x' }, channels: 'nobody', ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: whole });
  return reply.body.objectId;
}

describe('the list of push records', () => {
  let ids: Record<'queued' | 'scheduled' | 'done' | 'failed', string>;

  beforeAll(async () => {
    app = await service.api.createApp();
    ids = {
      queued: await push({ notification_id: 'first', prod: 'dev' }),
      scheduled: await push({ push_time: new Date(Date.now() + 86_400_000).toISOString() }),
      done: await push({}),
      failed: await push({}),
    };
    const end = (id: string, state: string, error: string | null, devices: number) =>
      changePush(service.db, app, { state, error, devices }, id);
    await end(ids.done, 'done', null, 7);
    await end(ids.failed, 'failed', 'dev profile disabled for massive push', 0);
  });

  test.each([
    [{ status: 'in-queue' }, ['queued']],
    [{ status: { $in: ['done', 'scheduled'] } }, ['done', 'scheduled']],
    [{ status: { $regex: '^dev profile' } }, ['failed']],
    [{ notificationId: 'first' }, ['queued']],
    [{ prod: 'dev' }, ['queued']],
    [{ devices: { $gt: 5 } }, ['done']],
    [{ createdAt: { $lt: { __type: 'Date', iso: '2020-01-01T00:00:00.000Z' } } }, []],
    [{ $or: [{ status: 'done' }, { notificationId: 'first' }] }, ['done', 'queued']],
    [{ noSuchMember: 1 }, []],
    [{}, ['failed', 'done', 'scheduled', 'queued']],
  ] as const)(
    'has the records that match %j, newest first, with their count',
    async (where, names) => {
      const reply = await list({ where: JSON.stringify(where), count: '1' });
      expect(reply).toMatchObject({ status: 200, body: { count: names.length } });
      const found = reply.body.results.map(({ objectId }: { objectId: string }) => objectId);
      expect(found).toEqual(names.map((name) => ids[name]));
    },
  );

  test('has pages, and treats an empty condition as no condition', async () => {
    const page = await list({ where: '', limit: '1', skip: '1', order: 'createdAt', count: '1' });
    expect(page.body).toMatchObject({ count: 4, results: [{ objectId: ids.scheduled }] });
    const filtered = await list({
      where: '{"status":{"$ne":"done"}}',
      limit: '1',
      skip: '1',
      order: 'createdAt',
    });
    expect(filtered.body).toMatchObject({ results: [{ objectId: ids.scheduled }] });
  });

  test('refuses invalid conditions, and never shows records of another app', async () => {
    for (const [where, code] of [
      ['{', 102],
      ['{"status":{"$foo":1}}', 102],
      ['{"a\'b":1}', 105],
    ] as const)
      expect(await list({ where })).toMatchObject({ status: 400, body: { code } });
    const other = await service.api.createApp();
    const reply = await service.api.request('GET', '/1.1/notifications?where={"status":"done"}', {
      app: other,
      master: true,
    });
    expect(reply.body).toEqual({ results: [] });
  });
});

test('lists read no device ids of pushes, which may be hundreds of kilobytes', async () => {
  const sender = await service.api.createApp({ forbidClientPush: true });
  const body = {
    data: { alert: 'x' },
    device_type: 'android',
    device_ids: Array.from({ length: 500 }, (_, i) => `device-${i}`),
    notification_id: 'ofList',
  };
  const reply = await service.api.request('POST', '/1.1/push/devices', {
    app: sender,
    master: true,
    body,
  });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  const { appId } = sender;
  const page = { limit: 10, skip: 0, oldestFirst: false };
  const read = [
    ...(await listPushes(service.db, appId, page)),
    ...(await listPushGroup(service.db, appId, 'ofList')),
  ];
  await changePush(service.db, sender, { state: 'scheduled' }, reply.body.objectId);
  await service.db.query(
    `INSERT INTO scheduled_push (app_id, push_id, push_time)
     SELECT app_id, id, now() FROM notification WHERE app_id = $1`,
    [appId],
  );
  read.push(...(await listScheduled(service.db, appId)));
  const target = { kind: 'devices', deviceType: 'android', deviceIds: [] };
  for (const one of read) expect(one.pushOrder.target).toMatchObject(target);
  expect(read).toHaveLength(3);
});
