import { beforeAll, describe, expect, test } from 'vitest';
import { dayMs, hourMs, systemClock } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { movableClock } from '../../../support/gateways/apns.ts';
import { useTestService } from '../../../support/service.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

/** Noon in China on the current day. The database's own times are at most half a day away. */
const noonMs = Math.floor((systemClock.now() + 8 * hourMs) / dayMs) * dayMs + 4 * hourMs;
const service = useTestService({ clock: movableClock(noonMs) });
let app: App;
let viewer: ConsoleCall;

beforeAll(async () => {
  app = await service.api.createApp({ dailyRecipientCap: 1000 });
  viewer = await callerOf(service.api, 'viewer');
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 3, { city: 'Wien' });
  await service.addIosInstallations(app, 2, { city: 'Graz' });
});

const quotas = async (query = '') =>
  (await viewer('GET', `/apps/${app.appId}/quotas${query}`)).body;

async function schedule(city: string, inHours: number): Promise<void> {
  const push_time = new Date(noonMs + inHours * hourMs).toISOString();
  const body = { data: { alert: 'x' }, where: { city }, push_time };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  expect(reply.status).toBe(200);
}

describe('the quotas of an app', () => {
  test("show the usage in China's day, and closed classes", async () => {
    await service.db.query(
      `INSERT INTO gateway_day (app_id, connector, profile, class, day, requests, recipients,
        closed_reason) VALUES
         ($1, 'vendor_b', '_default', '', '2027-01-31', 4, 3500, NULL),
         ($1, 'vendor_b', '_default', 'operation', '2027-01-31', 0, 0, 'quota_used_up')`,
      [app.appId],
    );
    const reply = await quotas('?day=2027-01-31');
    expect(reply).toMatchObject({ day: '2027-01-31', zone: 'Asia/Shanghai', scheduled: null });
    const shared = { connector: 'vendor_b', profile: '_default', limit: null, forecast: null };
    expect(reply.results).toMatchObject([
      { connector: 'apns', profile: '_default', class: '', used: 0, rate: null },
      { ...shared, class: '', used: 3500, requests: 4, closedReason: null },
      { ...shared, class: 'operation', used: 0, closedReason: 'quota_used_up' },
    ]);
  });

  test('include the devices of pushes that are scheduled until midnight in China', async () => {
    expect((await quotas()).results[0].forecast).toBe(0);
    await schedule('Graz', 13);
    await schedule('Wien', 11);
    const after = await quotas();
    expect(after.results[0]).toMatchObject({ connector: 'apns', forecast: 3 });
    expect(after.app).toMatchObject({ zone: 'UTC', limit: 1000, forecast: 3 });
    expect(after.scheduled).toEqual({ pushes: 1, counted: 1 });
  });

  test('return 404 for an unknown app, and 400 for an invalid day', async () => {
    expect((await viewer('GET', '/apps/nowhere/quotas')).status).toBe(404);
    expect((await viewer('GET', `/apps/${app.appId}/quotas?day=today`)).status).toBe(400);
  });
});
