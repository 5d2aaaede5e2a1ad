import { expect, test } from 'vitest';
import { deleteIdle } from '../../../dispatcher/duties/idle.ts';
import { useTestService } from '../../support/service.ts';

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
  const left = async (appId = '') => {
    const { rows } = await service.db.query<{ n: number }>(
      'SELECT count(*) AS n FROM installation WHERE app_id = $1',
      [appId],
    );
    return rows[0]?.n;
  };
  // The dispatcher's duty runs once at the start; after it no installation is idle.
  const { deps } = await service.dispatch();
  await expect.poll(() => left(apps[0]?.appId)).toBe(20);
  expect(await left(apps[1]?.appId)).toBe(30);
  await age(apps[0]?.appId);
  expect(await deleteIdle(deps, 7)).toBe(7);
  expect(await left(apps[0]?.appId)).toBe(13);
});
