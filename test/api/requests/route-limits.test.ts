import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Route } from '../../../api/route.ts';
import { loadRoutes } from '../../../api/route-loader.ts';

const kb = 1024;
const mb = 1024 * kb;

const nameOf = ({ method, paths }: Route) => `${method} ${paths[0]}`;

describe('every route declares the size of its body', () => {
  test('and is not loaded otherwise', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'carillon-routes-'));
    const load = async (name: string, limit: string) => {
      await writeFile(
        join(folder, name),
        `export default [{ paths: ['/a'], run() {}, ${limit} }];`,
      );
      return loadRoutes(pathToFileURL(`${folder}/`));
    };
    expect(await load('a.ts', 'limit: { bodyBytesBelow: 1 }')).toHaveLength(1);
    let serial = 0;
    for (const limit of [
      '',
      'limit: {}',
      'limit: null',
      'limit: { bodyBytesBelow: Infinity }',
      "limit: { rate: 'push' }",
    ]) {
      const name = `b${++serial}.ts`;
      await expect(load(name, limit)).rejects.toThrow('limits');
      await rm(join(folder, name));
    }
    await rm(folder, { recursive: true });
  });

  test('which is small, except for the routes listed here', async () => {
    const routes = await loadRoutes();
    expect(routes.length).toBeGreaterThan(80);
    const larger = routes.filter(({ limit }) => limit.bodyBytesBelow > 16 * kb + 1);
    const limits = larger.map((route) => [nameOf(route), route.limit.bodyBytesBelow]);
    const operator = larger
      .filter(({ auth }) => auth === 'admin')
      .map((route) => [nameOf(route), mb]);
    expect(limits.filter(([name]) => !operator.some(([other]) => other === name)).sort()).toEqual([
      ['POST /1.1/batch', 20 * mb],
      ['POST /1.1/batch/save', 20 * mb],
      ['POST /1.1/call/:name', 20 * mb],
      ['POST /1.1/functions/:name', 20 * mb],
      ['POST /1.1/installations', 128 * kb],
      ['POST /1.1/liveActivities', 32 * kb],
      ['POST /1.1/liveActivities/:activityId', 32 * kb],
      ['POST /1.1/liveActivities/channels/:channel', 32 * kb],
      ['POST /1.1/push/devices', 512 * kb],
      ['POST /1.1/roles', 2 * mb],
      ['POST /1.1/users', mb],
      ['POST /1.1/usersByMobilePhone', mb],
      ['POST /callbacks/:connector/:appId/:secret', 2 * mb],
      ['POST /sms-receipts/:provider/:secret', 512 * kb],
      ['PUT /1.1/installations/:objectId', 128 * kb],
      ['PUT /1.1/roles/:objectId', 2 * mb],
      ['PUT /1.1/users/:objectId', mb],
    ]);
    for (const { limit, auth } of larger)
      if (auth === 'admin') expect(limit.bodyBytesBelow).toBeLessThanOrEqual(mb);
  });

  test('which is 16 KB for senders without a key and routes without a schema', async () => {
    for (const route of await loadRoutes()) {
      const { bodyBytesBelow } = route.limit;
      if (route.isPublic) expect(bodyBytesBelow, nameOf(route)).toBeLessThanOrEqual(16 * kb + 1);
      if (route.method === 'GET') expect(bodyBytesBelow, nameOf(route)).toBe(0);
      if (!route.body && !route.hasRawBody && !route.forwardsBody)
        expect(bodyBytesBelow, nameOf(route)).toBeLessThanOrEqual(16 * kb + 1);
    }
  });
});
