import { execFile } from 'node:child_process';
import { chmod, cp, lstat, mkdir, mkdtemp, rename, rm, rmdir, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Binaries } from './binaries.ts';
import { copyBinaries, exists, hasCode, programEnv, programPath } from './binaries.ts';

const run = promisify(execFile);
const PROBE_TIMEOUT_MS = 10_000;

/** Who runs the server. PostgreSQL refuses to run as root. */
export interface Identity {
  /** For logs, e.g. `as user postgres`. */
  readonly name: string;
  /** User and group to switch to; absent: the user we are. */
  readonly ids?: { readonly uid: number; readonly gid: number };
  /** Command in front of every program, with its arguments. */
  readonly prefix: readonly string[];
}

/** Everything that is decided before the server runs: who, which programs, and where. */
export interface Place {
  readonly identity: Identity;
  readonly binaries: Binaries;
  readonly dataDir: string;
  /** A folder for temporary files that the server's user can enter. */
  readonly temporaryDir: string;
}

const OURSELVES: Identity = { name: 'as this user', prefix: [] };

/** Root inside a namespace of its own, seen there as nobody: file ownership stays root's, its powers are gone. */
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
 * Decides who runs the server, by trying: each candidate has to load the server binary and to enter the folders.
 * As root, in this order: the user who owns the data (new data: `postgres`, else `nobody`), a user namespace, and at
 * last copies of the binaries and the data in a place that everybody can reach.
 *
 * @param dataDir real path of the data directory; it may not exist yet, its parent does
 * @throws Error with one line per candidate when none works
 */
export async function choosePlace(
  binaries: Binaries,
  dataDir: string,
  log: (line: string) => void,
): Promise<Place> {
  const failures: string[] = [];
  const candidates = process.getuid?.() === 0 ? await rootCandidates(dataDir) : [OURSELVES];
  for (const identity of candidates) {
    for (const temporaryDir of new Set([shortTmpdir(), '/tmp', '/var/tmp'])) {
      const place = { identity, binaries, dataDir, temporaryDir };
      const failure = await probe(place);
      if (failure === undefined) return place;
      failures.push(`${identity.name}, with temporary files in ${temporaryDir}: ${failure}`);
    }
  }
  if (candidates[0] !== OURSELVES) {
    try {
      return await moveToReachablePlace(binaries, dataDir, log);
    } catch (error) {
      failures.push(`from a copy: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(
    `The embedded PostgreSQL cannot run with its data in ${dataDir} (set CARILLON_DATA_DIR or DATABASE_URL):\n` +
      failures.map((failure) => `- ${failure}`).join('\n'),
  );
}

/** Uid and gid of a user given by name or number; undefined where there is none. */
async function findUser(user: string): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', '--', user]), run('id', ['-g', '--', user])]);
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
  // Root's own data was written in a user namespace.
  if (owner.uid === 0) return [await namespaced()];
  return [{ name: `as uid ${owner.uid}`, ids: { uid: owner.uid, gid: owner.gid }, prefix: [] }];
}

/** Tries the place; undefined when it works, else the reason in one line. */
async function probe(place: Place): Promise<string | undefined> {
  const isThere = await exists(join(place.dataDir, 'PG_VERSION'));
  const check = isThere ? 'cd "$1" && test -w .' : 'cd "$1"';
  const script = `${check} && cd "$2" && exec "$0" --version`;
  const target = isThere ? place.dataDir : dirname(place.dataDir);
  const postgres = programPath(place.binaries, 'postgres');
  const command = asIdentity(place.identity, ['sh', '-c', script, postgres, target, place.temporaryDir]);
  try {
    // The working directory of the caller may be closed to the server's user.
    const options = { ...command.ids, env: programEnv(place.binaries), cwd: '/', timeout: PROBE_TIMEOUT_MS };
    await run(command.file, command.args, options);
    return undefined;
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    if (hasCode(error, 'ENOENT')) return `there is no command ${command.file}`;
    return stderr.split('\n').at(-1) || `${target} cannot be written to`;
  }
}

/**
 * The last resort, for a project below a closed folder on a machine without user namespaces (Docker's default): the
 * data lives below /var/lib/carillon and the asked-for path becomes a link to it, so the next start finds it again.
 */
async function moveToReachablePlace(
  binaries: Binaries,
  dataDir: string,
  log: (line: string) => void,
): Promise<Place> {
  const homeDir = await reachableHome();
  const copied = await copyBinaries(binaries, homeDir);
  const [identity] = await unprivilegedUsers();
  if (identity?.ids === undefined) throw new Error('there is neither a user postgres nor a user nobody');
  const place = { identity, binaries: copied, dataDir, temporaryDir: '/tmp' };
  const isInitialised = await exists(join(dataDir, 'PG_VERSION'));
  const owner = isInitialised ? (await stat(dataDir)).uid : identity.ids.uid;
  // Only the binaries were out of reach.
  if (owner === identity.ids.uid && (await probe(place)) === undefined) return place;
  const movedDir = join(await mkdtemp(join(homeDir, 'data-')), 'postgres');
  await chmod(dirname(movedDir), 0o755);
  if (isInitialised) await moveData(dataDir, movedDir, identity.ids);
  else if (await exists(dataDir)) await rmdir(dataDir);
  await symlink(movedDir, dataDir);
  log(`nobody but root reaches ${dataDir}, so the database lives in ${movedDir}`);
  const moved = { ...place, dataDir: movedDir };
  const failure = await probe(moved);
  if (failure !== undefined) throw new Error(failure);
  return moved;
}

async function moveData(from: string, to: string, ids: { uid: number; gid: number }): Promise<void> {
  await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  await chmod(to, 0o700);
  await run('chown', ['-R', `${ids.uid}:${ids.gid}`, to]);
  await run('sync', []).catch(() => undefined);
  await rename(from, `${from}.moved`);
  await rm(`${from}.moved`, { recursive: true, force: true });
}

/** A folder that only root writes to, or nobody could trust the binaries in it. */
async function reachableHome(): Promise<string> {
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

/** The system's temporary folder, where a socket below it stays under the 107 bytes that a socket path may have. */
function shortTmpdir(): string {
  return Buffer.byteLength(tmpdir()) <= 70 ? tmpdir() : '/tmp';
}
