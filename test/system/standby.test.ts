import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkUpkeep } from '../../api/services/operator/doctor/service-checks.ts';
import { type RunningDispatcher, startDispatcher } from '../../dispatcher/start.ts';
import { checkStandby } from '../../ops/cli/doctor/database.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../ops/local/postgres/server.ts';
import { cloneServer } from '../../ops/monitoring/faults/stage.ts';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../ops/sandbox/apns/server.ts';
import { Vault } from '../../shared/crypto.ts';
import { Database } from '../../shared/db/pool.ts';
import { readStandbyLag } from '../../shared/db/standby.ts';
import { putProfile } from '../../shared/db/tables/profiles.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { migrate } from '../../shared/queue/migrate.ts';
import { silentLog, startTestApi, type TestApi, testConfig } from '../support/api.ts';
import { insertIos } from '../support/service.ts';

let parentDir: string;
let primary: EmbeddedPostgres;
let standby: EmbeddedPostgres;
let gateway: ApnsGateway;
let api: TestApi;
let dispatcher: RunningDispatcher;
let db: Database;
let app: App;
let standbyPid: number;

beforeAll(async () => {
  parentDir = await mkdtemp(join(tmpdir(), 'carillon-standby-'));
  await chmod(parentDir, 0o755);
  const [primaryDir, standbyDir] = [join(parentDir, 'primary'), join(parentDir, 'standby')];
  primary = await startEmbeddedPostgres({ dataDir: primaryDir, memoryMb: 1024, durable: false });
  await migrate(primary.databaseUrl);
  db = new Database({ url: primary.databaseUrl, applicationName: 'test' });
  await cloneServer({ dataDir: primaryDir, server: primary, db }, standbyDir);
  standby = await startEmbeddedPostgres({ dataDir: standbyDir, memoryMb: 1024, durable: false });
  standbyPid = standby.pid;
  gateway = await startApnsGateway();
  const env = { DATABASE_READ_URL: standby.databaseUrl };
  api = await startTestApi({ databaseUrl: primary.databaseUrl, env });
  dispatcher = await startDispatcher(testConfig(primary.databaseUrl, env), silentLog);
  app = await api.createApp();
  const credentials = createApnsCredentials();
  await gateway.close();
  gateway = await startApnsGateway({ keys: [credentials] });
  const { publicKey: _, ...own } = credentials;
  await putProfile(db, new Vault(testConfig(primary.databaseUrl).secrets), {
    appId: app.appId,
    connector: 'apns',
    name: '_default',
    credentials: { auth: 'token', ...own, endpoint: gateway.url, ca: gateway.ca },
  });
}, 60_000);

afterAll(async () => {
  await dispatcher?.stack.close();
  await api?.close();
  await db?.close();
  await gateway?.close();
  await standby?.stop('immediate');
  await primary?.stop('immediate');
  await rm(parentDir, { recursive: true, force: true });
}, 60_000);

async function register(count: number): Promise<void> {
  await insertIos(db, app, count);
}

async function push(): Promise<Record<string, unknown>> {
  const body = { data: { alert: 'Hello' } };
  const reply = await api.request('POST', '/1.1/push', { app, master: true, body });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  const record = async () =>
    (await api.request('GET', `/1.1/notifications/${reply.body.objectId}`, { app })).body;
  await expect.poll(record, { timeout: 20_000 }).toMatchObject({ status: 'done' });
  return record();
}

describe('DATABASE_READ_URL names a streaming standby', { timeout: 60_000 }, () => {
  test('scans read it, with every device that registered before the push', async () => {
    const standbyDb = new Database({ url: standby.databaseUrl, applicationName: 'test' });
    const { rows } = await standbyDb.query<{ is_standby: boolean }>(
      'SELECT pg_is_in_recovery() AS is_standby',
    );
    expect(rows[0]?.is_standby).toBe(true);
    for (const total of [500, 1000, 1500]) {
      await register(500);
      expect(await push()).toMatchObject({ devices: total, successes: total });
    }
    const scans = await standbyDb.query<{ n: number }>(
      "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'carillon dispatcher (scan)'",
    );
    expect(scans.rows[0]?.n).toBeGreaterThan(0);
    await standbyDb.close();
  });

  test('doctor reports its lag, an unread slot, and disabled autovacuum', async () => {
    expect(await checkStandby(standby.databaseUrl)).toMatchObject({ status: 'ok' });
    const standbyDb = new Database({ url: standby.databaseUrl, applicationName: 'test' });
    await standbyDb.query('SELECT pg_wal_replay_pause()');
    await db.query('CREATE TABLE of_the_lag (id int)');
    await expect.poll(() => checkStandby(standby.databaseUrl, 0)).toMatchObject({ status: 'warn' });
    await standbyDb.query('SELECT pg_wal_replay_resume()');
    // It also lags if it receives nothing.
    await expect.poll(() => readStandbyLag(standbyDb)).toBe(0);
    const { rows } = await standbyDb.query<{ source: string }>(
      "SELECT current_setting('primary_conninfo') AS source",
    );
    const streamFrom = async (source?: string) => {
      await standbyDb.query(`ALTER SYSTEM SET primary_conninfo = '${source}'`);
      await standbyDb.query('SELECT pg_reload_conf()');
    };
    await streamFrom('');
    await expect.poll(() => readStandbyLag(standbyDb)).toBeGreaterThan(0);
    await streamFrom(rows[0]?.source);
    await expect.poll(() => readStandbyLag(standbyDb)).toBe(0);
    await standbyDb.close();
    await db.query("SELECT pg_create_physical_replication_slot('unread', true)");
    await db.query('ALTER SYSTEM SET autovacuum = off');
    await db.query('SELECT pg_reload_conf()');
    const bad = async () =>
      (await checkUpkeep(db, { slotBytes: -1 })).flatMap(({ status, code }) =>
        status === 'ok' ? [] : code,
      );
    await expect.poll(bad).toEqual(['autovacuumOff', 'idleSlot']);
    await db.query("SELECT pg_drop_replication_slot('unread')");
    await db.query('ALTER SYSTEM RESET autovacuum');
    await db.query('SELECT pg_reload_conf()');
    const { values } = await dispatcher.deps.metrics.scans.get();
    expect(
      values.find(({ labels }) => labels.database === 'standby')?.value,
    ).toBeGreaterThanOrEqual(3);
  });

  test('a standby that lags or is down delays nothing: the primary is read', async () => {
    const standbyDb = new Database({ url: standby.databaseUrl, applicationName: 'test' });
    await standbyDb.query('SELECT pg_wal_replay_pause()');
    await standbyDb.close();
    await register(100);
    expect(await push()).toMatchObject({ devices: 1600, successes: 1600 });
    process.kill(standbyPid, 'SIGKILL');
    await standby.exited;
    const read = await api.request('GET', '/1.1/installations?limit=1', { app, master: true });
    expect(read).toMatchObject({ status: 200, body: { results: [expect.anything()] } });
    await register(100);
    expect(await push()).toMatchObject({ devices: 1700, successes: 1700 });
  });
});
