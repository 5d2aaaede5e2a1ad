import { execFile } from 'node:child_process';
import {
  chmod,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { say } from '../../cli/language.ts';
import {
  type Binaries,
  copyBinaries,
  exists,
  hasCode,
  programEnv,
  programPath,
} from './binaries.ts';

const run = promisify(execFile);
const PROBE_TIMEOUT_MS = 10_000;

/** User that runs the server. PostgreSQL refuses to run as root. */
export interface Identity {
  /** Text for logs, such as `as user postgres`. */
  readonly name: string;
  /** User and group to switch to. Undefined for the current user. */
  readonly ids?: { readonly uid: number; readonly gid: number };
  /** Command and arguments that are put before every program. */
  readonly prefix: readonly string[];
}

/** Choices before the server starts: the user, the programs and the folders. */
export interface LaunchPlan {
  readonly identity: Identity;
  readonly binaries: Binaries;
  readonly dataDir: string;
  /** Folder for temporary files. The server's user can enter it. */
  readonly temporaryDir: string;
}

const currentUser: Identity = { name: 'as this user', prefix: [] };

/**
 * Returns an identity for root inside a user namespace. Files still belong to root, but the process
 * has no root privileges.
 */
async function namespaced(): Promise<Identity> {
  const ids = (await findUser('nobody')) ?? { uid: 65534, gid: 65534 };
  const map = [`--map-user=${ids.uid}`, `--map-group=${ids.gid}`];
  return { name: 'in a user namespace', prefix: ['unshare', '--user', ...map, '--'] };
}

/** Builds the arguments of `spawn` for a program that runs as this identity. */
export function asIdentity(
  identity: Identity,
  command: readonly string[],
): { file: string; args: string[]; ids: { uid?: number; gid?: number } } {
  const [file = '', ...args] = [...identity.prefix, ...command];
  return { file, args, ids: { ...identity.ids } };
}

/**
 * Chooses the user that runs the server: the first candidate that can load the server binary and
 * enter the folders. As root, the candidates are, in this order:
 *
 * 1. the owner of existing data; for new data `postgres`, then `nobody`;
 * 2. root inside a user namespace;
 * 3. an unprivileged user, with the binaries and the data in a folder that all users can enter.
 *
 * @param dataDir real path of the data directory. Its parent must exist
 * @throws Error with one line per candidate if all candidates fail
 */
export async function chooseLaunchPlan(
  binaries: Binaries,
  dataDir: string,
  log: (line: string) => void,
): Promise<LaunchPlan> {
  const failures: string[] = [];
  const candidates = process.getuid?.() === 0 ? await rootCandidates(dataDir) : [currentUser];
  for (const identity of candidates) {
    for (const temporaryDir of new Set([shortTmpdir(), '/tmp', '/var/tmp'])) {
      const plan = { identity, binaries, dataDir, temporaryDir };
      const failure = await probe(plan);
      if (failure === undefined) return plan;
      failures.push(`${identity.name}, with temporary files in ${temporaryDir}: ${failure}`);
    }
  }
  if (candidates[0] !== currentUser) {
    try {
      return await moveToReachableFolder(binaries, dataDir, log);
    } catch (error) {
      failures.push(`from a copy: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(
    [
      say(
        'The embedded PostgreSQL cannot run with its data in {dataDir} (set CARILLON_DATA_DIR or DATABASE_URL):',
        {
          dataDir,
        },
      ),
      ...failures.map((failure) => `- ${failure}`),
    ].join('\n'),
  );
}

/**
 * Finds the uid and gid of a user by name or number. Returns undefined if there is no such user.
 */
async function findUser(user: string): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const [uid, gid] = await Promise.all([
      run('id', ['-u', '--', user]),
      run('id', ['-g', '--', user]),
    ]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

async function unprivilegedUsers(): Promise<Identity[]> {
  const identities: Identity[] = [];
  for (const user of ['postgres', 'nobody']) {
    const ids = await findUser(user);
    if (ids !== undefined) identities.push({ name: `as user ${user}`, ids, prefix: [] });
  }
  return identities;
}

async function rootCandidates(dataDir: string): Promise<Identity[]> {
  const isInitialised = await exists(join(dataDir, 'PG_VERSION'));
  if (!isInitialised) return [...(await unprivilegedUsers()), await namespaced()];
  const owner = await stat(dataDir);
  // Data that belongs to root was written in a user namespace.
  if (owner.uid === 0) return [await namespaced()];
  return [{ name: `as uid ${owner.uid}`, ids: { uid: owner.uid, gid: owner.gid }, prefix: [] }];
}

/** Tries a plan. Returns undefined if the plan works, otherwise the reason in one line. */
async function probe(plan: LaunchPlan): Promise<string | undefined> {
  const isThere = await exists(join(plan.dataDir, 'PG_VERSION'));
  const check = isThere ? 'cd "$1" && test -w .' : 'cd "$1"';
  const script = `${check} && cd "$2" && exec "$0" --version`;
  const target = isThere ? plan.dataDir : dirname(plan.dataDir);
  const postgres = programPath(plan.binaries, 'postgres');
  const command = asIdentity(plan.identity, [
    'sh',
    '-c',
    script,
    postgres,
    target,
    plan.temporaryDir,
  ]);
  try {
    // Runs in `/`, because the server's user may have no access to the caller's working directory.
    const options = {
      ...command.ids,
      env: programEnv(plan.binaries),
      cwd: '/',
      timeout: PROBE_TIMEOUT_MS,
    };
    await run(command.file, command.args, options);
    return undefined;
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    if (hasCode(error, 'ENOENT')) return `there is no command ${command.file}`;
    return stderr.split('\n').at(-1) || `${target} cannot be written to`;
  }
}

/**
 * Moves the data to a folder below /var/lib/carillon and replaces the original path with a link, so
 * that the next start finds the data. This is the last candidate. It is needed if the project is
 * inside a closed folder and the machine has no user namespaces (Docker's default).
 */
async function moveToReachableFolder(
  binaries: Binaries,
  dataDir: string,
  log: (line: string) => void,
): Promise<LaunchPlan> {
  const reachableDir = await reachableFolder();
  const copied = await copyBinaries(binaries, reachableDir);
  const [identity] = await unprivilegedUsers();
  if (identity?.ids === undefined)
    throw new Error('there is neither a user postgres nor a user nobody');
  const plan = { identity, binaries: copied, dataDir, temporaryDir: '/tmp' };
  const isInitialised = await exists(join(dataDir, 'PG_VERSION'));
  const owner = isInitialised ? (await stat(dataDir)).uid : identity.ids.uid;
  // The data can stay if only the binaries were out of reach.
  if (owner === identity.ids.uid && (await probe(plan)) === undefined) return plan;
  const movedDir = join(await mkdtemp(join(reachableDir, 'data-')), 'postgres');
  await chmod(dirname(movedDir), 0o755);
  if (isInitialised) await moveData(dataDir, movedDir, identity.ids);
  else if (await exists(dataDir)) await rmdir(dataDir);
  await symlink(movedDir, dataDir);
  log(`only root can reach ${dataDir}, so the database files are in ${movedDir}`);
  const moved = { ...plan, dataDir: movedDir };
  const failure = await probe(moved);
  if (failure !== undefined) throw new Error(failure);
  return moved;
}

async function moveData(
  from: string,
  to: string,
  ids: { uid: number; gid: number },
): Promise<void> {
  await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  await chmod(to, 0o700);
  await run('chown', ['-R', `${ids.uid}:${ids.gid}`, to]);
  await run('sync', []).catch(() => undefined);
  await rename(from, `${from}.moved`);
  await rm(`${from}.moved`, { recursive: true, force: true });
}

/**
 * Returns a folder that only root can write to. Binaries in any other folder could not be trusted.
 */
async function reachableFolder(): Promise<string> {
  for (const dir of ['/var/lib/carillon', '/var/tmp/carillon']) {
    try {
      await mkdir(dir, { recursive: true, mode: 0o755 });
      const found = await lstat(dir);
      const isOurs = found.isDirectory() && found.uid === 0 && (found.mode & 0o022) === 0;
      if (isOurs && (found.mode & 0o005) === 0o005) return dir;
    } catch (error) {
      if (!hasCode(error, 'EROFS', 'EACCES', 'EPERM', 'EEXIST', 'ENOTDIR')) throw error;
    }
  }
  throw new Error('neither /var/lib/carillon nor /var/tmp/carillon can be used');
}

/**
 * Returns the system's temporary folder. Returns /tmp if a socket path in that folder would exceed
 * the limit of 107 bytes.
 */
function shortTmpdir(): string {
  return Buffer.byteLength(tmpdir()) <= 70 ? tmpdir() : '/tmp';
}
