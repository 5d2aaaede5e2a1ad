import { expect, test } from 'vitest';
import { deleteIdle } from '../../../dispatcher/duties/cleaner.ts';
import { dayMs } from '../../../shared/clock.ts';
import { continueIdleWalk, rowsOfPage } from '../../../shared/db/tables/installations.ts';
import { useTestService } from '../../support/service.ts';
import { countRows } from '../../support/tables.ts';

const service = useTestService();
test('idle installations are deleted by the validity of their app, a bounded number at a time', async () => {
  const apps = [
    await service.api.createApp(),
    await service.api.createApp({ installationValidityDays: 200 }),
  ];
  const age = (appId = '', third = 0) =>
    service.db.query(
      `UPDATE installation SET updated_at = now() - interval '120 days'
        WHERE app_id = $1 AND ($2 = 0 OR id % 3 = 0)`,
      [appId, third],
    );
  for (const app of apps) {
    await service.addIosInstallations(app, 30);
    await age(app.appId, 1);
  }
  const left = (appId = '') => countRows(service.db, 'installation', { appId });
  // The dispatcher's duty runs once at the start; after it no installation is idle.
  const { deps } = await service.dispatch();
  await expect.poll(() => left(apps[0]?.appId)).toBe(20);
  expect(await left(apps[1]?.appId)).toBe(30);
  await age(apps[0]?.appId);
  expect(await deleteIdle(deps, 7)).toBe(7);
  expect(await left(apps[0]?.appId)).toBe(13);
});

test('a walk over more than one page goes on with the next call, and begins again a day later', async () => {
  const { appId } = await service.api.createApp();
  await service.db.query(
    `INSERT INTO installation (app_id, object_id, device_type, updated_at)
     SELECT $1, $1 || n, 'ios', now() - CASE WHEN n % 2000 = 0 THEN interval '120 days' ELSE interval '1 day' END
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
  // A full page, two pages that end by their limit, one at the end of the walk, and none until the next one.
  const found = [await walk(10), await walk(1), await walk(1), await walk(10)];
  expect(found).toEqual([10, 1, 1, 1]);
  expect([await walk(10), await walk(10)]).toEqual([0, 0]);
  expect(await countRows(service.db, 'installation', { appId })).toBe(rowsOfPage * 2 - 5);
  await service.db.query(
    `UPDATE installation SET updated_at = now() - interval '120 days' WHERE app_id = $1 AND object_id = $1 || '1'`,
    [appId],
  );
  expect(await walk(10)).toBe(0);
  expect(await walk(10, now + dayMs)).toBe(10);
});

test('no index has a column that every save of an installation changes', async () => {
  const { rows } = await service.db.query<{ name: string }>(
    `SELECT a.attname AS name
       FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
      WHERE i.indrelid = 'installation'::regclass`,
  );
  const names = rows.map(({ name }) => name);
  expect(names).toContain('object_id');
  expect(names).not.toContain('updated_at');
});
