import { randomInt } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import type { Binaries } from '../../../ops/local/postgres/binaries.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../ops/local/postgres/server.ts';

/** Coordinator and two workers with Citus for one test file. */
export interface CitusServers {
  /** URL of a database that has the extension and the workers but no tables. */
  readonly databaseUrl: string;
  /** Kills all processes of the coordinator. Resolves when they have exited. */
  killCoordinator(): Promise<void>;
  /** Starts the killed coordinator again at the same address. */
  startCoordinator(): Promise<void>;
  close(): Promise<void>;
}

const count = 3;

/**
 * Starts servers with the programs of an existing server that has Citus. `installed` is the URL of
 * a superuser on it. Each server listens on its own loopback address, which Linux provides without
 * setup.
 */
export async function startCitusServers(installed: string): Promise<CitusServers> {
  const binaries = await readBinaries(installed);
  const folder = await mkdtemp(join(tmpdir(), 'carillon-citus-'));
  await chmod(folder, 0o755);
  const network = `127.${randomInt(1, 255)}.${randomInt(1, 255)}`;
  const addresses = Array.from({ length: count }, (_, i) => `${network}.${i + 1}`);
  const start = (i: number, socketDir?: string) =>
    startEmbeddedPostgres({
      dataDir: join(folder, `server-${i}`),
      binaries,
      memoryMb: 1024,
      durable: false,
      settings: settingsOf(addresses[i] ?? ''),
      ...(socketDir === undefined ? {} : { socketDir }),
    });
  const servers = await Promise.all(addresses.map((_, i) => start(i)));
  const [coordinator, ...workers] = servers as [EmbeddedPostgres, ...EmbeddedPostgres[]];
  let running = coordinator;
  const { socketDir, databaseUrl } = coordinator;
  await addNodes(servers, addresses);
  return {
    databaseUrl,
    async killCoordinator() {
      for (const pid of [running.pid, ...(await childrenOf(running.pid))]) kill(pid);
      await running.exited;
    },
    async startCoordinator() {
      running = await start(0, socketDir);
    },
    async close() {
      await Promise.all([running, ...workers].map((server) => server.stop('immediate')));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const settingsOf = (address: string): Record<string, string> => ({
  listen_addresses: address,
  shared_preload_libraries: 'citus',
  max_prepared_transactions: '200',
  max_worker_processes: '32',
  'citus.shard_count': '4',
  'citus.node_conninfo': 'sslmode=prefer',
  // A killed server keeps all confirmed changes. Only a crash of the machine loses them.
  synchronous_commit: 'on',
  // After a crash of the coordinator, prepared transactions keep their locks until the coordinator
  // recovers them.
  'citus.recover_2pc_interval': '2s',
});

async function addNodes(
  servers: readonly EmbeddedPostgres[],
  addresses: readonly string[],
): Promise<void> {
  for (const server of servers) await query(server.databaseUrl, 'CREATE EXTENSION citus');
  const [own, ...workers] = addresses;
  const url = servers[0]?.databaseUrl ?? '';
  await query(url, 'SELECT citus_set_coordinator_host($1, 5432)', [own]);
  for (const address of workers) await query(url, 'SELECT citus_add_node($1, 5432)', [address]);
}

async function query<T extends object>(
  connectionString: string,
  text: string,
  values: unknown[] = [],
): Promise<T[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<T>(text, values)).rows;
  } finally {
    await client.end();
  }
}

async function readBinaries(installed: string): Promise<Binaries> {
  const [found] = await query<{ folder: string; version: string }>(
    installed,
    `SELECT setting AS folder, current_setting('server_version') AS version FROM pg_config
      WHERE name = 'BINDIR'`,
  );
  if (!found) throw new Error('the server does not tell where its programs are');
  return { nativeDir: dirname(found.folder), version: found.version };
}

/**
 * Returns the child processes of a postmaster. They outlive the postmaster while they work for a
 * client.
 */
async function childrenOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.split(' ').filter(Boolean).map(Number);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Already exited.
  }
}
