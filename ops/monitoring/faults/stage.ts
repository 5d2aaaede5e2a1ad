import { execFile, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { Database } from '../../../shared/db/pool.ts';
import { dispatcherFlags } from '../../../shared/process/memory.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../local/postgres/server.ts';
import { createAccess, LocalService } from '../../local/service.ts';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../sandbox/apns/server.ts';

const createdApp = z.object({ appId: z.string(), appKey: z.string(), masterKey: z.string() });
/** App with a profile for the APNs gateway of the stage. */
export type StageApp = z.infer<typeof createdApp>;

/**
 * Service on this machine in which faults are caused: one api, one dispatcher, an APNs gateway, and
 * a database.
 */
export interface Stage {
  /** Folder for the files of a fault. */
  folder: string;
  url: string;
  db: Database;
  /** Database server and its data folder. */
  primary: { server: EmbeddedPostgres; dataDir: string };
  apns: ApnsGateway;
  targets: Record<string, string[]>;
  /** The service. Its dispatcher can stop and start again on the same port. */
  service: LocalService;
  createApp(options?: object): Promise<StageApp>;
  /** Adds devices to an app. */
  addDevices(app: StageApp, count: number): Promise<void>;
  /**
   * Calls the public API with the master key. Uses POST if there is a body. Resolves for any
   * status.
   */
  call(app: StageApp, path: string, body?: object): Promise<{ status: number; body: unknown }>;
  admin(method: string, path: string, body: object): Promise<unknown>;
  close(): Promise<void>;
}

/** Starts a stage that keeps its data in `folder`. */
export async function openStage(folder: string): Promise<Stage> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.reverse()) await closer().catch(() => undefined);
  };
  try {
    return { ...(await startAll(folder, closers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startAll(
  folder: string,
  closers: (() => Promise<unknown>)[],
): Promise<Omit<Stage, 'close'>> {
  const dataDir = join(folder, 'postgres');
  const server = await startEmbeddedPostgres({ dataDir, memoryMb: 1024, durable: false });
  closers.push(() => server.stop('immediate'));
  const db = new Database({
    url: server.databaseUrl,
    applicationName: 'faults',
    statementTimeoutMs: 0,
  });
  closers.push(() => db.close());
  const provider = await refusingProvider();
  closers.push(provider.close);
  const credentials = createApnsCredentials();
  const apns = await startApnsGateway({ keys: [credentials] });
  closers.push(() => apns.close());
  const access = await createAccess();
  const { host, port, metricsPort, publicUrl: url } = access;
  const env = {
    ...currentEnvironment(),
    LOG_LEVEL: currentEnvironment().LOG_LEVEL ?? 'fatal',
    SMS_WEBHOOK_URL: provider.url,
    DISPATCHER_THREADS: '1',
  };
  const { databaseUrl } = server;
  const service = new LocalService({
    ...access,
    dataDir: folder,
    databaseUrl,
    env,
    log: () => undefined,
  });
  closers.push(() => service.stop());
  await service.start();
  const { publicKey: _, ...own } = credentials;
  const profile = { auth: 'token', ...own, endpoint: apns.url, ca: apns.ca };
  const client = clientOf({ url, adminToken: access.adminToken, db, profile });
  const targets = {
    'carillon-api': [`${host}:${port}`],
    'carillon-dispatcher': [`${host}:${metricsPort}`],
  };
  const primary = { server, dataDir };
  return { folder, url, db, primary, apns, targets, service, ...client };
}

interface ClientOptions {
  url: string;
  adminToken: string;
  db: Database;
  profile: object;
}

function clientOf({ url, adminToken, db, profile }: ClientOptions) {
  const send = async (path: string, init: RequestInit) => {
    const reply = await fetch(`${url}${path}`, init);
    const text = await reply.text();
    return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  const admin = async (method: string, path: string, body: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
    const reply = await send(`/console/api${path}`, {
      method,
      headers,
      body: JSON.stringify(body),
    });
    if (reply.status > 299)
      throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return reply.body;
  };
  return {
    admin,
    async createApp(options: object = {}): Promise<StageApp> {
      const app = createdApp.parse(await admin('POST', '/apps', { name: 'Faults', options }));
      await admin('PUT', `/apps/${app.appId}/profiles/apns/_default`, profile);
      return app;
    },
    async addDevices(app: StageApp, count: number): Promise<void> {
      await db.query(
        `INSERT INTO installation (app_id, object_id, device_type, device_token, topic)
         SELECT $1, left(md5(random()::text || i), 24), 'ios',
           encode(sha256((random()::text || i)::bytea), 'hex'), 'com.example.app'
           FROM generate_series(1, $2::int) AS i`,
        [app.appId, count],
      );
    },
    call(app: StageApp, path: string, body?: object) {
      const key = `${app.masterKey},master`;
      const headers = { 'x-lc-id': app.appId, 'x-lc-key': key, 'content-type': 'application/json' };
      return send(
        path,
        body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) },
      );
    },
  };
}

/** Starts an SMS provider that refuses every message. */
async function refusingProvider(): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(400).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}

/**
 * Runs another dispatcher, `main`, instead of the stage's dispatcher while `work` runs. `prefix` is
 * a command that is put before Node. `work` starts when the dispatcher is ready and receives its
 * process id.
 */
export async function whileOtherRuns(
  { service, targets }: Stage,
  { main, prefix = [] }: { main: string; prefix?: string[] },
  work: (pid: number) => Promise<void>,
): Promise<void> {
  await service.stopDispatchers();
  const [file = '', ...args] = [...prefix, process.execPath, ...dispatcherFlags, main];
  const child = spawn(file, args, { env: service.environment, stdio: 'ignore' });
  const exited = new Promise((settle) => child.once('exit', settle));
  try {
    const isReady = () =>
      fetch(`http://${targets['carillon-dispatcher']?.[0]}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await isReady())) {
      if (child.exitCode !== null) throw new Error(`${main} ended with code ${child.exitCode}`);
      await sleep(200);
    }
    await work(child.pid ?? 0);
  } finally {
    child.kill('SIGTERM');
    await exited;
    await service.startDispatcher();
  }
}

const run = promisify(execFile);

/** Server to copy: its files, and a connection to the server. */
interface Source {
  dataDir: string;
  server: EmbeddedPostgres;
  db: Database;
}

/**
 * Writes the files of a streaming standby into the new folder `toDir`. Copies the files of a
 * running server in backup mode, because the embedded PostgreSQL has no pg_basebackup. Configures
 * the server as the source of the stream.
 */
export async function cloneServer({ dataDir, server, db }: Source, toDir: string): Promise<void> {
  const label = await db.withConnection(async (connection) => {
    await connection.query("SELECT pg_backup_start('standby', true)");
    await run('cp', ['-a', dataDir, toDir]);
    const { rows } = await connection.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(false)',
    );
    return rows[0]?.labelfile ?? '';
  });
  const source = `primary_conninfo = 'host=${server.socketDir} port=5432 user=carillon'`;
  // A shell writes the files as the owner of the folder, who runs the server.
  const script = [
    'set -e; cd "$1"; rm -f postmaster.pid',
    'printf "%s" "$2" > backup_label; printf "%s\\n" "$3" >> postgresql.auto.conf; touch standby.signal',
    'chown --reference=PG_VERSION backup_label postgresql.auto.conf standby.signal',
  ].join('\n');
  await run('sh', ['-c', script, 'sh', toDir, label, source]);
}

/** Fault and the alerts that it must fire. */
export interface Scene {
  alerts: readonly string[];
  /** Labels that identify the fault, for alerts that have these labels. */
  labels?: Readonly<Record<string, string>>;
  /** True if the fault disturbs no other fault. It then runs in parallel with the others. */
  isIndependent?: boolean;
  /** Causes the fault and keeps it until the signal aborts. Then undoes it. */
  run(stage: Stage, signal: AbortSignal): Promise<void>;
}

/** Resolves when the signal aborts. */
export const ended = (signal: AbortSignal): Promise<void> => sleep(2 ** 30, signal);

/** Repeats `work` with pauses until the signal aborts. */
export async function repeat(
  signal: AbortSignal,
  pauseMs: number,
  work: () => Promise<unknown>,
): Promise<void> {
  while (!signal.aborted) {
    await work();
    await sleep(pauseMs, signal);
  }
}
