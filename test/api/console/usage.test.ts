import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Edition, Plan } from '../../../shared/domain/apps/app.ts';
import { feesOf } from '../../../shared/domain/apps/usage.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { insertUsage } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';

let secondApi: TestApi;

const api = useTestApi();
beforeAll(async () => {
  secondApi = await startTestApi({ databaseUrl: api.databaseUrl });
});

afterAll(async () => {
  await secondApi.close();
});

const pathOf = (appId: string, query = '') => `/console/api/apps/${appId}/usage${query}`;
const today = () => new Date().toISOString().slice(0, 10);

async function usageOf(appId: string, query = '') {
  const { status, body } = await api.request('GET', pathOf(appId, query), { admin: true });
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

test('several days have zeros without usage, at most 400 days', async () => {
  const app = await api.createApp();
  await insertUsage(
    api.db,
    app,
    { calls: 3, peakCallsPerMinute: 700, recipients: 5 },
    '2027-01-02',
  );
  const { results } = await usageOf(app.appId, '?from=2027-01-01&to=2027-01-03');
  expect(
    results.map(({ day, calls, recipients }: Record<string, unknown>) => [day, calls, recipients]),
  ).toEqual([
    ['2027-01-01', 0, 0],
    ['2027-01-02', 3, 5],
    ['2027-01-03', 0, 0],
  ]);
  expect(results[1].fees).toMatchObject({ calls: 60, currency: 'CNY' });
  expect((await usageOf(app.appId, '?from=2026-01-01&to=2027-02-04')).results).toHaveLength(400);
  for (const query of [
    'from=2026-01-01&to=2027-02-05',
    'from=2027-01-02&to=2027-01-01',
    'from=2027-01-01',
  ])
    expect(
      (await api.request('GET', pathOf(app.appId, `?${query}`), { admin: true })).status,
      query,
    ).toBe(400);
});

describe('GET /console/api/apps/:appId/usage', () => {
  test('returns zeros for a day without usage, today by default', async () => {
    const app = await api.createApp();
    const fees = { calls: 0, recipients: 0, total: 0, currency: 'CNY' };
    const nothing = { calls: 0, peakCallsPerMinute: 0, recipients: 0, fees };
    expect(await usageOf(app.appId)).toEqual({ day: today(), ...nothing });
    expect(await usageOf(app.appId, '?day=2024-02-29')).toEqual({ day: '2024-02-29', ...nothing });
  });

  test.each(['2024-13-01', '2023-02-29', 'today', '', '2024-1-1', '2024-01-01T00:00:00Z'])(
    'refuses the day %j with 400',
    async (day) => {
      const app = await api.createApp();
      const reply = await api.request('GET', pathOf(app.appId, `?day=${encodeURIComponent(day)}`), {
        admin: true,
      });
      expect(reply.status).toBe(400);
    },
  );

  test('is for operators only, and returns 404 for an unknown app', async () => {
    const app = await api.createApp();
    expect((await api.request('GET', pathOf(app.appId), { app, master: true })).status).toBe(401);
    expect((await api.request('GET', pathOf('unknown'), { admin: true })).status).toBe(404);
  });

  test('counts the push calls of all api processes together, and their peak', async () => {
    const app = await api.createApp();
    const body = { data: { alert: 'x' } };
    const calls = Array.from({ length: 30 }, (_, i) =>
      (i % 2 ? api : secondApi).request('POST', '/1.1/push', { app, master: true, body }),
    );
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    expect(await usageOf(app.appId)).toMatchObject({ calls: 30, peakCallsPerMinute: 30 });
  });

  test('does not count a call above the rate', async () => {
    const app = await api.createApp({ pushCallsPerMinute: 2 });
    const body = { data: { alert: 'x' } };
    for (let i = 0; i < 4; i++) await api.request('POST', '/1.1/push', { app, master: true, body });
    expect(await usageOf(app.appId)).toMatchObject({ calls: 2, peakCallsPerMinute: 2 });
  });

  test('keeps the highest peak of the day and returns its fees', async () => {
    const app = await api.createApp();
    const used = { recipients: 1_000_001, calls: 5000, peakCallsPerMinute: 1201 };
    await insertUsage(api.db, app, used, '2025-05-01');
    expect(await usageOf(app.appId, '?day=2025-05-01')).toEqual({
      day: '2025-05-01',
      calls: 5000,
      peakCallsPerMinute: 1201,
      recipients: 1_000_001,
      fees: { calls: 90, recipients: 0.5, total: 90.5, currency: 'CNY' },
    });
  });
});

describe('the fees of a day', () => {
  const fees = (
    edition: Edition,
    peakCallsPerMinute: number,
    recipients: number,
    plan: Plan = 'commercial',
  ) => feesOf({ edition, plan }, { calls: 1, peakCallsPerMinute, recipients });

  test.each([
    ['home', 600, 0],
    ['home', 601, 60],
    ['home', 1200, 60],
    ['home', 1201, 90],
    ['home', 9600, 480],
    ['international', 600, 0],
    ['international', 601, 20],
    ['international', 1201, 30],
    ['international', 9600, 160],
  ] as const)('%s, a peak of %i calls per minute: %d', (edition, peak, expected) => {
    expect(fees(edition, peak, 0)).toMatchObject({
      calls: expected,
      recipients: 0,
      total: expected,
    });
  });

  test.each([
    ['home', 1_000_000, 0],
    ['home', 1_000_001, 0.5],
    ['home', 1_010_000, 0.5],
    ['home', 1_010_001, 1],
    ['home', 101_000_000, 5000],
    ['international', 100_000, 0],
    ['international', 100_001, 0.02],
    ['international', 130_000, 0.06],
    ['international', 1_000_000, 1.8],
  ] as const)('%s, %i recipients: %d', (edition, recipients, expected) => {
    expect(fees(edition, 0, recipients)).toMatchObject({
      calls: 0,
      recipients: expected,
      total: expected,
    });
  });

  test('add up to the cent, in the currency of the edition', () => {
    expect(fees('international', 601, 130_000)).toEqual({
      calls: 20,
      recipients: 0.06,
      total: 20.06,
      currency: 'USD',
    });
    expect(fees('home', 0, 0).currency).toBe('CNY');
  });

  test('are zero for a development app', () => {
    expect(fees('home', 9600, 9_000_000, 'development')).toMatchObject({
      calls: 0,
      recipients: 0,
      total: 0,
    });
  });
});
