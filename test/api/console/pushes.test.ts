import { beforeAll, describe, expect, test } from 'vitest';
import type { Handle } from '../../../shared/db/pool.ts';
import { listPushPage } from '../../../shared/db/tables/push-reports.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { useTestService } from '../../support/service.ts';
import { deleteRows } from '../../support/tables.ts';
import { type ConsoleCall, callerOf } from './callers.ts';

const service = useTestService();
let app: App;
let viewer: ConsoleCall;
let operator: ConsoleCall;
const ids: string[] = [];

/** Sends a push with the keys of the app. Returns its id. */
async function push(body: object): Promise<string> {
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  expect([reply.status, reply.body]).toEqual([200, expect.any(Object)]);
  return reply.body.objectId;
}

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 3);
  viewer = await callerOf(service.api, 'viewer');
  operator = await callerOf(service.api, 'operator');
  for (const alert of ['Sale "ends"', '今天', 'plain'])
    ids.unshift(await push({ data: { alert } }));
});

const base = () => `/apps/${app.appId}/notifications`;
const listed = async (query: string) => {
  const { status, body } = await viewer('GET', `${base()}?${query}`);
  expect([status, body]).toEqual([200, expect.any(Object)]);
  return { ids: body.results.map((one: { objectId: string }) => one.objectId), ...body };
};

describe('the list of pushes', () => {
  test('has pages that a new push does not shift', async () => {
    const first = await listed('limit=2');
    expect(first).toMatchObject({ ids: ids.slice(0, 2), next: expect.any(String) });
    ids.unshift(await push({ data: { alert: 'later' } }));
    const second = await listed(`limit=2&cursor=${first.next}`);
    expect(second).toMatchObject({ ids: ids.slice(3), next: null });
  });

  test('is filtered by state, source, text and time, and counted', async () => {
    await operator('POST', `${base()}/${ids[3]}/cancel`);
    expect((await listed('status=cancelled')).ids).toEqual([ids[3]]);
    expect((await listed('status=queued,sending,done')).ids).toEqual(ids.slice(0, 3));
    expect((await listed('source=push')).ids).toEqual(ids);
    expect((await listed('source=console')).ids).toEqual([]);
    expect((await listed(`text=${encodeURIComponent('sale "ENDS')}`)).ids).toEqual([ids[3]]);
    expect((await listed(`text=${encodeURIComponent('今天')}`)).ids).toEqual([ids[2]]);
    expect((await listed(`text=${ids[0]}`)).ids).toEqual([ids[0]]);
    expect((await listed('from=2999-01-01T00:00:00Z&count=1')).count).toBe(0);
    expect(await listed('to=2999-01-01T00:00:00Z&count=1&limit=1')).toMatchObject({ count: 4 });
  });

  test('for some hours reads only these pushes, page by page', async () => {
    const busy = await service.api.createApp();
    // The push is newer than all other pushes, and so is its id.
    await service.db.query(
      `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
        push_time, expires_at, created_at)
       SELECT $1, 'h' || i, 'h' || i, 'done',
              (SELECT request FROM notification WHERE object_id = $2), 'prod', now(),
              now() + interval '1 day',
              '2990-01-01T00:00:00Z'::timestamptz + i * interval '1 minute'
         FROM generate_series(0, 2999) AS i`,
      [busy.appId, ids[0]],
    );
    const path = `/apps/${busy.appId}/notifications?from=2990-01-01T10:00:00Z&to=2990-01-01T10:05:00Z&limit=2`;
    const found: string[] = [];
    for (let next: string | null = ''; next !== null; ) {
      const { body } = await viewer('GET', next === '' ? path : `${path}&cursor=${next}`);
      found.push(...body.results.map(({ objectId }: { objectId: string }) => objectId));
      next = body.next;
    }
    expect(found).toEqual(['h604', 'h603', 'h602', 'h601', 'h600']);
    const statements: { text: string; values: unknown[] | undefined }[] = [];
    const recording: Handle = {
      query: (text, values) => {
        statements.push({ text: String(text), values });
        return service.db.query(text, values);
      },
    };
    const hour = { from: new Date('2990-01-01T10:00:00Z'), to: new Date('2990-01-01T11:00:00Z') };
    await listPushPage(recording, busy.appId, hour, { before: null, limit: 51 });
    const [{ text, values } = { text: '', values: [] }] = statements;
    const { rows } = await service.db.query<Record<string, string>>(
      `EXPLAIN ANALYZE ${text}`,
      values,
    );
    const plan = rows.flatMap(Object.values).join('\n');
    const removed = [...plan.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, n]) => Number(n));
    expect(plan).toContain('notification_pkey');
    expect(Math.max(0, ...removed)).toBeLessThan(100);
    await deleteRows(service.db, 'notification', busy);
  });

  test.each([
    'limit=0',
    'limit=201',
    'limit=x',
    'cursor=x',
    'cursor=1&cursor=2',
    'status=open',
    'from=today',
    'count=2',
    `text=${'x'.repeat(201)}`,
  ])('refuses %s', async (query) => {
    expect((await viewer('GET', `${base()}?${query}`)).status).toBe(400);
  });

  test('returns 404 for an unknown app', async () => {
    expect((await viewer('GET', '/apps/nowhere/notifications')).status).toBe(404);
  });
});

