import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { startApi } from '../../api/start.ts';
import { startDispatcher } from '../../dispatcher/start.ts';
import { freePort } from '../../ops/local/ports.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { ClosingStack } from '../../shared/process/lifecycle.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { migrate } from '../../shared/queue/migrate.ts';
import {
  silentLog,
  startTestApi,
  type TestApi,
  testConfig,
  testEnvironment,
} from '../support/api.ts';
import { bareEnvironment, launcher } from '../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';

const otherSecret = Buffer.alloc(32, 7).toString('base64');
const often = { interval: 50, timeout: 15_000 };

/** Returns a log that collects its messages. */
function collectingLog() {
  const messages: string[] = [];
  const destination = { write: (line: string) => void messages.push(JSON.parse(line).msg) };
  return { messages, log: createLogger({ level: 'info', name: 'test', destination }) };
}

async function readiness(port: number): Promise<{ code: number; status: string } | undefined> {
  const reply = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
  return reply && { code: reply.status, ...JSON.parse(await reply.text()) };
}

/** Returns the status of the reply to a device that requests a WebSocket. */
async function statusOfUpgrade(port: number): Promise<number | undefined> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/1.1/channel`);
  const response: IncomingMessage = (await once(socket, 'unexpected-response'))[1];
  response.destroy();
  return response.statusCode;
}

describe('a CARILLON_SECRET that does not match the database', () => {
  let database: TestDatabase;
  let right: TestApi;
  let wrong: TestApi;
  let app: App;

  beforeAll(async () => {
    database = await createTestDatabase();
    right = await startTestApi({ databaseUrl: database.url });
    app = await right.createApp();
    wrong = await startTestApi({
      databaseUrl: database.url,
      env: { CARILLON_SECRET: otherSecret },
    });
  });
  afterAll(async () => {
    await wrong?.close();
    await right?.close();
    await database?.drop();
  });

  test('makes the api unready, with a hint', async () => {
    expect((await right.request('GET', '/readyz')).status).toBe(200);
    const { status, body } = await wrong.request('GET', '/readyz');
    expect(status).toBe(503);
    expect(body.status).toMatch(/^CARILLON_SECRET does not open what is in the database: /);
  });

  test('refuses calls with 503, without telling clients about secrets', async () => {
    const calls = [
      await wrong.request('GET', '/1.1/installations', { app, master: true }),
      await wrong.request('POST', '/1.1/push', {
        app,
        master: true,
        body: { data: { alert: 'x' } },
      }),
      await wrong.request('GET', '/console/api/apps', { admin: true }),
      await wrong.request('POST', '/console/api/apps', {
        admin: true,
        body: { name: 'Sealed wrongly' },
      }),
    ];
    for (const { status, body, headers } of calls) {
      expect(body).toEqual({
        code: 503,
        error: 'The service is not set up correctly: its operator finds the reason in its log.',
      });
      expect({ status, retry: headers.get('retry-after') }).toEqual({ status: 503, retry: '60' });
    }
  });

  test('is logged at the start', async () => {
    const { messages, log } = collectingLog();
    const config = testConfig(database.url, { CARILLON_SECRET: otherSecret });
    const { stack } = await startApi(config, log);
    await stack.close();
    expect(messages).toContainEqual(expect.stringMatching(/^CARILLON_SECRET does not open/));
  });

  test('keeps a dispatcher from taking jobs: it waits, unready, until it is stopped', async () => {
    const { messages, log } = collectingLog();
    const stack = new ClosingStack(silentLog);
    const port = await freePort();
    const env = { CARILLON_SECRET: otherSecret, METRICS_PORT: String(port) };
    const started = startDispatcher(testConfig(database.url, env), log, { stack });
    const ended = expect(started).rejects.toThrow();
    await expect
      .poll(() => readiness(port), often)
      .toMatchObject({
        code: 503,
        status: expect.stringMatching(/^CARILLON_SECRET does not open/),
      });
    expect(messages).toContainEqual(expect.stringMatching(/^CARILLON_SECRET does not open/));
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(503);
    await stack.close();
    await ended;
  });

  test('is detected while an api runs, and so is its correction', async () => {
    const other = await createTestDatabase();
    onTestFinished(() => other.drop());
    const api = await startTestApi({
      databaseUrl: other.url,
      env: { CARILLON_SECRET: otherSecret },
    });
    onTestFinished(() => api.close());
    expect((await api.request('GET', '/readyz')).status).toBe(200);
    const elsewhere = await startTestApi({ databaseUrl: other.url });
    onTestFinished(() => elsewhere.close());
    const sealedApp = await elsewhere.createApp();
    await expect.poll(async () => (await api.request('GET', '/readyz')).status, often).toBe(503);
    await elsewhere.request('DELETE', `/console/api/apps/${sealedApp.appId}`, {
      admin: true,
      body: { appId: sealedApp.appId },
    });
    await expect.poll(async () => (await api.request('GET', '/readyz')).status, often).toBe(200);
  });

  test('works in a list that contains the right key', async () => {
    const { secrets } = testConfig(database.url);
    const both = `${otherSecret},${secrets[0]?.toString('base64')}`;
    const api = await startTestApi({ databaseUrl: database.url, env: { CARILLON_SECRET: both } });
    onTestFinished(() => api.close());
    expect((await api.request('GET', '/readyz')).status).toBe(200);
    expect((await api.request('GET', '/1.1/installations', { app, master: true })).status).toBe(
      200,
    );
  });
});

describe('a database of another version', () => {
  test('makes api and dispatcher wait with a hint', async () => {
    const database = await createEmptyDatabase();
    onTestFinished(() => database.drop());
    const hint = 'The database is not migrated: run `carillon migrate`.';
    const api = collectingLog();
    const dispatcher = collectingLog();
    const port = await freePort();
    const config = testConfig(database.url, { METRICS_PORT: String(port) });
    const stack = new ClosingStack(silentLog);
    onTestFinished(() => stack.close());
    const starting = startApi(config, api.log, { stack });
    const dispatching = startDispatcher(config, dispatcher.log, { stack });
    await expect.poll(() => readiness(port), often).toEqual({ code: 503, status: hint });
    await expect.poll(() => api.messages, often).toContain(hint);
    expect(dispatcher.messages).toContain(hint);
    await migrate(database.url);
    const { port: apiPort } = await starting;
    await dispatching;
    expect(await readiness(apiPort)).toEqual({ code: 200, status: 'ready' });
    expect(await readiness(port)).toEqual({ code: 200, status: 'ready' });
    expect(api.messages).toContain('the database is fit to work on');
  });

  test('makes an api listen, unready, and refuse calls and devices for a while', async () => {
    const database = await createEmptyDatabase();
    onTestFinished(() => database.drop());
    const port = await freePort();
    const stack = new ClosingStack(silentLog);
    onTestFinished(() => stack.close());
    const starting = startApi(testConfig(database.url, { PORT: String(port) }), silentLog, {
      stack,
    });
    const hint = 'The database is not migrated: run `carillon migrate`.';
    await expect.poll(() => readiness(port), often).toEqual({ code: 503, status: hint });
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    const call = await fetch(`http://127.0.0.1:${port}/1.1/push`, { method: 'POST', body: '{}' });
    expect({
      status: call.status,
      retry: call.headers.get('retry-after'),
      body: await call.json(),
    }).toEqual({
      status: 503,
      retry: '5',
      body: { code: 503, error: 'The service is starting.' },
    });
    // A device that reconnects now is refused too. Without a reply, it would wait for its own
    // timeout.
    expect(await statusOfUpgrade(port)).toBe(503);
    await migrate(database.url);
    await starting;
    expect(await readiness(port)).toEqual({ code: 200, status: 'ready' });
  });

  test('makes running processes unready if a migration or queue is missing', async () => {
    const { db, api } = await startOnDatabase();
    const status = async () => (await api.request('GET', '/readyz')).body.status;
    await db.query(`UPDATE pgboss.queue SET name = 'plan-later' WHERE name = 'plan'`);
    await expect.poll(status, often).toMatch(/run `carillon migrate`/);
    await db.query(`UPDATE pgboss.queue SET name = 'plan' WHERE name = 'plan-later'`);
    await expect.poll(status, often).toBe('ready');
    await db.query('UPDATE pgboss.version SET version = version + 1');
    await expect
      .poll(status, often)
      .toMatch(/^The queue of the database is newer than this version/);
  });

  test('is shown as missing migrations in the metrics, without a readiness probe', async () => {
    const { db, api } = await startOnDatabase();
    const metrics = async () => (await fetch(`${api.url}/metrics`)).text();
    await expect.poll(metrics, often).toMatch(/^carillon_schema_pending 0$/m);
    await db.query(
      'DELETE FROM carillon_migration WHERE name = (SELECT max(name) FROM carillon_migration)',
    );
    await expect.poll(metrics, often).toMatch(/^carillon_schema_pending 1$/m);
  });

  test('of a newer version is accepted and logged', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const db = new Client({ connectionString: database.url });
    await db.connect();
    onTestFinished(() => db.end());
    await db.query(`INSERT INTO carillon_migration (name, run_on) VALUES ('9999_later', now())`);
    const stack = new ClosingStack(silentLog);
    onTestFinished(() => stack.close());
    const { messages, log } = collectingLog();
    const { port } = await startApi(testConfig(database.url), log, { stack });
    expect(await readiness(port)).toEqual({ code: 200, status: 'ready' });
    expect(messages).toContain(
      'the database has migrations of a newer version: this one works with it',
    );
  });

  test.each(['api', 'dispatcher'])(
    'keeps the process of the %s waiting until it is stopped, with exit code 0',
    async (name) => {
      const database = await createEmptyDatabase();
      onTestFinished(() => database.drop());
      const env = {
        ...testEnvironment(database.url),
        LOG_LEVEL: 'info',
        CARILLON_SECERT: 'SESAME',
      };
      const child = spawn(process.execPath, [launcher, name], {
        env: { ...bareEnvironment(), ...env },
      });
      const ended = once(child, 'exit');
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk.toString();
        });
      await expect.poll(() => output, often).toContain('run `carillon migrate`');
      expect(output).toContain(
        'CARILLON_SECERT is not a variable of Carillon: did you mean CARILLON_SECRET?',
      );
      expect(output).not.toContain('SESAME');
      child.kill('SIGTERM');
      expect((await ended)[0]).toBe(0);
    },
  );

  test('stops the wait of an api that is stopped', async () => {
    const database = await createEmptyDatabase();
    onTestFinished(() => database.drop());
    const stack = new ClosingStack(silentLog);
    const { messages, log } = collectingLog();
    const ended = expect(startApi(testConfig(database.url), log, { stack })).rejects.toThrow();
    await expect.poll(() => messages.length, often).toBeGreaterThan(0);
    await stack.close();
    await ended;
  });
});

test('a read-only server causes 503 until it accepts writes again', async () => {
  const { db, api } = await startOnDatabase();
  const app = await api.createApp();
  /** Makes new connections read-only or writable, and ends the old connections. */
  const setReadOnly = async (value: 'on' | 'off') => {
    await db.query(
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ${value}', current_database()); END $$`,
    );
    await db.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
  };
  const body = { deviceType: 'android', installationId: 'one' };
  const save = async () => {
    const { status, headers } = await api.request('POST', '/1.1/installations', {
      app,
      master: true,
      body,
    });
    return { status, retry: headers.get('retry-after') };
  };
  await setReadOnly('on');
  await expect.poll(save, often).toEqual({ status: 503, retry: '1' });
  await setReadOnly('off');
  await expect.poll(save, often).toEqual({ status: 201, retry: null });
});

/**
 * Starts an api on a new database, with a connection that can change the database. The end of the
 * test closes them.
 */
async function startOnDatabase() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const db = new Client({ connectionString: database.url });
  await db.connect();
  onTestFinished(() => db.end());
  const api = await startTestApi({ databaseUrl: database.url });
  onTestFinished(() => api.close());
  return { db, api };
}
