import { beforeAll, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestService } from '../../../support/service.ts';
import { insertDevices } from '../../../support/tables.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let app: App;
let viewer: ConsoleCall;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addIosInstallations(app, 3, {
    city: 'Rome',
    level: 1,
    tags: ['a', 'b'],
    long: 'x'.repeat(200),
  });
  await service.addIosInstallations(app, 1, {
    city: 'Oslo',
    at: { __type: 'Date', iso: '2026-01-01T00:00:00Z' },
  });
  await service.db.query(
    `UPDATE installation
      SET channels = CASE WHEN fields ? 'at' THEN '{news,night}' ELSE '{news}' END::text[]`,
  );
  viewer = await callerOf(service.api, 'viewer');
});

const ask = (path: string) => viewer('GET', `/apps/${app.appId}/${path}`);

test('members are suggested with types and frequent values, without tokens', async () => {
  const { results } = (await ask('fields')).body;
  const find = (name: string) => results.find((field: { name: string }) => field.name === name);
  expect(find('city')).toEqual({
    name: 'city',
    types: ['string'],
    values: [
      { value: 'Rome', share: 0.75 },
      { value: 'Oslo', share: 0.25 },
    ],
    isIndexed: true,
  });
  expect(find('level')).toMatchObject({ types: ['number'], values: [{ value: 1, share: 1 }] });
  expect(find('tags')).toMatchObject({
    types: ['array'],
    values: [{ value: 'a' }, { value: 'b' }],
  });
  expect(find('at')).toMatchObject({ types: ['Date'], values: [] });
  expect(find('long').values).toEqual([]);
  expect(find('apnsTopic').isIndexed).toBe(false);
  expect(JSON.stringify(results)).not.toMatch(/deviceToken|[0-9a-f]{64}/);
  expect((await ask('fields?prefix=ci')).body.results).toMatchObject([{ name: 'city' }]);
});

test('channels are suggested, most frequent first', async () => {
  expect((await ask('channels?prefix=n')).body.results).toEqual([
    { value: 'news', share: 1 },
    { value: 'night', share: 0.25 },
  ]);
  expect((await ask('channels?prefix=ni')).body.results).toMatchObject([{ value: 'night' }]);
  expect((await ask('channels?prefix=a%00')).status).toBe(400);
  expect((await viewer('GET', '/apps/nowhere/fields')).status).toBe(404);
});

test('a sample has the newest 2000 devices, 200 members and 20 values of each', async () => {
  const big = await service.api.createApp();
  await service.addIosInstallations(big, 1, { oldest: true });
  await insertDevices(
    service.db,
    big,
    Array.from({ length: 2000 }, (_, i) => ({
      deviceType: 'web',
      channels: [`c${i + 1}`],
      fields: { [`f${(i + 1) % 300}`]: i + 1, same: i + 1 },
    })),
  );
  const get = async (path: string) =>
    (await viewer('GET', `/apps/${big.appId}/${path}`)).body.results;
  const fields = await get('fields');
  expect(fields).toHaveLength(200);
  expect(fields.find(({ name }: { name: string }) => name === 'same').values).toHaveLength(20);
  expect(await get('fields?prefix=oldest')).toEqual([]);
  expect(await get('channels')).toHaveLength(200);
});
