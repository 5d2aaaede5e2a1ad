import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../shared/domain/apps/app.ts';
import { migrate } from '../../shared/queue/migrate.ts';
import { testEnvironment } from '../support/api.ts';
import { type CliOptions, type CliResult, carillon } from '../support/cli.ts';
import { anInstallation } from '../support/import/imports.ts';
import { type CitusServers, startCitusServers } from '../support/servers/citus.ts';
import { startTestService, type TestService } from '../support/service.ts';

/**
 * A server with Citus (develop/testing.md). The tests start their own servers with its programs.
 */
const installed = process.env.CARILLON_TEST_CITUS?.split(',')[0];
const devices = 200_000;
const imported = 50_000;
const maxMs = 180_000;
const newKey = Buffer.alloc(32, 5).toString('base64');

let servers: CitusServers;
let service: TestService;
let isOpen = false;
let folder: string;
let large: App;
let small: App;
let tokens: string[];

async function open(secret = testEnvironment('').CARILLON_SECRET ?? ''): Promise<void> {
  const env = { CARILLON_SECRET: secret };
  service = await startTestService({ databaseUrl: servers.databaseUrl, env });
  isOpen = true;
  await service.dispatch();
}

async function close(): Promise<void> {
  if (isOpen) await service.close();
  isOpen = false;
}

/**
 * Runs a command like an operator: with the variables of the service and the address of its api.
 */
function run(
  args: string[],
  secret = testEnvironment('').CARILLON_SECRET ?? '',
): Promise<CliResult> {
  const own = {
    ...testEnvironment(servers.databaseUrl),
    CARILLON_SECRET: secret,
    CARILLON_DATA_DIR: folder,
  };
  const options: CliOptions = { env: { ...own, PUBLIC_URL: service.api.url }, cwd: folder };
  return carillon(args, options);
}

async function push(app: App, more: object = {}): Promise<string> {
  const body = { data: { alert: 'Hello' }, ...more };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return reply.body.objectId;
}

const notSeen = (times: number, of = tokens) =>
  of.filter((token) => service.apns.seen(token) !== times);

beforeAll(async () => {
  if (installed === undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'carillon-spread-'));
  servers = await startCitusServers(installed);
  await migrate(servers.databaseUrl);
  await open();
  [large, small] = [await service.api.createApp(), await service.api.createApp()];
  await service.addApnsProfile(large);
  tokens = await service.addIosInstallations(large, devices);
  await service.addIosInstallations(small, 1000);
  await service.addApnsProfile(small);
  expect(await service.untilDone(small, await push(small))).toMatchObject({ successes: 1000 });
  await service.db.query('VACUUM ANALYZE installation');
  await close();
}, maxMs);

afterAll(async () => {
  await close();
  await servers?.close();
  if (folder) await rm(folder, { recursive: true });
}, maxMs);

describe.skipIf(installed === undefined)(
  'a service with data whose database is sharded',
  { timeout: maxMs },
  () => {
    test('has a plan first, and doctor then finds its rows on both workers', async () => {
      const plan = await run(['migrate', '--distribute', '--plan']);
      expect(plan.stdout).toMatch(
        /There is no way back[\s\S]*installation: by app_id, about 2\d\d,000 rows/,
      );
      const before = await run(['doctor', '--json']);
      expect(before.stdout).toContain('not all tables are spread');
      expect((await run(['migrate', '--distribute'])).stdout).toContain('All tables are spread.');
      expect((await run(['migrate', '--distribute'])).stdout).toContain(
        'All tables are spread already.',
      );
      await open();
      await Promise.all([large, small].map((app) => service.addApnsProfile(app)));
      const { stdout } = await run(['doctor']);
      expect(stdout).toMatch(/Citus [\d.-]+ spreads the tables by app_id/);
      expect(stdout.match(/shards: \d+, rows: about/g)).toHaveLength(2);
    });

    test('sends a push to each device once', async () => {
      const record = await service.untilDone(large, await push(large), maxMs);
      expect(record).toMatchObject({ devices, successes: devices });
      expect(notSeen(1)).toEqual([]);
    });

    test('sends a scheduled push, and a redrive to missed recipients', async () => {
      const push_time = new Date(Date.now() + 1500).toISOString();
      expect(await service.untilDone(small, await push(small, { push_time }))).toMatchObject({
        successes: 1000,
      });
      const capped = await service.api.createApp({ dailyRecipientCap: 1000 });
      await service.addApnsProfile(capped);
      const own = await service.addIosInstallations(capped, 3000);
      const objectId = await push(capped);
      expect(await service.untilDone(capped, objectId)).toMatchObject({
        outcomes: { sent: 1000, capped: 2000 },
      });
      const options = { dailyRecipientCap: 1_000_000 };
      const path = `/console/api/apps/${capped.appId}`;
      await service.api.request('PATCH', path, { admin: true, body: { options } });
      // A changed option takes effect on every process within one second.
      await new Promise((resolve) => setTimeout(resolve, 1000));
      const redriven = await run(['redrive', objectId, '--app', capped.appId, '--json']);
      expect(redriven.code, redriven.stderr).toBe(0);
      expect(await service.untilDone(capped, redriven.json().objectId)).toMatchObject({
        outcomes: { sent: 2000 },
      });
      expect(notSeen(1, own)).toEqual([]);
    });

    test('imports installations, and finds them again', async () => {
      const rows = Array.from({ length: imported }, () => anInstallation({ deviceType: 'ios' }));
      const path = join(folder, '_Installation.jsonl');
      await writeFile(path, rows.map((row) => JSON.stringify(row)).join('\n'));
      const args = ['import', path, '--app', small.appId, '--json'];
      const first = await run(args);
      expect(first.json().classes._Installation).toMatchObject({ imported, refused: 0 });
      const again = await run(args);
      expect(again.json().classes._Installation).toMatchObject({
        imported: 0,
        alreadyThere: imported,
      });
    });

    test('encrypts all values with a new secret, without the old one', async () => {
      const both = `${newKey},${testEnvironment('').CARILLON_SECRET}`;
      await close();
      await open(both);
      await service.addApnsProfile(large);
      const rotated = await run(['secret', 'rotate'], both);
      expect(rotated.stdout, rotated.stderr).toContain('0 values are not under the first key.');
      const { checks } = (await run(['doctor', '--json'], newKey)).json();
      expect(checks).toContainEqual(expect.objectContaining({ name: 'secrets', status: 'ok' }));
    });

    test('continues after its coordinator was killed during a push', async () => {
      const objectId = await push(large);
      await service.apns.waitFor(devices / 5);
      await servers.killCoordinator();
      expect(service.apns.total).toBeLessThan(devices);
      await servers.startCoordinator();
      const record = async () =>
        (await service.api.request('GET', `/1.1/tables/Notifications/${objectId}`, { app: large }))
          .body;
      await expect
        .poll(record, { timeout: maxMs, interval: 200 })
        .toMatchObject({ status: 'done' });
      expect(await record()).toMatchObject({ devices, successes: devices });
      expect(notSeen(1)).toEqual([]);
    });
  },
);
