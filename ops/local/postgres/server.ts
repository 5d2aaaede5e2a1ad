import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { isDoneWithin } from '../../../shared/clock.ts';
import { say } from '../../cli/language.ts';
import { type Binaries, locateBinaries, programEnv, programPath } from './binaries.ts';
import {
  alreadyRunning,
  ensureCluster,
  makeSocketDir,
  readOwner,
  recordSocketDir,
  refuseLiveServer,
  resolveDataDir,
} from './data-directory.ts';
import { asIdentity, chooseLaunchPlan, type LaunchPlan } from './identity.ts';

const MEGABYTE = 1024 * 1024;

/**
 * Returns the memory that this process may use, in megabytes: the machine's memory or the
 * container's limit.
 */
function availableMemoryMb(): number {
  const limitBytes = process.constrainedMemory();
  // Both 0 and extremely large numbers mean that there is no limit.
  const usableBytes = limitBytes > 0 ? Math.min(limitBytes, totalmem()) : totalmem();
  return Math.floor(usableBytes / MEGABYTE);
}

/** Number of freed bytes that a connection may keep instead of returning them to the kernel. */
const maxKeptBytes = String(16 * MEGABYTE);

/**
 * Environment variables that configure glibc for the server. By default, each statement that reads
 * a batch of a push returns its memory to the kernel at its end. The kernel then has to map and
 * clear memory again for the next statement. With these values a connection keeps up to the memory
 * of its largest statement (operate/sizing.md#postgresql-on-linux).
 */
export const serverVariables: Readonly<Record<string, string>> = {
  MALLOC_TRIM_THRESHOLD_: maxKeptBytes,
  MALLOC_MMAP_THRESHOLD_: maxKeptBytes,
};

/**
 * Returns the server's settings for `memoryMb`.
 *
 * @param durable true: a commit is on disk before the server confirms it. Accepted pushes need
 *   this. False is for tests
 */
