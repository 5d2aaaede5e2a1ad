import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-rotation-'));
  await service.dispatch();
});
afterAll(() => rm(folder, { recursive: true }));

const run = (...args: string[]) => {
  const { adminToken } = testConfig(service.databaseUrl);
  const env = { PUBLIC_URL: service.api.url, CARILLON_ADMIN_TOKEN: adminToken };
  return carillon(args, { cwd: folder, env });
};

test('`secret rotate` waits for the dispatcher, and counts without it', async () => {
  await service.api.createApp();
  const [counted, rotated] = [
    await run('secret', 'rotate', '--dry-run'),
    await run('secret', 'rotate'),
  ];
  expect([counted.code, rotated.code]).toEqual([0, 0]);
  expect(counted.stdout).toMatch(/app\.secrets +1 +0/);
  expect(rotated.stdout).toContain('0 values are not under the first key.');
});

test('`profile stage` reports a failed check, `profile rollback` undoes it', async () => {
  const { appId } = await service.api.createApp();
  const file = join(folder, 'oppo.json');
  const credentials = { appKey: 'k', masterSecret: 's', authEndpoint: 'http://127.0.0.1:9' };
  await writeFile(file, JSON.stringify(credentials));
  expect((await run('profile', 'put', appId, 'oppo', file)).code).toBe(0);
  const staged = await run('profile', 'stage', appId, 'oppo', file);
  expect([staged.code, staged.stdout]).toEqual([1, expect.stringContaining('ECONNREFUSED')]);
  expect((await run('profile', 'rollback', appId, 'oppo')).stdout).toContain('rolled_back');
  expect((await run('profile', 'promote', appId, 'oppo')).code).toBe(1);
});
