import { beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../../shared/db/pool.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestService } from '../../../support/service.ts';
import { changeDevicesWith } from '../../../support/tables.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let app: App;
let viewer: ConsoleCall;
let operator: ConsoleCall;
let tokens: string[];

const path = () => `/apps/${app.appId}/audience`;
const count = async (body: object, call = viewer) => {
  const reply = await call('POST', path(), { body });
  expect([reply.status, reply.body]).toEqual([200, expect.any(Object)]);
  return reply.body;
};

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  tokens = await service.addIosInstallations(app, 4, { city: 'Rome' });
  await service.addIosInstallations(app, 3, { city: 'Oslo', level: 5 });
  await changeDevicesWith(
    service.db,
    app,
    { fields: { city: 'Oslo', level: 5 } },
    { topic: 'other' },
  );
  viewer = await callerOf(service.api, 'viewer');
  operator = await callerOf(service.api, 'operator');
});

describe('the audience', () => {
  test('is counted for where, CQL, channels and ids, by connector and problem', async () => {
    expect(await count({})).toEqual({
      devices: 7,
      isLeast: false,
      connectors: { apns: 7 },
      problems: { 'no APNs profile owns the topic': 3 },
      sample: [],
      tookMs: expect.any(Number),
    });
    expect((await count({ where: { city: 'Rome' } })).devices).toBe(4);
    expect((await count({ cql: "select * from _Installation where city = 'Oslo'" })).devices).toBe(
      3,
    );
    expect((await count({ channels: ['news'] })).devices).toBe(0);
    expect((await count({ device_type: 'ios', device_ids: tokens.slice(1) })).devices).toBe(3);
  });

  test('shows devices, with whole tokens from the role operator on', async () => {
    const seen = await count({ where: { city: 'Rome' }, sample: 2 });
    expect(seen.sample).toHaveLength(2);
    expect(seen.sample[0].deviceToken).toMatch(/…$/);
    expect((await count({ sample: 20 }, operator)).sample).toHaveLength(7);
    const [sampleDevice] = (await count({ where: { city: 'Rome' }, sample: 1 }, operator)).sample;
    expect(tokens).toContain(sampleDevice.deviceToken);
  });

  test('is counted without each clause', async () => {
    const { clauses } = await count({ where: { city: 'Rome', level: 5 }, clauses: true });
    expect(clauses).toEqual([
      { kind: 'where', text: '{"city":"Rome"}', without: 3 },
      { kind: 'where', text: '{"level":5}', without: 4 },
      { kind: 'valid', text: 'valid', without: 0 },
      { kind: 'fresh', text: 'updatedAt', without: 0 },
    ]);
    const $and = Array.from({ length: 19 }, () => ({ city: 'Rome' }));
    const many = (await count({ where: { $and }, clauses: true })).clauses;
    expect(many.map(({ without }: { without: number | null }) => without)).toEqual(
      Array(21).fill(null),
    );
  });

  test.each([
    [{ where: { $x: 1 } }, 400],
    [{ where: 5 }, 400],
    [{ sample: 21 }, 400],
    [{ device_type: 'ios', device_ids: Array(501).fill('a') }, 400],
    [{ alert: 'x' }, 400],
    [{ where: { deviceToken: { $regex: '^a' } } }, 403],
    [{ where: { $or: [{ registrationId: 'x' }] } }, 403],
  ])('of %j is refused to a viewer', async (body, status) => {
    expect((await viewer('POST', path(), { body })).status).toBe(status);
    expect((await viewer('POST', '/apps/nowhere/audience', { body: {} })).status).toBe(404);
  });
});

describe('a count that takes too long', () => {
  test('returns "at least"; counts of one app run in turn, and too many are refused', async () => {
    const blocker = new Database({ url: service.databaseUrl, applicationName: 'blocker' });
    await blocker.transaction(async (tx) => {
      await tx.query('LOCK TABLE installation IN ACCESS EXCLUSIVE MODE');
      const replies = await Promise.all(
        Array.from({ length: 8 }, () => viewer('POST', path(), { body: {} })),
      );
      const statuses = replies.map(({ status }) => status).toSorted();
      // One count runs and five wait. Some of the waiting counts time out.
      expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(2);
      const [counted] = replies.filter(({ status }) => status === 200);
      expect(counted?.body).toMatchObject({
        devices: 0,
        isLeast: true,
        connectors: {},
        sample: [],
      });
    });
    await blocker.close();
  });

  test('ends if its caller disconnects', async () => {
    const removed = new AbortController();
    const db = new Database({ url: service.databaseUrl, applicationName: 'abandoned' });
    const backends = async () =>
      (
        await service.db.query<{ n: number }>(
          `SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'abandoned'
            AND state = 'active'`,
        )
      ).rows[0]?.n;
    const running = db.transaction((tx) => tx.query('SELECT pg_sleep(3600)'), {
      signal: removed.signal,
    });
    const failed = expect(running).rejects.toThrow('aborted');
    while ((await backends()) !== 1);
    removed.abort();
    await failed;
    while ((await backends()) !== 0);
    await db.close();
  });
});
