import { beforeAll, describe, expect, test } from 'vitest';
import { callLimits } from '../../../../api/services/operator/access/call-limit.ts';
import { sleep } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { changeMaxAgeMs } from '../../../../shared/ttl-cache.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const api = useTestApi();
let app: App;
let sender: ConsoleCall;
let operator: ConsoleCall;
let viewer: ConsoleCall;

beforeAll(async () => {
  app = await api.createApp();
  sender = await callerOf(api, 'sender', { name: 'Li' });
  operator = await callerOf(api, 'operator', { name: 'Wu' });
  viewer = await callerOf(api, 'viewer');
});

let names = 0;
const path = (rest = '', of = app) => `/apps/${of.appId}/recurring-pushes${rest}`;
const definition = (more: object = {}) => ({
  name: `daily ${++names}`,
  expression: '0 9 * * *',
  timeZone: 'Asia/Shanghai',
  body: { data: { alert: 'Good morning' }, channels: ['news'] },
  ...more,
});

async function create(more: object = {}) {
  const reply = await sender('POST', path(), { body: definition(more) });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 201 });
  return reply.body;
}

describe('a recurring push', () => {
  test('is created with its next run, read, and listed in pages', async () => {
    const made = await create();
    expect(made).toMatchObject({
      expression: '0 9 * * *',
      isEnabled: true,
      startsAt: null,
      endsAt: null,
      createdBy: 'Li',
      starts: 0,
      missed: 0,
      heldBack: 0,
      lastPush: null,
      lastAt: null,
    });
    expect(made.nextAt).toMatch(/T01:00:00.000Z$/);
    expect((await viewer('GET', path(`/${made.id}`))).body).toEqual(made);
    const later = await create();
    const first = (await viewer('GET', path('?limit=1'))).body;
    expect(first.results).toEqual([later]);
    const second = (await viewer('GET', path(`?limit=1&cursor=${first.next}`))).body;
    expect(second.results).toEqual([made]);
  });

  test.each([
    ['without a body', { body: undefined }, 111],
    ['with an empty name', { name: ' ' }, 1],
    ['with 101 characters in its name', { name: 'x'.repeat(101) }, 1],
    ['with an unknown time zone', { timeZone: 'Mars/Olympus' }, 1],
    ['every minute', { expression: '* * * * *' }, 1],
    ['with an expression that is too long', { expression: `${'0,'.repeat(60)}0 9 * * *` }, 1],
    ['with no time left', { endsAt: '2020-01-01T00:00:00Z' }, 1],
    [
      'with an end before its start',
      { startsAt: '2098-01-01T00:00:00Z', endsAt: '2097-01-01T00:00:00Z' },
      1,
    ],
    ['with an unknown member', { cron: '0 9 * * *' }, 111],
    ['with nothing to show', { body: { data: {} } }, 1],
    ['with a push_time', { body: { data: { alert: 'x' }, push_time: '2090-01-01T00:00:00Z' } }, 1],
    [
      'with a list of devices',
      { body: { data: { alert: 'x' }, device_type: 'ios', device_ids: ['a'] } },
      1,
    ],
    [
      'with a condition that is none',
      { body: { data: { alert: 'x' }, where: { a: { $no: 1 } } } },
      102,
    ],
    ['with a body of 4 KB', { body: { data: { alert: 'x'.repeat(4096) } } }, 116],
  ])('%s is refused', async (_name, more, code) => {
    expect((await sender('POST', path(), { body: definition(more) })).body.code).toBe(code);
  });

  test('has a unique name in its app, and at most 99 others', async () => {
    const other = await api.createApp();
    const body = definition();
    expect((await sender('POST', path('', other), { body })).status).toBe(201);
    expect((await sender('POST', path('', other), { body })).body.code).toBe(137);
    await api.db.query(
      `INSERT INTO recurring_push (app_id, name, expression, time_zone, is_enabled, body, request,
        created_by, changed_by)
       SELECT app_id, 'copy ' || i, expression, time_zone, false, body, request, created_by,
         changed_by
         FROM recurring_push, generate_series(1, 99) AS i WHERE app_id = $1`,
      [other.appId],
    );
    expect((await sender('POST', path('', other), { body: definition() })).body.code).toBe(154);
    expect((await viewer('GET', path('?limit=200', other))).body.results).toHaveLength(100);
    expect((await sender('POST', '/apps/nowhere/recurring-pushes', { body })).status).toBe(404);
  });

  test('keeps its next run if its name changes, but not with a new expression', async () => {
    const { id, nextAt } = await create();
    const change = async (body: object) => (await sender('PATCH', path(`/${id}`), { body })).body;
    expect(await change({ name: 'renamed' })).toMatchObject({ name: 'renamed', nextAt });
    const evening = await change({ expression: '30 18 29 2 *', timeZone: 'UTC' });
    expect(evening.nextAt).toMatch(/T18:30:00.000Z$/);
    expect(evening.body).toMatchObject({ channels: ['news'] });
    expect(await change({ isEnabled: false })).toMatchObject({ isEnabled: false, nextAt: null });
    expect((await change({ isEnabled: true })).nextAt).toBe(evening.nextAt);
    expect((await change({ body: { data: {} } })).code).toBe(1);
    expect((await change({ expression: 'never' })).code).toBe(1);
    expect((await change({ name: (await create()).name })).code).toBe(137);
  });

  test('can be changed by the token that created it, and by operators', async () => {
    const { id } = await create();
    const other = await callerOf(api, 'sender');
    const body = { isEnabled: false };
    for (const call of [other, viewer])
      expect((await call('PATCH', path(`/${id}`), { body })).status).toBe(403);
    expect((await other('DELETE', path(`/${id}`))).status).toBe(403);
    expect((await other('POST', path(`/${id}/start`))).status).toBe(403);
    const changed = await operator('PATCH', path(`/${id}`), { body });
    expect(changed.body).toMatchObject({ isEnabled: false, createdBy: 'Li', changedBy: 'Wu' });
    expect((await operator('DELETE', path(`/${id}`))).body).toEqual({});
    expect((await operator('GET', path(`/${id}`))).body.code).toBe(101);
    expect((await operator('PATCH', path('/x'), { body })).body.code).toBe(101);
  });

  test('from before the option reportOpens starts with its own member _push', async () => {
    const own = { alert: 'Good morning', _push: 'of the app' };
    const { id } = await create({ body: { data: own, channels: ['news'] } });
    const setOption = async (reportOpens: boolean) => {
      await operator('PATCH', `/apps/${app.appId}`, { body: { options: { reportOpens } } });
      await sleep(changeMaxAgeMs + 50);
    };
    await setOption(true);
    const started = await sender('POST', path(`/${id}/start`));
    expect(started).toMatchObject({ status: 201 });
    const record = await viewer('GET', `/apps/${app.appId}/notifications/${started.body.objectId}`);
    expect(record.body).toMatchObject({ msg: own });
    await setOption(false);
  });

  test('runs now by a call, once per request, and its pushes can be listed', async () => {
    const { id, name } = await create({ isEnabled: false });
    const random = Array.from({ length: 200 }, () => crypto.randomUUID()).join('');
    for (const key of [random, 'no-request-id'])
      expect(
        await sender('POST', path(`/${id}/start`), { headers: { 'Idempotency-Key': key } }),
      ).toMatchObject({ status: 400, body: { error: expect.stringContaining('Idempotency-Key') } });
    const headers = { 'Idempotency-Key': `now${id}` };
    const first = await sender('POST', path(`/${id}/start`), { headers });
    expect(first).toMatchObject({ status: 201, body: { status: 'in-queue' } });
    const again = await sender('POST', path(`/${id}/start`), { headers });
    expect(again.body.objectId).toBe(first.body.objectId);
    const after = (await viewer('GET', path(`/${id}`))).body;
    expect(after).toMatchObject({ starts: 1, lastPush: first.body.objectId, nextAt: null });
    const { results } = (
      await viewer('GET', `/apps/${app.appId}/notifications?recurring=${id}&count=1`)
    ).body;
    expect(results).toMatchObject([
      {
        objectId: first.body.objectId,
        recurring: { id, name },
        createdBy: 'Li',
        'from-service': 'recurring',
      },
    ]);
    const none = `/apps/${app.appId}/notifications?recurring=${id + 1000}`;
    expect((await viewer('GET', none)).body.results).toEqual([]);
  });

  test('shows its next runs before it is stored', async () => {
    const ask = (more: object) => viewer('POST', path('/preview'), { body: { ...more } });
    const limits = { startsAt: '2097-03-30T00:00:00Z', endsAt: '2097-04-02T00:00:00Z' };
    const rule = { expression: '30 2 * * *', timeZone: 'Europe/Paris' };
    expect((await ask({ ...rule, ...limits })).body).toEqual({
      times: [
        { at: '2097-03-30T01:30:00.000Z', local: '2097-03-30T02:30:00+01:00' },
        { at: '2097-03-31T01:30:00.000Z', local: '2097-03-31T03:30:00+02:00' },
        { at: '2097-04-01T00:30:00.000Z', local: '2097-04-01T02:30:00+02:00' },
      ],
    });
    expect((await ask({ ...rule, count: 50 })).body.times).toHaveLength(50);
    expect((await ask({ ...rule, count: 51 })).body.code).toBe(111);
    const refused = await ask({ ...rule, expression: '61 * * * *' });
    expect(refused.body).toMatchObject({ code: 1, error: expect.stringContaining('61') });
    expect(refused.headers.get('x-carillon-refusal-detail')).toContain('cronExpression');
  });
});

