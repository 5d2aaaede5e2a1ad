import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { currentEnvironment, type Environment } from '../../shared/config.ts';
import { Database } from '../../shared/db/pool.ts';
import { choosePort } from '../local/ports.ts';
import { LocalService, type Sandbox } from '../local/service.ts';
import { Supervised } from '../local/supervised.ts';

const pollMs = 20;
const stopMs = 6000;

const record = z.object({
  status: z.string(),
  devices: z.number(),
  successes: z.number(),
  createdAt: z.iso.datetime(),
});

/** A service of its own for a benchmark, on a durable database in a temporary directory. */
export interface Bench {
  url: string;
  metricsUrl: string;
  adminToken: string;
  service: LocalService;
  sandbox: Sandbox;
}

/** What a benchmark may turn. */
export interface BenchSettings {
  threads?: number;
  /** Dispatcher processes; one when absent. */
  dispatchers?: number;
}

/** Starts the service, does `work` with it, and leaves nothing behind. */
export async function withBench<T>(
  log: (line: string) => void,
  settings: BenchSettings,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'));
  const started: { stop(): Promise<void> }[] = [];
  try {
    const { bench, env } = await startBench(dataDir, log, settings);
    started.push(bench.service);
    for (let i = 1; i < (settings.dispatchers ?? 1); i++) {
      const further = new Supervised({ name: `dispatcher ${i + 1}`, file: 'dispatcher/main.ts', env, log });
      started.push({ stop: () => further.stop(stopMs) });
      await further.start();
    }
    return await work(bench);
  } finally {
    for (const one of started.reverse()) await one.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function startBench(
  dataDir: string,
  log: (line: string) => void,
  { threads }: BenchSettings,
): Promise<{ bench: Bench; env: Environment }> {
  const host = '127.0.0.1';
  const port = await choosePort({ asked: 0, usual: 0, host, variable: 'PORT' });
  const metricsPort = await choosePort({ asked: 0, usual: 0, host, variable: 'METRICS_PORT' });
  const adminToken = randomBytes(24).toString('base64url');
  const secret = randomBytes(32).toString('base64');
  const env = {
    ...currentEnvironment(),
    LOG_LEVEL: 'warn',
    ...(threads === undefined ? {} : { DISPATCHER_THREADS: String(threads) }),
  };
  let sandbox: Sandbox | undefined;
  const service = new LocalService({
    dataDir,
    databaseUrl: undefined,
    host,
    port,
    publicUrl: `http://${host}:${port}`,
    metricsPort,
    adminToken,
    secret,
    env,
    log,
    onSandbox: (started) => {
      sandbox = started;
    },
  });
  await service.start();
  if (!sandbox) throw new Error('the sandbox gateways did not start');
  const url = `http://${host}:${port}`;
  const metricsUrl = `http://${host}:${metricsPort}`;
  return {
    bench: { url, metricsUrl, adminToken, service, sandbox },
    // What a further dispatcher on the same database needs.
    env: {
      ...env,
      HOST: host,
      PUBLIC_URL: url,
      METRICS_PORT: '0',
      DATABASE_URL: service.databaseUrl,
      CARILLON_ADMIN_TOKEN: adminToken,
      CARILLON_SECRET: secret,
    },
  };
}

const createdApp = z.object({ appId: z.string(), masterKey: z.string() });
export type BenchApp = z.infer<typeof createdApp>;

/** One HTTP call whose answer is checked; throws with the body when it is refused. */
export async function call<T>(url: string, init: RequestInit, shape: z.ZodType<T>): Promise<T> {
  const response = await fetch(url, init);
  const body = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${body}`);
  return shape.parse(JSON.parse(body));
}

/** An app with a profile for the sandbox APNs. */
export async function createApp({ url, adminToken, sandbox }: Bench): Promise<BenchApp> {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const app = await call(
    `${url}/console/api/apps`,
    {
      method: 'POST',
      headers,
      body: JSON.stringify({ name: 'Benchmark', options: { pushCallsPerMinute: 9600 } }),
    },
    createdApp,
  );
  const { url: endpoint, ca, teamId, keyId, privateKey, topics } = sandbox.apns;
  const profile = { auth: 'token', teamId, keyId, privateKey, topics, endpoint, ca };
  await call(
    `${url}/console/api/apps/${app.appId}/profiles/apns/_default`,
    { method: 'PUT', headers, body: JSON.stringify(profile) },
    z.unknown(),
  );
  return app;
}

/** Straight into the table: what is measured is sending, not registering. One device has badge 1. */
export async function writeInstallations(
  { service, sandbox }: Bench,
  appId: string,
  count: number,
): Promise<void> {
  const db = new Database({ url: service.databaseUrl, applicationName: 'bench', statementTimeoutMs: 0 });
  try {
    await db.query(
      `INSERT INTO installation (app_id, object_id, device_type, device_token, topic, badge)
       SELECT $1, lpad(to_hex(i), 24, '0'), 'ios', encode(sha256(i::text::bytea), 'hex'), $3,
              CASE WHEN i = 1 THEN 1 END
         FROM generate_series(1, $2::int) AS i`,
      [appId, count, sandbox.apns.topics[0]],
    );
    await db.query('VACUUM ANALYZE installation');
  } finally {
    await db.close();
  }
}

/** Sends a push and waits until its record is done; seconds from the answer to that. */
export async function pushAndWait(
  bench: Bench,
  app: BenchApp,
  body: object,
): Promise<{ seconds: number; successes: number }> {
  const headers = {
    'x-lc-id': app.appId,
    'x-lc-key': `${app.masterKey},master`,
    'content-type': 'application/json',
  };
  const { objectId } = await call(
    `${bench.url}/1.1/push`,
    { method: 'POST', headers, body: JSON.stringify({ data: { alert: 'Benchmark' }, ...body }) },
    z.object({ objectId: z.string() }),
  );
  const answeredAtMs = performance.now();
  for (;;) {
    const state = await call(`${bench.url}/1.1/tables/Notifications/${objectId}`, { headers }, record);
    if (state.status === 'done')
      return { seconds: (performance.now() - answeredAtMs) / 1000, successes: state.successes };
    if (state.status !== 'in-queue') throw new Error(`the push ended as ${state.status}`);
    await sleep(pollMs);
  }
}

/** CPU seconds that a process has used, from its own metrics. */
export async function cpuSeconds(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const match = /^process_cpu_seconds_total (\S+)/m.exec(text);
  return Number(match?.[1] ?? Number.NaN);
}
