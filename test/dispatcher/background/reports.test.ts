import { beforeAll, describe, expect, test } from 'vitest';
import { computeReports } from '../../../dispatcher/background/reports.ts';
import { dayMs, systemClock } from '../../../shared/clock.ts';
import { claimReports, reportSweeps } from '../../../shared/db/tables/reports.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import { type TestService, useTestService } from '../../support/service.ts';
import { readDevices } from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});

const today = () => new Date().toISOString().slice(0, 10);
const dayBefore = (days: number) => new Date(Date.now() - days * dayMs).toISOString().slice(0, 10);

/** Makes the totals of all apps due, and computes them. */
async function compute({ db }: TestService): Promise<void> {
  await db.query(`UPDATE report_walk SET next_at = '-infinity'`);
  await computeReports({ db, clock: systemClock });
}

async function appWithDevices(n: number): Promise<App> {
  const app = await service.api.createApp({ reportOpens: true });
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, n);
  return app;
}

async function push(app: App, body: object = {}): Promise<string> {
  const sent = { data: { alert: 'Hello' }, ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: sent });
  await service.untilDone(app, reply.body.objectId);
  return reply.body.objectId;
}

async function report(app: App, query = '') {
  const path = `/console/api/apps/${app.appId}/reports${query}`;
  return (await service.api.request('GET', path, { admin: true })).body;
}

describe('the report of an app', () => {
  test('has the pushes, outcomes and events of a day, by connector and class', async () => {
    const app = await appWithDevices(3);
    const [dead = ''] = (await readDevices(service.db, app)).map((one) => one.deviceToken ?? '');
    service.apns.deadTokens.set(dead, Date.now() + dayMs);
    await push(app, { class: 'order' });
    const id = await push(app);
    const [, device] = await readDevices(service.db, app);
    const body = { objectId: device?.objectId ?? '', events: [{ push: id, type: 'opened' }] };
    await service.api.request('POST', '/1.1/push/events', { app, body });
    await compute(service);
    const first = await report(app);
    const totals = { pushes: 2, opened: 1, received: 0, delivered: 0 };
    expect(first.days).toHaveLength(30);
    expect(first.days.at(-1)).toMatchObject({ day: today(), ...totals });
    const { sent, failed, invalid_token: invalid } = first.days.at(-1);
    expect(sent + failed + invalid).toBe(6 - (await missing(app)));
    expect(first.connectors).toMatchObject([{ connector: 'apns', sent }, { connector: 'app' }]);
    expect(first.classes.map((one: { class: string }) => one.class).sort()).toEqual(['', 'order']);
    expect(first.reasons[0]).toMatchObject({
      connector: 'apns',
      meaning: { code: expect.any(String) },
    });
    expect(first.installations.at(-1)).toMatchObject({ day: today(), platform: 'ios' });
    // A second pass counts nothing twice.
    await compute(service);
    expect(await report(app)).toEqual(first);
    const ofClass = await report(app, '?class=order');
    expect(ofClass.days.at(-1)).toMatchObject({ pushes: 1, opened: 0 });
    const ofOther = await report(app, '?connector=fcm');
    expect(ofOther.days.at(-1)).toMatchObject({ sent: 0 });
  });

  /** Recipients that a second push did not have, because their device was deleted. */
  const missing = async (app: App) => 3 - (await readDevices(service.db, app)).length;

  test('keeps its totals after the records have ended', async () => {
    const app = await appWithDevices(2);
    await push(app);
    await compute(service);
    const before = await report(app);
    await service.db.query('DELETE FROM notification WHERE app_id = $1', [app.appId]);
    await compute(service);
    expect((await report(app)).days).toEqual(before.days);
  });

  test('keeps the number of a reason after some of its failures were deleted', async () => {
    const app = await appWithDevices(3);
    for (const { deviceToken } of await readDevices(service.db, app))
      service.apns.deadTokens.set(deviceToken ?? '', Date.now() - dayMs);
    const reasons = async () => {
      await compute(service);
      return (await report(app)).reasons.map(({ n }: { n: number }) => n);
    };
    await push(app);
    await service.db.query(`UPDATE push_failure SET reason = 'down' WHERE app_id = $1`, [
      app.appId,
    ]);
    expect(await reasons()).toEqual([3]);
    await service.db.query(
      `DELETE FROM push_failure WHERE app_id = $1
          AND installation = (SELECT min(installation) FROM push_failure WHERE app_id = $1)`,
      [app.appId],
    );
    expect(await reasons()).toEqual([3]);
  });

  test('is computed by one of several dispatchers', async () => {
    const app = await appWithDevices(0);
    const later = new Date(Date.now() + dayMs);
    await service.db.query('DELETE FROM report_walk WHERE app_id = $1', [app.appId]);
    const claims = await Promise.all(
      [1, 2, 3].map(() => claimReports(service.db, app.appId, later)),
    );
    expect(claims.filter(Boolean)).toHaveLength(1);
    expect(await claimReports(service.db, 'no such app', later)).toBe(false);
  });

  test('is limited to two years, and totals are deleted after them', async () => {
    const app = await appWithDevices(0);
    for (const [query, status] of [
      [`?from=${dayBefore(730)}`, 200],
      [`?from=${dayBefore(731)}`, 400],
      [`?from=${today()}&to=${dayBefore(1)}`, 400],
      ['?from=yesterday', 400],
      ['?connector=pigeon', 400],
    ] as const) {
      const path = `/console/api/apps/${app.appId}/reports${query}`;
      expect(await service.api.request('GET', path, { admin: true })).toMatchObject({ status });
    }
    for (const [query, member] of [
      ['?class=%00', 'class'],
      ['?from=0000-01-01&to=0000-01-02', 'from'],
    ] as const) {
      const path = `/console/api/apps/${app.appId}/reports${query}`;
      const { status, body } = await service.api.request('GET', path, { admin: true });
      expect({ status, error: body.error }).toEqual({
        status: 400,
        error: expect.stringMatching(new RegExp(`^${member}: `)),
      });
    }
    for (const days of [730, 740])
      await service.db.query(`INSERT INTO push_day VALUES ($1, $2, 'apns', '', 'sent', 7)`, [
        app.appId,
        dayBefore(days),
      ]);
    for (const sweep of reportSweeps)
      await sweep(service.db, new Date(Date.now() - 731 * dayMs), 100);
    const { rows } = await service.db.query('SELECT day FROM push_day WHERE app_id = $1', [
      app.appId,
    ]);
    expect(rows).toHaveLength(1);
  });

  test('is shown by the command line', async () => {
    const app = await appWithDevices(1);
    await push(app);
    await compute(service);
    const { adminToken } = testConfig(service.databaseUrl);
    const env = { PUBLIC_URL: service.api.url, CARILLON_ADMIN_TOKEN: adminToken };
    const { stdout } = await carillon(['report', '--app', app.appId], { env });
    expect(stdout).toMatch(new RegExp(`${today()}\\s+1\\s+1\\s+0`));
  });
});
