import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startDispatcher } from '../../dispatcher/start.ts';
import {
  checkConnections,
  checkNotifications,
  checkStatements,
} from '../../ops/cli/doctor/connections.ts';
import { freePort } from '../../ops/local/ports.ts';
import { Database } from '../../shared/db/pool.ts';
import { prepare } from '../../shared/db/prepared.ts';
import { silentLog, startTestApi, testConfig } from '../support/api.ts';
import { useTestService } from '../support/service.ts';

const program = ['/usr/sbin/pgbouncer', '/usr/local/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(
  existsSync,
);
/**
 * Few server connections, so that consecutive statements of a client run on different connections.
 */
const poolSize = 8;

/** Starts PgBouncer in transaction mode in front of a database. It refuses to run as root. */
async function startPooler(databaseUrl: string) {
  const {
    host,
    port: serverPort,
    user,
    database,
  } = new pg.Client({ connectionString: databaseUrl });
  const folder = await mkdtemp(join(tmpdir(), 'carillon-pooler-'));
  const port = await freePort();
  const lines = [
    '[databases]',
    `* = host=${host} port=${serverPort} user=${user}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    'max_client_conn = 500',
    `default_pool_size = ${poolSize}`,
  ];
  await writeFile(join(folder, 'pgbouncer.ini'), lines.join('\n'));
  // Lets the server's user use its socket.
  const { uid, gid } = await stat(host);
  const isRoot = userInfo().uid === 0;
  if (isRoot) await chown(folder, uid, gid);
  const child = spawn(program ?? '', [join(folder, 'pgbouncer.ini')], {
    stdio: 'ignore',
    ...(isRoot ? { uid, gid } : {}),
  });
  await vi.waitUntil(() => canConnect(port), { timeout: 20_000 });
  return {
    url: `postgresql://${user}@127.0.0.1:${port}/${database}`,
    async stop() {
      child.kill('SIGKILL');
      await rm(folder, { recursive: true });
    },
  };
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

const service = useTestService();

describe.skipIf(program === undefined)('PgBouncer in transaction mode', () => {
  let pooler: Awaited<ReturnType<typeof startPooler>>;
  let env: Record<string, string>;
  beforeAll(async () => {
    pooler = await startPooler(service.databaseUrl);
    env = {
      DATABASE_URL: pooler.url,
      DATABASE_DIRECT_URL: service.databaseUrl,
      DATABASE_POOLER: 'transaction',
    };
  });
  afterAll(() => pooler?.stop());

  test('serves calls, grouped saves, a push and its records', async () => {
    const api = await startTestApi({ databaseUrl: pooler.url, env });
    onTestFinished(() => api.close());
    const dispatcher = await startDispatcher(testConfig(pooler.url, env), silentLog);
    onTestFinished(() => dispatcher.stack.close());
    const app = await api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 2500);
    const saves = Array.from({ length: 60 }, (_, i) =>
      api.request('POST', '/1.1/installations', {
        app,
        body: { deviceType: 'ios', deviceToken: `${i}`.padStart(64, 'a'), channels: ['news'] },
      }),
    );
    expect((await Promise.all(saves)).map(({ status }) => status)).toEqual(saves.map(() => 201));
    const pushes = Array.from({ length: 12 }, (_, i) =>
      api.request('POST', '/1.1/push', {
        app,
        master: true,
        body: { data: { alert: `n ${i}` }, ...(i === 0 ? {} : { where: { channels: 'news' } }) },
      }),
    );
    for (const { status, body } of await Promise.all(pushes)) {
      expect(status).toBe(200);
      const record = await service.untilDone(app, body.objectId);
      expect({ status: record.status, successes: record.successes }).toEqual({
        status: 'done',
        successes: record.devices,
      });
    }
  });

  test('keeps the settings of a pool inside its own transactions', async () => {
    const settings = { lock_timeout: '123ms', enable_seqscan: 'off' };
    const options = { url: pooler.url, applicationName: 'test', maxConnections: 4 } as const;
    const own = new Database({
      ...options,
      pooler: 'transaction',
      settings,
      statementTimeoutMs: 4567,
    });
    const other = new Database({ ...options, pooler: 'transaction', statementTimeoutMs: 4567 });
    onTestFinished(() => own.close());
    onTestFinished(() => other.close());
    const shown = `SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS time`;
    const all = (db: Database) => Promise.all(Array.from({ length: 12 }, () => db.query(shown)));
    for (const { rows } of await all(own))
      expect(rows).toEqual([{ lock: '123ms', time: '4567ms' }]);
    for (const { rows } of await all(other)) expect(rows[0]?.lock).toBe('0');
    const within = await other.transaction((tx) => tx.query(shown));
    expect(within.rows).toEqual([{ lock: '0', time: '4567ms' }]);
    // No connection keeps a limit, so no statement runs without its own limit.
    expect((await other.queryWithin(4567, shown)).rows).toEqual([{ lock: '0', time: '4567ms' }]);
  });

  test('needs DATABASE_POOLER, because it does not support prepared statements', async () => {
    const statement = prepare('SELECT $1::int AS one');
    const runs = async (pooler_: 'none' | 'transaction') => {
      const db = new Database({
        url: pooler.url,
        applicationName: 'test',
        pooler: pooler_,
        ...(pooler_ === 'none' ? { statementTimeoutMs: 0 } : {}),
      });
      try {
        for (let round = 0; round < 20; round += 1)
          await Promise.all(Array.from({ length: 10 }, () => db.query(statement, [1])));
      } finally {
        await db.close();
      }
    };
    await expect(runs('transaction')).resolves.toBeUndefined();
    await expect(runs('none')).rejects.toThrow();
  });

  test('is detected by doctor', async () => {
    const config = (more: Record<string, string>) =>
      testConfig(service.databaseUrl, { ...env, ...more });
    const statesOf = async (more: Record<string, string>) =>
      (await checkConnections(config(more))).map(({ name, status }) => `${name} ${status}`);
    expect(await statesOf({})).toEqual(['pooler ok', 'connections ok']);
    expect(await statesOf({ DATABASE_POOLER: 'none' })).toEqual(['pooler warn', 'connections ok']);
    expect(await statesOf({ DATABASE_DIRECT_URL: '' })).toEqual(['pooler fail', 'connections ok']);
    expect(await statesOf({ DATABASE_URL: service.databaseUrl })).toEqual([
      'pooler warn',
      'connections ok',
    ]);
    expect(await checkNotifications(config({}))).toMatchObject({ status: 'ok' });
    expect(await checkStatements(config({}))).toEqual([]);
    expect(await checkStatements(config({ DATABASE_POOLER: 'none' }))).toMatchObject([
      { status: 'fail' },
    ]);
  });
});

test('doctor detects that a notification does not arrive from another database', async () => {
  const [own, other] = [service.databaseUrl, service.databaseUrl.replace(/test_\w+/, 'postgres')];
  const finding = await checkNotifications({ databaseUrl: other, databaseDirectUrl: own }, 200);
  expect(finding).toMatchObject({
    status: 'fail',
    detail: 'a notification did not arrive within 200 ms',
  });
});

test('doctor adds up the connections of all processes', async () => {
  const dispatcher = await service.dispatch();
  onTestFinished(() => dispatcher.stack.close());
  const [fits] = await checkConnections(testConfig(service.databaseUrl));
  expect(fits).toMatchObject({
    status: 'ok',
    detail: expect.stringMatching(/^1 api × 26 \+ 1 dispatcher × 41 = 67 of \d+ connections/),
  });
  const [tooMany] = await checkConnections(
    testConfig(service.databaseUrl, { DISPATCHER_THREADS: '200' }),
  );
  expect(tooMany).toMatchObject({ name: 'connections', status: 'warn' });
});
