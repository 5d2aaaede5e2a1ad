import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';

const run = promisify(execFile);
const root = resolve(import.meta.dirname, '../../..');

/** Runs podman in the root of the clone. */
export interface Podman {
  env: NodeJS.ProcessEnv;
  /**
   * Resolves with what it prints, of `logs` both streams, without the spaces around it; rejects if
   * it fails.
   */
  run(...args: string[]): Promise<string>;
}

/** Returns whether podman can be used here. */
export function isInstalled(): boolean {
  try {
    execFileSync('podman', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Prepares podman with settings in `folder`: runc and lower limits also work where a machine gives
 * root fewer rights.
 */
export async function preparePodman(folder: string): Promise<Podman> {
  const env = { ...currentEnvironment(), CONTAINERS_CONF: join(folder, 'containers.conf') };
  const limitsLine = 'default_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]';
  const runtime = existsSync('/usr/sbin/runc') ? '[engine]\nruntime = "runc"\n' : '';
  await writeFile(env.CONTAINERS_CONF, `[containers]\n${limitsLine}\n${runtime}`);
  return {
    env,
    run: async (...args) => {
      const { stdout, stderr } = await run('podman', args, { env, cwd: root, maxBuffer: 1e8 });
      return (args[0] === 'logs' ? stdout + stderr : stdout).trim();
    },
  };
}

/**
 * Name service libraries that glibc loads when it runs, and parts of it that native modules name.
 */
const libraries = [
  'libnss_dns.so.2',
  'libnss_files.so.2',
  'libresolv.so.2',
  'librt.so.1',
  'libdl.so.2',
  'libpthread.so.0',
  'libutil.so.1',
];
const libraryFolder = '/lib/x86_64-linux-gnu';
/** Certificates that this machine trusts. */
export const certificates = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Images that stand in for the bases of the Dockerfile where no registry of images can be reached.
 */
export const standIns = {
  node: 'localhost/carillon-check-node',
  runtime: 'localhost/carillon-check-runtime',
};

/**
 * Makes both stand-ins from files of this machine: Node with the libraries that it needs, and npm.
 * They prove the steps of the Dockerfile, not the bases that it names.
 */
export async function makeStandIns(env: NodeJS.ProcessEnv): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-image-'));
  try {
    const runtime = join(folder, 'runtime');
    await fill(runtime);
    importImage(runtime, standIns.runtime, env);
    const node = join(folder, 'node');
    await cp(runtime, node, { recursive: true });
    await copy(process.execPath, join(node, 'usr/local/bin/node'));
    // `npm run` names its own file: …/npm/bin/npm-cli.js.
    const npm = resolve(env.npm_execpath ?? '', '../..');
    await cp(npm, join(node, 'usr/local/lib/node_modules/npm'), {
      recursive: true,
      dereference: true,
    });
    importImage(node, standIns.node, env);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function fill(root: string): Promise<void> {
  for (const name of ['tmp', 'proc', 'sys', 'dev', 'run', 'etc'])
    await mkdir(join(root, name), { recursive: true });
  const linked =
    execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  const files = [
    ...new Set([...linked, ...libraries.map((name) => join(libraryFolder, name)), certificates]),
  ];
  for (const file of files) await copy(file, join(root, file));
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0::/:/\nnonroot:x:65532:65532::/tmp:/\n');
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n');
}

async function copy(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await cp(from, to, { dereference: true });
}

function importImage(folder: string, name: string, env: NodeJS.ProcessEnv): void {
  const script =
    'tar -C "$0" -c . | podman import -c "ENV PATH=/usr/local/bin:/usr/bin:/bin" - "$1"';
  execFileSync('sh', ['-c', script, folder, name], { env, stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Memory of a container with one process, in MB (millions of bytes). */
interface ContainerMemory {
  /**
   * What Kubernetes counts and limits: all memory of the control group but file pages that were not
   * used again.
   */
  workingSet: number;
  /** Anonymous pages: heaps and stacks. */
  anonymous: number;
  /**
   * Resident: anonymous pages and the mapped ones of files, which containers of the same image
   * share.
   */
  resident: number;
}

const groups = '/sys/fs/cgroup';
const pollMs = 2000;
/** Idle processes return memory within 20 s of their start. */
const quietPolls = 10;
const patienceMs = 120_000;

/**
 * Waits until the memory of the process no longer falls, and returns it. Linux only, with control
 * groups of version 1 or 2.
 */
export async function memoryAtRest(pid: number): Promise<ContainerMemory> {
  const endsAtMs = performance.now() + patienceMs;
  let least = await memoryOf(pid);
  for (let quiet = 0; quiet < quietPolls && performance.now() < endsAtMs; quiet += 1) {
    await sleep(pollMs);
    const memory = await memoryOf(pid);
    // A megabyte more or less is the noise of timers.
    if (memory.resident < least.resident - 1) quiet = 0;
    if (memory.resident < least.resident) least = memory;
  }
  return memoryOf(pid);
}

async function memoryOf(pid: number): Promise<ContainerMemory> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kilobytes = (field: string) =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(rollup)?.[1]);
  return {
    workingSet: await workingSetOf(pid),
    anonymous: (kilobytes('Anonymous') * 1024) / 1e6,
    resident: (kilobytes('Rss') * 1024) / 1e6,
  };
}

async function workingSetOf(pid: number): Promise<number> {
  const lines = (await readFile(`/proc/${pid}/cgroup`, 'utf8')).trim().split('\n');
  const place = (controllers: RegExp) =>
    lines.find((line) => controllers.test(line))?.split(':')[2] ?? '';
  const old = `${groups}/memory${place(/^\d+:memory:/)}`;
  const isOld = existsSync(`${old}/memory.usage_in_bytes`);
  const folder = isOld ? old : `${groups}${place(/^0::/)}`;
  const used = Number(
    await readFile(`${folder}/memory.${isOld ? 'usage_in_bytes' : 'current'}`, 'utf8'),
  );
  const stat = await readFile(`${folder}/memory.stat`, 'utf8');
  const unused = new RegExp(`^${isOld ? 'total_' : ''}inactive_file (\\d+)$`, 'm').exec(stat)?.[1];
  return (used - Number(unused)) / 1e6;
}
