import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { Database } from '../../../shared/db/pool.ts';
import { type BenchGateway, startBenchGateway } from '../../bench/gateway/gateway.ts';
import { type Bench, writeInstallations } from '../../bench/harness/bench-service.ts';
import {
  type BenchApp,
  createApp,
  push,
  pushAndWait,
  untilDone,
} from '../../bench/harness/client.ts';
import { createAccess, LocalService } from '../../local/service.ts';
import { newestPostgres, Processes, until } from '../processes.ts';

// `npm run check-pgbackrest`: backs up a PostgreSQL with pgBackRest and restores it to a time in
// the middle of a push that had continued. Checks that nothing is sent twice. Exits with 0 if the
// packages are not installed.

const devices = 50_000;
const _host = '127.0.0.1';
const env = {
  ...currentEnvironment(),
  LOG_LEVEL: currentEnvironment().LOG_LEVEL ?? 'error',
  DISPATCHER_THREADS: '1',
};
const secrets = {
  adminToken: randomBytes(24).toString('base64url'),
  secret: randomBytes(32).toString('base64'),
};

function demand(condition: boolean, text: string): void {
  if (!condition) throw new Error(`not so: ${text}`);
  console.log(`ok  ${text}`);
}

/** Runs an api and a dispatcher on the server while `work` runs. */
async function withService<T>(
  server: BackedUpServer,
  gateway: BenchGateway,
  work: (bench: Bench) => Promise<T>,
) {
  const access = { ...(await createAccess()), ...secrets };
  const { databaseUrl } = server;
  const service = new LocalService({
    ...access,
    dataDir: tmpdir(),
    databaseUrl,
    env,
    log: () => undefined,
  });
  await service.start();
  const db = new Database({ url: databaseUrl, applicationName: 'check', statementTimeoutMs: 0 });
  try {
    const pids = () => ({ api: service.apiPid, dispatchers: [service.dispatcherPid] });
    return await work({ url: access.publicUrl, adminToken: secrets.adminToken, gateway, db, pids });
  } finally {
    await db.close();
    await service.stop();
  }
}

/** Time in the middle of a push. The push then continued to its end. */
interface Middle {
  app: BenchApp;
  objectId: string;
  time: string;
}

async function sendAndBackUp(bench: Bench, server: BackedUpServer): Promise<Middle> {
  const app = await createApp(bench);
  await writeInstallations(bench, app.appId, devices);
  await server.pgbackrest('--type=full', 'backup');
  await pushAndWait(bench, app, { where: { badge: 1 } });
  await server.pgbackrest('--type=incr', 'backup');
  const info = await server.pgbackrest('info');
  demand(
    /full backup[\s\S]*incr backup/.test(info),
    'a full and an incremental backup are in the repository',
  );
  await bench.gateway.forget();
  const objectId = await push(bench, app, {});
  while ((await bench.gateway.observe()).total < devices / 10) await sleep(10);
  const { rows } = await bench.db.query<{ time: string }>('SELECT clock_timestamp()::text AS time');
  const { total } = await bench.gateway.observe();
  demand(
    total < devices,
    `the time to restore is taken during the push, after ${total} of ${devices} requests`,
  );
  await untilDone(bench, app, objectId);
  return { app, objectId, time: rows[0]?.time ?? '' };
}

const report = z.object({ held: z.object({ pushes: z.number() }) });

/** Runs `carillon restore --as-of`, which pauses the pushes that may already have been sent. */
async function pauseRestored(
  { databaseUrl }: BackedUpServer,
  time: string,
): Promise<z.infer<typeof report>> {
  const carillon = resolve(import.meta.dirname, '../../cli/carillon.mjs');
  const asOf = new Date(time.replace(' ', 'T').replace(/\+00$/, 'Z')).toISOString();
  const variables = { ...env, DATABASE_URL: databaseUrl, CARILLON_SECRET: secrets.secret };
  const args = [carillon, '--json', 'restore', '--as-of', asOf];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: variables });
  return report.parse(JSON.parse(stdout));
}

/** Checks that the restored service works and sends nothing of the open push. */
async function demandSilence(bench: Bench, { app, objectId }: Middle): Promise<void> {
  await bench.gateway.forget();
  await pushAndWait(bench, app, { where: { badge: 1 } });
  const { rows } = await bench.db.query<{ state: string }>(
    'SELECT state FROM notification WHERE app_id = $1 AND object_id = $2',
    [app.appId, objectId],
  );
  demand(rows[0]?.state === 'paused', 'the push that was open at that time is paused');
  const { total } = await bench.gateway.observe();
  demand(total === 1, 'a new push is sent, and nothing of the old one');
}

async function check(server: BackedUpServer, gateway: BenchGateway): Promise<void> {
  await server.create();
  const middle = await withService(server, gateway, (bench) => sendAndBackUp(bench, server));
  const { distinct, repeats } = await gateway.observe();
  demand(
    distinct === devices && repeats === 0,
    `the push went on: ${distinct} devices, ${repeats} twice`,
  );
  await server.stop();
  await server.pgbackrest(
    '--delta',
    '--type=time',
    `--target=${middle.time}`,
    '--target-action=promote',
    'restore',
  );
  await server.start();
  const { held } = await pauseRestored(server, middle.time);
  demand(held.pushes === 1, '`carillon restore --as-of` holds the push');
  await withService(server, gateway, (bench) => demandSilence(bench, middle));
}

