import { execFile } from 'node:child_process';
import {
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { say } from '../../cli/language.ts';
import { exists, hasCode, programEnv, programPath } from './binaries.ts';
import { asIdentity, type LaunchPlan } from './identity.ts';

const run = promisify(execFile);
const INITDB_TIMEOUT_MS = 120_000;
const STOPPING_TIMEOUT_MS = 15_000;
const ORPHAN_GRACE_MS = 1_000;
const SOCKET_DIR_PREFIX = 'carillon-pg-';
/**
 * Suffix of the file that records the last socket folder. The file is next to the data directory
 * and not inside it, so that the owner of the data cannot redirect root to another folder.
 */
const SOCKET_DIR_NOTE = '.socket-dir';

/**
 * Returns the real path of the data directory. Creates its parent folder if it is missing.
 *
 * @throws Error if the directory contains something other than a database
 */
export async function resolveDataDir(dataDir: string): Promise<string> {
  const path = resolve(dataDir);
  await mkdir(dirname(path), { recursive: true });
  const found = await lstat(path).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (found?.isSymbolicLink() && !(await exists(path))) {
    return resolveDataDir(resolve(dirname(path), await readlink(path)));
  }
  if (found === undefined) return join(await realpath(dirname(path)), basename(path));
  const entries = await readdir(path).catch((cause: unknown) => {
    if (!hasCode(cause, 'EACCES')) throw cause;
    throw new Error(
      say(
        '{path} belongs to another user (uid {uid}): start as that user, or give another data directory.',
        {
          path,
          uid: found.uid,
        },
      ),
      { cause },
    );
  });
  if (entries.length > 0 && !entries.includes('PG_VERSION')) {
    throw new Error(
      say('{path} is not empty and holds no PostgreSQL data; give another data directory.', {
        path,
      }),
    );
  }
  return realpath(path);
}

/**
 * Throws if a running server uses the data directory. Waits for a server that is stopping because
 * its parent was killed. Accepts the files of a crashed server, because PostgreSQL recovers them
 * itself.
 *
 * @throws Error that contains the process id
 */
export async function refuseLiveServer(dataDir: string): Promise<void> {
  const startedAtMs = performance.now();
  for (;;) {
    const owner = await readOwner(dataDir);
    if (owner === undefined) return;
    if (!(await isServerOf(owner.pid, dataDir))) {
      // Another program now has this process id. PostgreSQL would mistake the program for a running
      // server.
      if (isAlive(owner.pid)) await rm(join(dataDir, 'postmaster.pid'), { force: true });
      return;
    }
    const timeoutMs = owner.isStopping ? STOPPING_TIMEOUT_MS : ORPHAN_GRACE_MS;
    if (performance.now() - startedAtMs > timeoutMs) throw alreadyRunning(dataDir, owner.pid);
    await sleep(50);
  }
}

/** Creates the error for a data directory that is in use. */
export function alreadyRunning(dataDir: string, pid: number | undefined): Error {
  return new Error(
    say(
      'PostgreSQL is already running on {dataDir} (process {pid}). Stop the service that started it, or give this one another data directory.',
      { dataDir, pid: pid ?? say('unknown') },
    ),
  );
}

/**
 * Reads the process id in `postmaster.pid`, and whether the server is stopping. Returns undefined
 * if there is no such file.
 */
export async function readOwner(
  dataDir: string,
): Promise<{ pid: number; isStopping: boolean } | undefined> {
  try {
    const lines = (await readFile(join(dataDir, 'postmaster.pid'), 'utf8')).split('\n');
    const pid = Math.abs(Number.parseInt(lines[0] ?? '', 10));
    // Line 8 is the state of the server.
    return pid > 0 ? { pid, isStopping: lines[7]?.trim() === 'stopping' } : undefined;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Creates the database files if they are missing. Creates them in a temporary folder next to the
 * data directory and moves them when they are complete. So a start that is killed leaves no
 * incomplete database.
 */
export async function ensureCluster(plan: LaunchPlan, durable: boolean): Promise<void> {
  const { dataDir, binaries, identity } = plan;
  if (await exists(join(dataDir, 'PG_VERSION'))) return assertSameMajor(plan);
  await removeAbandoned(dataDir);
  const nextDir = await mkdtemp(`${dataDir}.init-${process.pid}-`);
  try {
    if (identity.ids !== undefined) await chown(nextDir, identity.ids.uid, identity.ids.gid);
    // PostgreSQL 17 and later have a built-in locale provider. Earlier versions use locales of the
    // system, whose names differ.
    const hasBuiltin = Number.parseInt(binaries.version, 10) >= 17;
    const builtin = hasBuiltin ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : [];
    const locale = ['--no-locale', '--encoding=UTF8', ...builtin];
    const access = ['--auth=trust', '--username=carillon', '--no-instructions'];
    const sync = durable ? [] : ['--no-sync'];
    const initdb = programPath(binaries, 'initdb');
    const command = asIdentity(identity, [initdb, '-D', nextDir, ...locale, ...access, ...sync]);
    const options = {
      ...command.ids,
      env: programEnv(binaries),
      cwd: '/',
      timeout: INITDB_TIMEOUT_MS,
    };
    await run(command.file, command.args, options);
    await rename(nextDir, dataDir).catch((error: unknown) => {
      // Another process created the files first. The server's lock file decides which server runs.
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    });
  } catch (cause) {
    const stderr = cause instanceof Error && 'stderr' in cause ? String(cause.stderr).trim() : '';
    throw new Error(
      `${say('The database files in {dataDir} could not be created.', { dataDir })} ${stderr}`,
      { cause },
    );
  } finally {
    await rm(nextDir, { recursive: true, force: true });
  }
}

/**
 * Creates the socket folder. Only the server's user and root can enter it. `wanted` is the folder
 * of a crashed server; reusing it lets that server's clients reconnect.
 */
export async function makeSocketDir(
  { identity, temporaryDir }: LaunchPlan,
  wanted?: string,
): Promise<string> {
  const socketDir = wanted ?? (await mkdtemp(join(temporaryDir, SOCKET_DIR_PREFIX)));
  if (wanted !== undefined) await mkdir(wanted, { recursive: true, mode: 0o700 });
  if (identity.ids !== undefined) await chown(socketDir, identity.ids.uid, identity.ids.gid);
  return socketDir;
}

/**
 * Records the socket folder for the next start, and removes the folder that the previous start
 * recorded. Call this only after the server has locked the data directory. Before, the recorded
 * folder may belong to a running server.
 */
export async function recordSocketDir(dataDir: string, socketDir: string): Promise<void> {
  const note = `${dataDir}${SOCKET_DIR_NOTE}`;
  const lastDir = await readFile(note, 'utf8').catch(() => '');
  if (lastDir !== socketDir && basename(lastDir).startsWith(SOCKET_DIR_PREFIX))
    await rm(lastDir, { recursive: true, force: true });
  await writeFile(note, socketDir, { mode: 0o600 });
}

/** True if a process with this id exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
}

/**
 * True if the process is the server of this data directory. A restarted container soon reuses
 * process ids, so a process with this id may be another program.
 */
async function isServerOf(pid: number, dataDir: string): Promise<boolean> {
  if (!isAlive(pid)) return false;
  try {
    const isLinux = process.platform === 'linux';
    const commandLine = isLinux
      ? (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')
      : (await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).stdout;
    return commandLine.includes('postgres') && commandLine.includes(` -D ${dataDir} `);
  } catch {
    // The process has exited, or its command line is hidden because it belongs to another user.
    return false;
  }
}

async function assertSameMajor({ dataDir, binaries }: LaunchPlan): Promise<void> {
  const found = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim();
  const [wanted] = binaries.version.split('.');
  if (found === wanted) return;
  throw new Error(
    say(
      'The data in {dataDir} was written by PostgreSQL {found}, the installed one is {wanted}. Move it with pg_dump and pg_restore of the old version, or give another data directory.',
      { dataDir, found, wanted },
    ),
  );
}

/** Removes incomplete database files of killed starts. */
async function removeAbandoned(dataDir: string): Promise<void> {
  const prefix = `${basename(dataDir)}.init-`;
  for (const name of await readdir(dirname(dataDir))) {
    if (!name.startsWith(prefix)) continue;
    const pid = Number.parseInt(name.slice(prefix.length), 10);
    if (!isAlive(pid)) await rm(join(dirname(dataDir), name), { recursive: true, force: true });
  }
}