test('a preview of rare times is fast, and other calls run meanwhile', async () => {
  let ticks = 0;
  let isDone = false;
  const count = () => {
    ticks += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const body = { expression: '*/5 * * * *', timeZone: 'America/New_York', count: 50 };
  const full = await viewer('POST', path('/preview'), { body });
  isDone = true;
  expect(full.body.times).toHaveLength(50);
  expect(ticks).toBeGreaterThanOrEqual(50);
  const rare = await viewer('POST', path('/preview'), {
    body: { ...body, expression: '0 0 29 2 *' },
  });
  expect(rare.body.times.length).toBeGreaterThan(8);
  expect(rare.body.times.length).toBeLessThan(14);
  const never = { expression: '0 0 * 2 1#5', timeZone: 'UTC', count: 50 };
  expect((await viewer('POST', path('/preview'), { body: never })).body.times).toEqual([]);
  const { count: _, ...times } = never;
  const created = await sender('POST', path(''), {
    body: { ...times, name: 'never', body: { data: { alert: 'x' } } },
  });
  expect([created.status, created.body.error]).toEqual([
    400,
    expect.stringContaining('within ten years'),
  ]);
});

test('a preview counts as twenty calls, so searches cannot block a process', async () => {
  const call = await callerOf(api, 'viewer');
  const body = { expression: '0 9 * * *', timeZone: 'UTC', count: 1 };
  const limit = callLimits.calls / 20;
  const replies = await Promise.all(
    Array.from({ length: limit + 5 }, () => call('POST', path('/preview'), { body })),
  );
  const refused = replies.filter(({ status }) => status === 429);
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(limit);
  expect(refused).toHaveLength(5);
  for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
});
