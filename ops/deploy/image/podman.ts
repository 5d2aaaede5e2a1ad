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

/** Runs podman in the root folder of the clone. */
export interface Podman {
  env: NodeJS.ProcessEnv;
  /**
   * Resolves with the trimmed output. The output of `logs` contains both streams. Rejects if podman
   * fails.
   */
  run(...args: string[]): Promise<string>;
}

/** True if podman is installed. */
export function isInstalled(): boolean {
  try {
    execFileSync('podman', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Prepares podman with settings in `folder`. It uses runc and lower limits, which also work if root
 * has reduced privileges.
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

/** Libraries that glibc or native modules load at run time: name service and resolver. */
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

/** Images that replace the base images of the Dockerfile if no registry is reachable. */
export const standIns = {
  node: 'localhost/carillon-check-node',
  runtime: 'localhost/carillon-check-runtime',
};

/**
 * Creates both stand-in images from files of this machine: Node with its libraries, and npm. They
 * test the steps of the Dockerfile, not its base images.
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
    // `npm run` sets this variable to its own file: …/npm/bin/npm-cli.js.
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
   * The value that Kubernetes counts and limits: all memory of the control group except inactive
   * file pages.
   */
  workingSet: number;
  /** Anonymous pages: heaps and stacks. */
  anonymous: number;
  /**
   * Resident memory: anonymous pages and mapped file pages. Containers of the same image share the
   * file pages.
   */
  resident: number;
}

const groups = '/sys/fs/cgroup';
const pollMs = 2000;
/** An idle process returns memory within 20 s of its start. */
const quietPolls = 10;
const timeoutMs = 120_000;

/**
 * Waits until the memory of the process no longer falls, and returns it. Works only on Linux, with
 * control groups of version 1 or 2.
 */
export async function idleMemory(pid: number): Promise<ContainerMemory> {
  const endsAtMs = performance.now() + timeoutMs;
  let lowest = await memoryOf(pid);
  for (let quiet = 0; quiet < quietPolls && performance.now() < endsAtMs; quiet += 1) {
    await sleep(pollMs);
    const memory = await memoryOf(pid);
    // A change of one megabyte is noise from timers.
    if (memory.resident < lowest.resident - 1) quiet = 0;
    if (memory.resident < lowest.resident) lowest = memory;
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
