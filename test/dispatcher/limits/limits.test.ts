import { expect, test } from 'vitest';
import { deleteIdle } from '../../../dispatcher/background/cleaner.ts';
import { dayMs } from '../../../shared/clock.ts';
import { continueIdleWalk, rowsOfPage } from '../../../shared/db/tables/installation-walks.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevicesWith, countRows, daysAgo, readDevices } from '../../support/tables.ts';

const service = useTestService();
test("idle installations are deleted after their app's idle period", async () => {
  const first = await service.api.createApp();
  const patient = await service.api.createApp({ installationValidityDays: 200 });
  /** Makes every nth device idle. */
  const age = async (app: App, nth: number) => {
    for (const { id } of (await readDevices(service.db, app)).filter((_, i) => i % nth === 0))
      await changeDevicesWith(service.db, app, { id }, { updatedAt: daysAgo(120) });
  };
  for (const app of [first, patient]) {
    await service.addIosInstallations(app, 30);
    await age(app, 3);
  }
  const left = (app: App) => countRows(service.db, 'installation', app);
  // The dispatcher's background job runs once at the start. After it, no installation is idle.
  const { deps } = await service.dispatch();
  await expect.poll(() => left(first)).toBe(20);
  expect(await left(patient)).toBe(30);
  await age(first, 1);
  expect(await deleteIdle(deps, 7)).toBe(7);
  expect(await left(first)).toBe(13);
});

test('a walk over several pages continues, and starts again a day later', async () => {
  const { appId } = await service.api.createApp();
  await service.db.query(
    `INSERT INTO installation (app_id, object_id, device_type, updated_at)
     SELECT $1, $1 || n, 'ios',
       now() - CASE WHEN n % 2000 = 0 THEN interval '120 days' ELSE interval '1 day' END
       FROM generate_series(1, $2::int) AS n`,
    [appId, rowsOfPage * 2],
  );
  const now = Date.now();
  const walk = (limit: number, at = now) =>
    continueIdleWalk(service.db, {
      appId,
      before: new Date(at - 90 * dayMs),
      limit,
      now: new Date(at),
      nextAt: new Date(at + dayMs),
    });
  // A full page, two pages that end at their limit, one page at the end of the walk, and none until
  // the next walk.
  const found = [await walk(10), await walk(1), await walk(1), await walk(10)];
  expect(found).toEqual([10, 1, 1, 1]);
  expect([await walk(10), await walk(10)]).toEqual([0, 0]);
  expect(await countRows(service.db, 'installation', { appId })).toBe(rowsOfPage * 2 - 5);
  await service.db.query(
    `UPDATE installation SET updated_at = now() - interval '120 days' WHERE app_id = $1
      AND object_id = $1 || '1'`,
    [appId],
  );
  expect(await walk(10)).toBe(0);
  expect(await walk(10, now + dayMs)).toBe(10);
});

test('no index contains a column that every save of an installation changes', async () => {
  const { rows } = await service.db.query<{ name: string }>(
    `SELECT a.attname AS name
       FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
      WHERE i.indrelid = 'installation'::regclass`,
  );
  const names = rows.map(({ name }) => name);
  expect(names).toContain('object_id');
  expect(names).not.toContain('updated_at');
});
