import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentEnvironment, type Environment } from '../../../shared/config/config.ts';
import { Database } from '../../../shared/db/pool.ts';
import { createAccess, LocalService } from '../../local/service.ts';
import type { Supervised } from '../../local/supervised.ts';
import { bundleInBackground } from '../../package/bundle/background.ts';
import { type BenchGateway, startBenchGateway } from '../gateway/gateway.ts';
import type { Setup } from './arguments.ts';

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

async function startBench({ dataDir, log, setup, closers }: BenchStart): Promise<Bench> {
  const env = environmentOf(setup);
  const gateway = await startBenchGateway(env, log);
  closers.push(() => gateway.stop());
  const access = await createAccess();
  const { url: running } = setup.database ?? {};
  // A database that runs may have rows of earlier benchmarks, which the service has to decrypt.
  if (running !== undefined) access.secret = createHash('sha256').update(running).digest('base64');
  // As `npm start` does.
  const bundling = bundleInBackground(log);
  closers.push(() => bundling.stop());
  const options = { ...access, dataDir, databaseUrl: running, env, log };
  const service = new LocalService({ ...options, bundle: bundling.folder });
  await service.start();
  closers.push(() => service.stop());
  const others: Supervised[] = [];
  for (let i = 1; i < (setup.dispatchers ?? 1); i += 1)
    others.push(await service.startDispatcher({ METRICS_PORT: '0' }));
  const db = openDatabase(service.databaseUrl);
  closers.push(() => db.close());
  const pids = () => ({
    api: service.apiPid,
    dispatchers: [service.dispatcherPid, ...others.map(({ pid }) => pid)],
  });
  return { url: access.publicUrl, adminToken: access.adminToken, gateway, db, pids };
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