describe('the record of a push', () => {
  test('has the request, with whole tokens from the role operator on', async () => {
    const token = 'a1b2c3d4'.repeat(8);
    const reply = await service.api.request('POST', '/1.1/push/devices', {
      app,
      master: true,
      body: { device_type: 'ios', device_ids: [token], data: { alert: 'x' } },
    });
    const path = `${base()}/${reply.body.objectId}`;
    const seen = await viewer('GET', path);
    expect(seen.body).toMatchObject({ halts: {}, groupOf: [], request: { target: { listed: 1 } } });
    expect(JSON.stringify(seen.body)).not.toContain(token);
    expect(seen.body.request.target.deviceIds).toEqual(['a1b2c3…']);
    expect((await operator('GET', path)).body.request.target.deviceIds).toEqual([token]);
    const id = await push({ data: { alert: 'x' }, where: { deviceToken: { $in: [token] } } });
    expect(JSON.stringify((await viewer('GET', `${base()}/${id}`)).body)).not.toContain(token);
    expect(JSON.stringify((await viewer('GET', `${base()}?limit=1`)).body)).not.toContain(token);
    expect((await viewer('GET', `${base()}/nothing`)).body).toMatchObject({ code: 101 });
  });

  test('names the pushes with the same notification_id', async () => {
    const group = [
      await push({ data: { alert: '1' }, notification_id: 'campaign1' }),
      await push({ data: { alert: '2' }, notification_id: 'campaign1' }),
    ];
    const { body } = await viewer('GET', `${base()}/${group[0]}`);
    expect(body.groupOf).toEqual(group.toReversed());
  });
});

describe('the overview', () => {
  test('shows running pushes, the day, the outcomes, profiles and devices', async () => {
    const { status, body } = await viewer('GET', `/overview?app=${app.appId}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      scheduled: 0,
      today: { cap: 1_000_000 },
      breakersOpen: [],
      setup: { hasProfile: true, hasDevice: true, hasPush: true },
    });
    expect(body.running.length).toBeGreaterThan(0);
    const bare = await service.api.createApp();
    expect((await viewer('GET', `/overview?app=${bare.appId}`)).body).toMatchObject({
      running: [],
      outcomes24h: {},
      setup: { hasProfile: false, hasDevice: false, hasPush: false },
    });
    expect((await viewer('GET', '/overview')).body).toMatchObject({
      setup: null,
      today: { cap: null },
    });
    expect((await viewer('GET', '/overview?app=nowhere')).status).toBe(404);
  });

  test('of other apps is refused to a token for some', async () => {
    const own = await service.api.createApp();
    const call = await callerOf(service.api, 'viewer', { apps: [own.appId] });
    expect((await call('GET', `/overview?app=${app.appId}`)).status).toBe(403);
    expect((await call('GET', '/overview')).body.running).toEqual([]);
  });

  test('has at most 20 running pushes', async () => {
    const busy = await service.api.createApp();
    await service.db.query(
      `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
        push_time, expires_at)
       SELECT $1, 'p' || i, 'p' || i, 'sending',
              (SELECT request FROM notification WHERE object_id = $2), 'prod', now(),
                now() + interval '1 day' FROM generate_series(1, 21) AS i`,
      [busy.appId, ids[0]],
    );
    expect((await viewer('GET', `/overview?app=${busy.appId}`)).body.running).toHaveLength(20);
    await deleteRows(service.db, 'notification', busy);
  });
});

test('meta describes every connector', async () => {
  const { body } = await viewer('GET', '/meta');
  expect(body).toMatchObject({ version: expect.stringMatching(/^\d/), build: null });
  expect(body.connectors).toHaveLength(connectorIds.length);
  for (const { id, credentials } of body.connectors)
    expect(credentials === null).toBe(id === 'channel');
  expect(body.options.properties.hybridPush.type).toBe('boolean');
});

test('the queues show the waiting jobs', async () => {
  const { body } = await viewer('GET', '/queues');
  expect(body.results.find(({ queue }: { queue: string }) => queue === 'plan')).toMatchObject({
    ready: expect.any(Number),
    active: 0,
  });
});
