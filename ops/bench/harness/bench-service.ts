import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentEnvironment, type Environment } from '../../../shared/config/config.ts';
import { loopbackNetworks } from '../../../shared/config/private-hosts.ts';
import { Database } from '../../../shared/db/pool.ts';
import { dispatcherFlags, dispatcherMemory } from '../../../shared/process/memory.ts';
import { freePort } from '../../local/ports.ts';
import { LocalService } from '../../local/service.ts';
import { Supervised } from '../../local/supervised.ts';
import { bundleInBackground } from '../../package/bundle/background.ts';
import { type BenchGateway, startBenchGateway } from '../gateway/gateway.ts';
import type { Setup } from './arguments.ts';

const stopMs = 6000;

/** Name of the benchmark's connections in pg_stat_activity. */
export const benchName = 'bench';
/** They stay open, so that their processor time stays apart from that of the service. */
const connections = 10;

/** Separate service for a benchmark, on a durable database in a temporary directory. */
export interface Bench {
  url: string;
  adminToken: string;
  gateway: BenchGateway;
  /** Direct access to the database, for seeding and for details that the api does not return. */
  db: Database;
  /** Process ids by role. */
  pids(): { api: number | undefined; dispatchers: (number | undefined)[] };
}

/** Starts the service, runs `work` with it, and removes everything afterwards. */
export async function withBench<T>(
  log: (line: string) => void,
  setup: Setup,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'));
  const closers: (() => Promise<unknown>)[] = [];
  try {
    return await work(await startBench({ dataDir, log, setup, closers }));
  } finally {
    for (const close of closers.reverse()) await close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface BenchStart {
  dataDir: string;
  log: (line: string) => void;
  setup: Setup;
  /** Functions that close the opened resources, in order of opening. */
  closers: (() => Promise<unknown>)[];
}

const host = '127.0.0.1';

async function startBench({ dataDir, log, setup, closers }: BenchStart): Promise<Bench> {
  const env = environmentOf(setup);
  const gateway = await startBenchGateway(env, log);
  closers.push(() => gateway.stop());
  const port = await freePort();
  const metricsPort = await freePort();
  const adminToken = randomBytes(24).toString('base64url');
  const { url: running } = setup.database ?? {};
  // A database that runs may have rows of earlier benchmarks, which the service has to decrypt.
  const secret = (
    running === undefined ? randomBytes(32) : createHash('sha256').update(running).digest()
  ).toString('base64');
  const url = `http://${host}:${port}`;
  const access = { host, port, publicUrl: url, metricsPort, adminToken, secret };
  // As `npm start` does.
  const bundling = bundleInBackground(log);
  closers.push(() => bundling.stop());
  const options = { ...access, dataDir, databaseUrl: setup.database?.url, env, log };
  const service = new LocalService({ ...options, bundle: bundling.folder });
  await service.start();
  closers.push(() => service.stop());
  const { databaseUrl } = service;
  const ofDispatcher = {
    ...env,
    HOST: host,
    PUBLIC_URL: url,
    METRICS_PORT: '0',
    DATABASE_URL: databaseUrl,
    CARILLON_ADMIN_TOKEN: adminToken,
    CARILLON_SECRET: secret,
    CARILLON_PRIVATE_HOSTS: loopbackNetworks,
  };
  const others = await startDispatchers((setup.dispatchers ?? 1) - 1, {
    env: ofDispatcher,
    bundle: await bundling.folder,
    log,
    closers,
  });
  const db = openDatabase(databaseUrl);
  closers.push(() => db.close());
  const pids = () => ({
    api: service.apiPid,
    dispatchers: [service.dispatcherPid, ...others.map(({ pid }) => pid)],
  });
  return { url, adminToken, gateway, db, pids };
}

const openDatabase = (url: string): Database =>
  new Database({
    url,
    applicationName: benchName,
    statementTimeoutMs: 0,
    maxConnections: connections,
    minConnections: connections,
  });

function environmentOf({ threads, streams, gateway, database, logLevel }: Setup): Environment {
  return {
    ...currentEnvironment(),
    LOG_LEVEL: logLevel ?? 'warn',
    ...(threads === undefined ? {} : { DISPATCHER_THREADS: String(threads) }),
    ...(streams === undefined ? {} : { BENCH_STREAMS: String(streams) }),
    ...(gateway === undefined ? {} : { BENCH_GATEWAY: gateway }),
    ...(database?.readUrl === undefined ? {} : { DATABASE_READ_URL: database.readUrl }),
  };
}

/** Starts additional dispatchers on the same database. */
async function startDispatchers(
  count: number,
  {
    env,
    bundle,
    log,
    closers,
  }: Pick<BenchStart, 'log' | 'closers'> & {
    env: Environment;
    bundle: URL | undefined;
  },
): Promise<Supervised[]> {
  const others: Supervised[] = [];
  for (let i = 0; i < count; i++) {
    const other = new Supervised({
      name: `dispatcher ${i + 2}`,
      file: 'dispatcher/main.ts',
      bundle,
      flags: dispatcherFlags,
      env: { ...dispatcherMemory, ...env },
      log,
    });
    closers.push(() => other.stop(stopMs));
    await other.start();
    others.push(other);
  }
  return others;
}
