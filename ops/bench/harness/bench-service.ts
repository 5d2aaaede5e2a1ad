import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentEnvironment, type Environment } from '../../../shared/config/config.ts';
import { Database } from '../../../shared/db/pool.ts';
import { dispatcherFlags } from '../../local/node-flags.ts';
import { choosePort } from '../../local/ports.ts';
import { LocalService } from '../../local/service.ts';
import { Supervised } from '../../local/supervised.ts';
import { type BenchGateway, startBenchGateway } from '../gateway/gateway.ts';
import type { Setup } from './arguments.ts';

const stopMs = 6000;

/** A service of its own for a benchmark, on a durable database in a temporary directory. */
export interface Bench {
  url: string;
  adminToken: string;
  gateway: BenchGateway;
  /** The database itself, for seeding and for looking closer than the api lets one. */
  db: Database;
  /** Processes by what they are. */
  pids(): { api: number | undefined; dispatchers: (number | undefined)[] };
}

/** Starts the service, does `work` with it, and leaves nothing behind. */
export async function withBench<T>(
  log: (line: string) => void,
  setup: Setup,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'));
  const open: (() => Promise<unknown>)[] = [];
  try {
    return await work(await startBench({ dataDir, log, setup, open }));
  } finally {
    for (const close of open.reverse()) await close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface BenchStart {
  dataDir: string;
  log: (line: string) => void;
  setup: Setup;
  /** Where whatever opens puts how it is closed. */
  open: (() => Promise<unknown>)[];
}

async function startBench({ dataDir, log, setup, open }: BenchStart): Promise<Bench> {
  const host = '127.0.0.1';
  const { threads, streams, gateway: kind } = setup;
  const env = {
    ...currentEnvironment(),
    LOG_LEVEL: 'warn',
    ...(threads === undefined ? {} : { DISPATCHER_THREADS: String(threads) }),
    ...(streams === undefined ? {} : { BENCH_STREAMS: String(streams) }),
    ...(kind === undefined ? {} : { BENCH_GATEWAY: kind }),
  };
  const gateway = await startBenchGateway(env, log);
  open.push(() => gateway.stop());
  const port = await choosePort({ asked: 0, usual: 0, host, variable: 'PORT' });
  const metricsPort = await choosePort({ asked: 0, usual: 0, host, variable: 'METRICS_PORT' });
  const adminToken = randomBytes(24).toString('base64url');
  const secret = randomBytes(32).toString('base64');
  const url = `http://${host}:${port}`;
  const service = new LocalService({
    dataDir,
    databaseUrl: undefined,
    host,
    port,
    publicUrl: url,
    metricsPort,
    adminToken,
    secret,
    env,
    log,
  });
  await service.start();
  open.push(() => service.stop());
  const further = {
    ...env,
    HOST: host,
    PUBLIC_URL: url,
    METRICS_PORT: '0',
    DATABASE_URL: service.databaseUrl,
    CARILLON_ADMIN_TOKEN: adminToken,
    CARILLON_SECRET: secret,
  };
  const others = await startOthers((setup.dispatchers ?? 1) - 1, { env: further, log, open });
  const db = new Database({ url: service.databaseUrl, applicationName: 'bench', statementTimeoutMs: 0 });
  open.push(() => db.close());
  const pids = () => ({
    api: service.apiPid,
    dispatchers: [service.dispatcherPid, ...others.map(({ pid }) => pid)],
  });
  return { url, adminToken, gateway, db, pids };
}

/** Further dispatchers on the same database. */
async function startOthers(
  count: number,
  { env, log, open }: Pick<BenchStart, 'log' | 'open'> & { env: Environment },
): Promise<Supervised[]> {
  const others: Supervised[] = [];
  for (let i = 0; i < count; i++) {
    const other = new Supervised({
      name: `dispatcher ${i + 2}`,
      file: 'dispatcher/main.ts',
      flags: dispatcherFlags,
      env,
      log,
    });
    open.push(() => other.stop(stopMs));
    await other.start();
    others.push(other);
  }
  return others;
}