function serverSettings(memoryMb: number, durable: boolean): Record<string, string> {
  const settings: Record<string, string> = {
    // No TCP port, because the binaries get security fixes late. Only the server's user and root
    // can enter the folder of the socket.
    listen_addresses: '',
    port: '5432',
    // Tests run many dispatchers on one server.
    max_connections: durable ? '200' : '400',
    shared_buffers: megabytes(memoryMb / 8, 32, 1024),
    effective_cache_size: megabytes(memoryMb / 2, 64, 1024 * 1024),
    maintenance_work_mem: megabytes(memoryMb / 32, 32, 512),
    work_mem: megabytes(memoryMb / 256, 4, 32),
    max_wal_size: megabytes(memoryMb / 4, 512, 4096),
    min_wal_size: megabytes(memoryMb / 32, 80, 512),
    checkpoint_completion_target: '0.9',
    wal_compression: 'on',
    // Needed for a hot standby.
    wal_level: 'replica',
    max_wal_senders: '10',
    // Tuned for solid-state disks and many short statements. JIT compilation of short statements
    // costs more than it saves.
    random_page_cost: '1.1',
    jit: 'off',
    // Autovacuum runs often, because all rows of queue tables change within minutes.
    autovacuum_naptime: '15s',
    autovacuum_vacuum_cost_limit: '2000',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_line_prefix: '',
    synchronous_commit: 'on',
  };
  if (!durable)
    Object.assign(settings, { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' });
  return settings;
}

function megabytes(value: number, minimum: number, maximum: number): string {
  return `${Math.round(Math.min(Math.max(value, minimum), maximum))}MB`;
}

const READY_POLL_MS = 15;
/**
 * Maximum time of a start. Crash recovery replays all changes since the last checkpoint, which
 * takes minutes on a slow disk.
 */
const READY_TIMEOUT_MS = 10 * 60_000;
const FAST_STOP_MS = 8_000;
const IMMEDIATE_STOP_MS = 6_000;
const LEFTOVER_TIMEOUT_MS = 10_000;
const SIGNALS = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

/** Exit code or signal of a server that has exited. */
interface PostgresExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Running embedded server. */
export interface EmbeddedPostgres {
  /** Folder (mode 700) of the socket `.s.PGSQL.5432`. There is no TCP port. */
  readonly socketDir: string;
  /**
   * URL of the database `carillon`, in the form that `pg` uses for sockets. The user is a superuser
   * without a password.
   */
  readonly databaseUrl: string;
  /** Process id of the postmaster. */
  readonly pid: number;
  /** Resolves when the server has exited for any reason. Never rejects. */
  readonly exited: Promise<PostgresExit>;
  /** Returns the URL of another database on the same server. */
  urlFor(database: string): string;
  /**
   * Stops the server and resolves when it has exited. It may be called repeatedly.
   *
   * - `smart` waits until all clients have disconnected.
   * - `fast` (the default) rolls back open transactions. It becomes `immediate` after 8 s.
   * - `immediate` leaves the recovery to the next start.
   */
  stop(mode?: 'smart' | 'fast' | 'immediate'): Promise<void>;
}

/** Options of `startEmbeddedPostgres`. */
interface EmbeddedPostgresOptions {
  /** Data directory. The first start creates it. */
  readonly dataDir: string;
  /**
   * Memory from which the settings are derived. By default, the memory of the machine or the
   * container.
   */
  readonly memoryMb?: number;
  /** False in tests: commits may be lost after a crash. Default true. */
  readonly durable?: boolean;
  /** Server settings that override the defaults, by name. Used by tests. */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * Folder of the socket. By default, a new folder. A restart passes the previous folder, so that
   * clients can reconnect.
   */
  readonly socketDir?: string;
  /**
   * Programs of another PostgreSQL, for tests that need its extensions. By default, the programs of
   * the installed package.
   */
  readonly binaries?: Binaries;
  /** Receives each line of the server's log and of our own messages. */
  readonly log?: (line: string) => void;
}

/**
 * Starts PostgreSQL from the installed package on a data directory and waits until it accepts
 * connections. If this process is root, the server runs as an unprivileged user. The server stops
 * when the calling thread ends for any reason. The server has its own session, so Ctrl-C in a
 * terminal reaches only the caller. The caller then calls `stop`.
 *
 * @throws Error with a message for the operator: the data is in use, there is no user to run as,
 *   the files have another version, …
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const log = options.log ?? (() => undefined);
  const durable = options.durable ?? true;
  const dataDir = await resolveDataDir(options.dataDir);
  await refuseLiveServer(dataDir);
  const binaries = options.binaries ?? (await locateBinaries(`${dataDir}.lib`));
  const plan = await chooseLaunchPlan(binaries, dataDir, log);
  await ensureCluster(plan, durable);
  const fitted = serverSettings(options.memoryMb ?? availableMemoryMb(), durable);
  const settings = { ...fitted, ...options.settings };
  const startedAtMs = performance.now();
  for (;;) {
    const socketDir = await makeSocketDir(plan, options.socketDir);
    const server = await launch(plan, { ...settings, unix_socket_directories: socketDir }, log);
    try {
      await becomeReady(server, socketDir);
      await recordSocketDir(plan.dataDir, socketDir);
      log(`PostgreSQL ${binaries.version} runs ${plan.identity.name}, process ${server.pid}`);
      return asEmbeddedPostgres(server, socketDir);
    } catch (error) {
      await end(server, 'immediate');
      await rm(socketDir, { recursive: true, force: true });
      // The backend processes of a killed server need a moment to exit.
      const isLeftover = server.lastLines.some((line) =>
        line.includes('pre-existing shared memory block'),
      );
      if (!isLeftover || performance.now() - startedAtMs > LEFTOVER_TIMEOUT_MS) {
        throw await explain(error, server, plan.dataDir);
      }
      await sleep(200);
    }
  }
}

/** Process of an `EmbeddedPostgres`. */
interface ServerProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly exited: Promise<PostgresExit>;
  readonly lastLines: string[];
}

async function launch(
  plan: LaunchPlan,
  settings: Record<string, string>,
  log: (line: string) => void,
): Promise<ServerProcess> {
  const guard = await guardPrefix();
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const postgres = [programPath(plan.binaries, 'postgres'), '-D', plan.dataDir, ...flags];
  const command = asIdentity(plan.identity, [...(guard ?? []), ...postgres]);
  const child = spawn(command.file, command.args, {
    ...command.ids,
    env: { ...programEnv(plan.binaries), ...serverVariables },
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise<PostgresExit>((settle, reject) => {
    child.once('exit', (code, signal) => settle({ code, signal }));
    child.once('error', reject);
  });
  const { pid } = child;
  if (pid === undefined) {
    const cause = await exited.catch((error: unknown) => error);
    throw new Error(say('PostgreSQL could not be started with {file}.', { file: command.file }), {
      cause,
    });
  }
  const lastLines: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    // Our own connection attempts in `becomeReady` cause these lines.
    if (/^FATAL: {2}the database system is (starting up|not yet accepting connections)/.test(line))
      return;
    lastLines.push(line);
    if (lastLines.length > 20) lastLines.shift();
    log(line);
  });
  if (guard === undefined) startWatchdog(pid, exited, command.ids);
  return { pid, child, exited, lastLines };
}

/** Waits for the first connection. Then creates the database `carillon` if it is missing. */
async function becomeReady(server: ServerProcess, socketDir: string): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  const hasEnded = { value: false };
  void server.exited.then(() => {
    hasEnded.value = true;
  });
  for (;;) {
    const client = new Client({
      connectionString: databaseUrl(socketDir, 'postgres'),
      connectionTimeoutMillis: 5_000,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const found = await client.query("SELECT 1 FROM pg_database WHERE datname = 'carillon'");
      if (found.rowCount === 0) await client.query('CREATE DATABASE carillon');
      return;
    } catch (error) {
      // The server does not listen yet, or is still recovering.
      if (hasEnded.value || performance.now() > deadlineMs) throw error;
    } finally {
      await client.end().catch(() => undefined);
    }
    await sleep(READY_POLL_MS);
  }
}

function asEmbeddedPostgres(server: ServerProcess, socketDir: string): EmbeddedPostgres {
  const exited = server.exited.then(async (exit) => {
    await rm(socketDir, { recursive: true, force: true }).catch(() => undefined);
    return exit;
  });
  return {
    socketDir,
    databaseUrl: databaseUrl(socketDir, 'carillon'),
    pid: server.pid,
    exited,
    urlFor: (database) => databaseUrl(socketDir, database),
    stop: async (mode = 'fast') => {
      await end(server, mode);
      await exited;
    },
  };
}

async function end(server: ServerProcess, mode: keyof typeof SIGNALS): Promise<void> {
  const { exited } = server;
  if (server.child.exitCode === null && server.child.signalCode === null)
    server.child.kill(SIGNALS[mode]);
  if (mode === 'smart') await exited;
  if (mode === 'fast' && !(await isDoneWithin(exited, FAST_STOP_MS))) server.child.kill('SIGQUIT');
  if (!(await isDoneWithin(exited, IMMEDIATE_STOP_MS))) server.child.kill('SIGKILL');
  await exited;
}

async function explain(error: unknown, server: ServerProcess, dataDir: string): Promise<Error> {
  if (server.lastLines.some((line) => line.includes('"postmaster.pid" already exists'))) {
    return alreadyRunning(dataDir, (await readOwner(dataDir))?.pid);
  }
  const output = server.lastLines.length > 0 ? ` Its output:\n${server.lastLines.join('\n')}` : '';
  return new Error(`${say('PostgreSQL did not start on {dataDir}.', { dataDir })}${output}`, {
    cause: error,
  });
}

function databaseUrl(socketDir: string, database: string): string {
  const host = encodeURIComponent(socketDir).replaceAll('%2F', '/');
  // The port is explicit, because a PGPORT in the environment would override the default.
  return `postgresql://carillon@/${encodeURIComponent(database)}?host=${host}&port=5432`;
}

const run = promisify(execFile);

/**
 * Returns a command prefix with which the kernel interrupts the server when its parent exits for
 * any reason. The prefix must come after the change of user, because a change of user clears this
 * setting. Returns undefined if the command is missing (macOS).
 */
export async function guardPrefix(): Promise<string[] | undefined> {
  if (process.platform !== 'linux') return undefined;
  const prefix = ['setpriv', '--pdeathsig', 'INT', '--'];
  return run('setpriv', [...prefix.slice(1), 'true']).then(
    () => prefix,
    () => undefined,
  );
}

/**
 * Interrupts the server without help of the kernel when this process exits. A shell reads from a
 * pipe to this process. When this process exits, the pipe closes and the shell interrupts the
 * server.
 */
function startWatchdog(
  pid: number,
  serverExited: Promise<unknown>,
  ids: { uid?: number; gid?: number },
): void {
  const script = 'while read -r line; do :; done; kill -INT "$0"';
  const watchdog = spawn('/bin/sh', ['-c', script, String(pid)], {
    ...ids,
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchdog.on('error', () => undefined);
  watchdog.stdin.on('error', () => undefined);
  const release = () => watchdog.kill('SIGKILL');
  serverExited.then(release, release);
}
