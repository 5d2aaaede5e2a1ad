import { expect, test } from 'vitest';
import { Vault } from '../../../shared/crypto.ts';
import { AppCache } from '../../../shared/db/app-cache.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();

test('the cache keeps an app and its profiles until one of them is written', async () => {
  const app = await service.api.createApp();
  const { appId } = app;
  await service.addApnsProfile(app);
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  let nowMs = 0;
  const cache = new AppCache(service.db, vault, { now: () => nowMs, monotonicMs: () => nowMs });
  const read = async () => {
    nowMs += 1000;
    const [stored, profiles] = await Promise.all([cache.app(appId), cache.profiles(appId)]);
    return { stored, profiles };
  };
  const first = await read();
  expect(first.profiles.map(({ name }) => name)).toEqual(['_default']);
  const second = await read();
  expect(second.stored).toBe(first.stored);
  expect(second.profiles).toBe(first.profiles);
  await service.db.query(`UPDATE app SET name = 'Renamed' WHERE app_id = $1`, [appId]);
  const third = await read();
  expect(third.stored?.name).toBe('Renamed');
  expect(third.profiles).toBe(first.profiles);
  await putProfile(service.db, vault, { appId, connector: 'fcm', name: 'second', credentials: {} });
  expect((await read()).profiles.map(({ name }) => name)).toEqual(['_default', 'second']);
  await service.db.query('DELETE FROM push_profile WHERE app_id = $1', [appId]);
  expect((await read()).profiles).toEqual([]);
  await service.db.query('DELETE FROM app WHERE app_id = $1', [appId]);
  expect((await read()).stored).toBeUndefined();
});

test('the cache returns nothing for an unknown app', async () => {
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  const cache = new AppCache(service.db, vault, { now: () => 0, monotonicMs: () => 0 });
  expect(await cache.app('unknown')).toBeUndefined();
  expect(await cache.profiles('unknown')).toEqual([]);
});
