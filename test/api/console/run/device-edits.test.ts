import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestService } from '../../../support/service.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let app: App;
let operator: ConsoleCall;

beforeAll(async () => {
  app = await service.api.createApp();
  operator = await callerOf(service.api, 'operator');
});

const base = () => `/apps/${app.appId}/installations`;
const count = async () => (await operator('GET', `${base()}?count=1&limit=1`)).body.count;
const deleteAll = (where: object, expected: unknown) =>
  operator('POST', `${base()}/delete`, { body: { where, expected } });

describe('an operator', () => {
  test('changes and deletes an installation by any of its ids', async () => {
    const [token = ''] = await service.addIosInstallations(app, 1, { city: 'Wien' });
    const changed = await operator('PUT', `${base()}/${token}`, {
      body: { city: 'Graz', channels: ['a'] },
    });
    expect(changed.body).toMatchObject({ deviceToken: token, city: 'Graz', channels: ['a'] });
    const [entry] = (
      await service.api.request('GET', '/console/api/audit?limit=1', { admin: true })
    ).body.results;
    expect(entry).toMatchObject({
      before: { city: 'Wien' },
      after: { city: 'Graz', channels: ['a'] },
    });
    expect(
      (await operator('PUT', `${base()}/${token}`, { body: { channels: 'a b!' } })).status,
    ).toBe(400);
    expect((await operator('DELETE', `${base()}/${token}`)).body).toEqual({});
    for (const method of ['PUT', 'DELETE'])
      for (const id of [token, 'nothing', '%00'])
        expect(
          (await operator(method, `${base()}/${id}`, { body: {} })).status,
          `${method} ${id}`,
        ).toBe(404);
  });

  test('deletes all matching installations, only if their number is as expected', async () => {
    await service.addIosInstallations(app, 1005, { city: 'Linz' });
    await service.addIosInstallations(app, 2, { city: 'Bonn' });
    const before = await count();
    for (const expected of [1004, 1006, 0])
      expect((await deleteAll({ city: 'Linz' }, expected)).status, String(expected)).toBe(409);
    expect(await count()).toBe(before);
    expect((await deleteAll({ city: 'Linz' }, 1005)).body).toEqual({ deleted: 1005 });
    expect(await count()).toBe(before - 1005);
    expect((await deleteAll({ city: 'Linz' }, 0)).body).toEqual({ deleted: 0 });
    const entries = await service.api.request(
      'GET',
      '/console/api/audit?action=installation.delete-all&limit=5',
      { admin: true },
    );
    expect(entries.body.results.map(({ after }: { after: object }) => after)).toEqual([
      { deleted: 5 },
      { deleted: 1000 },
    ]);
  });

  test('is refused for a bad condition or number', async () => {
    for (const [where, expected] of [
      [{ $x: 1 }, 1],
      [{}, -1],
      [{}, 100_001],
      [{}, 1.5],
      [{}, '1'],
    ] as const)
      expect((await deleteAll(where, expected)).status, JSON.stringify([where, expected])).toBe(
        400,
      );
    const sender = await callerOf(service.api, 'sender');
    expect((await sender('DELETE', `${base()}/x`)).status).toBe(403);
  });
});
