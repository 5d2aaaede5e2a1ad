import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../ops/local/postgres/server.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { migrate } from '../../shared/queue/migrate.ts';
import { beginPush } from '../support/gateways/app-gateway.ts';
import { awakeZone, hoursOfNow } from '../support/gateways/quiet-hours.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { changeDevices, readDevices } from '../support/tables.ts';

/** Allows for a busy machine. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });
let folder: string;
let server: EmbeddedPostgres;
let service: TestService;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-statements-'));
  await chmod(folder, 0o755);
  const settings = {
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track_utility': 'off',
  };
  const dataDir = join(folder, 'data');
  server = await startEmbeddedPostgres({ dataDir, memoryMb: 512, durable: false, settings });
  await migrate(server.databaseUrl);
  service = await startTestService({ databaseUrl: server.databaseUrl });
  await service.db.query('CREATE EXTENSION pg_stat_statements');
  await service.dispatch();
});
afterAll(async () => {
  await service?.close();
  await server?.stop('immediate');
  await rm(folder, { recursive: true, force: true });
});

/** Enough devices for two batches. */
const devices = 2000;

/** App options that protect users. A transactional push is exempt from all of them. */
const options = { quietHours: hoursOfNow(), devicePushesPerDay: 5, defaultTimeZone: awakeZone };
const transactional = { kind: 'transactional' };

async function appWith(given: object): Promise<App> {
  const app = await service.api.createApp(given);
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, devices, { name: 'Ann', locale: 'en_US' });
  return app;
}

/**
 * Statements on the path of a push. Statements of background jobs run by the clock, and so do the
 * checkpoints and settlements of a batch. This test reads the record until the push is done.
 */
const pathOfPush = /push_batch|FROM installation|device_day|recipient_failure|UPDATE notification/;
const byTheClock = [
  /^UPDATE push_batch SET settled = \$\d+, moved|^WITH mark|AND NOT EXISTS \(SELECT \$2 FROM push_batch/,
  // Checkpoints of failures and forms of tokens.
  /EXISTS \(SELECT \S+ FROM saved\)/,
  // The job keeper.
  /^SELECT b\.app_id AS "appId", b\.push_id|^WITH open AS MATERIALIZED/,
  // The record.
  /by_connector\) AS totals|AS repeats$|ORDER BY g\.connector, g\.profile LIMIT/,
];

/**
 * Sends a push and waits for its end. Returns the number of calls of each statement on its path
 * during this time, by text.
 */
async function callsOf(app: App, body: object = {}): Promise<Record<string, number>> {
  await service.db.query('SELECT pg_stat_statements_reset()');
  const objectId = await beginPush(service, app, body);
  const sent = 'where' in body ? 1 : devices;
  expect(await service.untilDone(app, objectId, 90_000)).toMatchObject({ outcomes: { sent } });
  const { rows } = await service.db.query<{ query: string; calls: number }>(
    'SELECT query, sum(calls)::int AS calls FROM pg_stat_statements GROUP BY query ORDER BY query',
  );
  const ofPath = rows.filter(
    ({ query }) => pathOfPush.test(query) && !byTheClock.some((form) => form.test(query)),
  );
  return Object.fromEntries(ofPath.map(({ query, calls }) => [query, calls]));
}

/**
 * Number of rounds. Other work varies by chance, so a more expensive push would have to be as cheap
 * in all rounds.
 */
const rounds = 6;

describe('a push without quiet hours, frequency cap, variables and languages', () => {
  test.each([
    ['of two batches', async (): Promise<object> => ({})],
    ['to one device', async (app: App): Promise<object> => ({ where: await oneDevice(app) })],
  ])(
    '%s runs the same statements as often, whether or not its app has options for them',
    async (_, targetOf) => {
      const [without, withOptions] = [await appWith({}), await appWith(options)];
      const bodyOf = async (app: App) => ({ ...transactional, ...(await targetOf(app)) });
      const [first, second] = [await bodyOf(without), await bodyOf(withOptions)];
      await callsOf(without, first);
      const seen = new Set<string>();
      const others = new Set<string>();
      for (let round = 0; round < rounds && others.isDisjointFrom(seen); round += 1) {
        seen.add(JSON.stringify(await callsOf(without, first)));
        others.add(JSON.stringify(await callsOf(withOptions, second)));
      }
      const [plain, other] = [[...seen].at(-1), [...others].at(-1)];
      if (others.isDisjointFrom(seen))
        expect(JSON.parse(other ?? '{}')).toEqual(JSON.parse(plain ?? '{}'));
      expect(plain).not.toMatch(/device_day|quiet_waits|json_build_array/);
    },
  );

  test('differs by its statements from a push that uses them', async () => {
    const app = await appWith({});
    await changeDevices(service.db, app, { timeZone: awakeZone });
    const variables = { name: { field: 'name', default: 'friend' } };
    const text = { data: { alert: '{{name}}' }, variables };
    const calls = JSON.stringify(
      await callsOf(app, { ...text, device_cap: 5, quiet_hours: hoursOfNow() }),
    );
    expect(calls).toMatch(/device_day/);
    expect(calls).toMatch(/json_build_array/);
  });
});

const oneDevice = async (app: App): Promise<object> => {
  const [device] = await readDevices(service.db, app);
  return { deviceToken: device?.deviceToken };
};