/** Returns the programs that are not installed. */
function missingPrograms(): string[] {
  const programs = {
    pgbackrest: '/usr/bin/pgbackrest',
    postgresql: join(newestPostgres(), 'postgres'),
  };
  return Object.entries(programs).flatMap(([name, path]) => (existsSync(path) ? [] : [name]));
}

/**
 * PostgreSQL from Debian's package with the files of this folder, and a pgBackRest repository next
 * to it.
 */
class BackedUpServer {
  readonly #folder: string;
  readonly #processes: Processes;
  readonly #address = `127.${randomInt(16, 255)}.${randomInt(1, 255)}.1`;
  readonly #password = randomBytes(12).toString('hex');

  constructor(folder: string) {
    this.#folder = folder;
    this.#processes = new Processes(folder);
  }

  get databaseUrl(): string {
    return `postgresql://carillon:${this.#password}@${this.#address}:5432/carillon`;
  }

  /** Creates the data, starts the server and creates the stanza. */
  async create(): Promise<void> {
    await this.#processes.makeFolder();
    const initdb = join(newestPostgres(), 'initdb');
    await this.#processes.execute([
      initdb,
      '-D',
      'data',
      '-E',
      'UTF8',
      '--auth-local=trust',
      '--auth-host=scram-sha-256',
    ]);
    await this.#writeFiles();
    await this.start();
    await this.#sql('postgres', `CREATE ROLE carillon LOGIN PASSWORD '${this.#password}'`);
    // Needed only for creating the benchmark's data.
    await this.#sql('postgres', 'GRANT pg_checkpoint TO carillon');
    await this.#sql('postgres', 'CREATE DATABASE carillon OWNER carillon');
    await this.pgbackrest('stanza-create');
    await this.pgbackrest('check');
  }

  /**
   * Starts the server. Resolves when the server accepts writes. After a restore, this is at the end
   * of the recovery.
   */
  async start(): Promise<void> {
    const postgres = [
      join(newestPostgres(), 'postgres'),
      '-D',
      'data',
      '-c',
      `config_file=${join(this.#folder, 'server.conf')}`,
    ];
    await this.#processes.run('postgres', postgres, { variables: this.#variables });
    await until(
      'server that writes',
      async () => (await this.#sql('postgres', 'SELECT pg_is_in_recovery()')) === false,
    );
  }

  stop(): Promise<void> {
    return this.#processes.stop('postgres', 'SIGINT');
  }

  pgbackrest(...args: string[]): Promise<string> {
    return this.#processes.execute(['pgbackrest', '--stanza=carillon', ...args], this.#variables);
  }

  close(): Promise<void> {
    return this.#processes.close();
  }

  get #variables(): Record<string, string> {
    return { PGBACKREST_CONFIG: join(this.#folder, 'pgbackrest.conf') };
  }

  /** Writes the configuration files of this folder with the paths of this machine. */
  async #writeFiles(): Promise<void> {
    const own = await readFile(join(import.meta.dirname, 'pgbackrest.conf'), 'utf8');
    const paths = { 'repo1-path': 'repository', 'pg1-path': 'data', 'pg1-socket-path': '' };
    const placed = Object.entries(paths).reduce(
      (text, [name, path]) =>
        text.replace(new RegExp(`^${name}=.*`, 'm'), `${name}=${join(this.#folder, path)}`),
      own,
    );
    const logs = `log-path=${this.#folder}\nlock-path=${this.#folder}/lock\nspool-path=${this.#folder}/spool`;
    await writeFile(
      join(this.#folder, 'pgbackrest.conf'),
      placed.replace('[global]', `[global]\n${logs}`),
    );
    const settings = await readFile(join(import.meta.dirname, 'postgresql.conf'), 'utf8');
    const place = `listen_addresses = '${this.#address}'\nport = 5432\nunix_socket_directories = '${this.#folder}'\n`;
    const initial = `include '${join(this.#folder, 'data/postgresql.conf')}'
`;
    await writeFile(join(this.#folder, 'server.conf'), `${initial}${settings}${place}`);
  }

  /** Runs a statement as the superuser. Returns the first value. */
  async #sql(database: string, text: string): Promise<unknown> {
    const client = new Client({ host: this.#folder, user: 'postgres', database });
    client.on('error', () => undefined);
    await client.connect();
    try {
      const { rows } = await client.query({ text, rowMode: 'array' });
      return rows[0]?.[0];
    } finally {
      await client.end();
    }
  }
}

const missing = missingPrograms();
if (missing.length > 0) {
  console.log(`pgBackRest is not checked: ${missing.join(' and ')} cannot be found.`);
} else {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-pgbackrest-'));
  await chmod(folder, 0o755);
  const server = new BackedUpServer(join(folder, 'server'));
  const gateway = await startBenchGateway(env, () => undefined);
  try {
    await check(server, gateway);
    console.log('nothing is sent twice after a restore');
  } finally {
    await gateway.stop();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}
