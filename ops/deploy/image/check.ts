// `npm run check-image`: builds the image with podman, starts two containers of each process with a
// read-only root file system, and stops them. Exits with 0 if podman is not installed.
// IMAGE_BASES=registry uses the base images of the Dockerfile.
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { freePort } from '../../local/ports.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../local/postgres/server.ts';
import {
  certificates,
  idleMemory,
  isInstalled,
  makeStandIns,
  type Podman,
  preparePodman,
  standIns,
} from './podman.ts';

const image = 'localhost/carillon-check';
/**
 * Limits in MB: the size of the image and the memory of an idle process. The resident memory shows
 * what a change adds.
 */
const limits = {
  image: 260,
  api: { workingSet: 90, resident: 115 },
  dispatcher: { workingSet: 120, resident: 180 },
};
const startTimeoutMs = 90_000;
const isOffline = currentEnvironment().IMAGE_BASES !== 'registry';

function demand(condition: boolean, text: string): void {
  if (!condition) throw new Error(text);
  console.log(`ok  ${text}`);
}

/**
 * Builds and runs a stand-in image. Returns the reason if this machine cannot run containers,
 * otherwise undefined.
 */
async function reasonAgainstContainers(podman: Podman): Promise<string | undefined> {
  try {
    if (!isOffline) return undefined;
    await makeStandIns(podman.env);
    await podman.run(
      'run',
      '--rm',
      '--network=host',
      '--pull=never',
      standIns.node,
      'node',
      '--version',
    );
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message.trim().split('\n').at(-1) : String(error);
  }
}

/** Builds the image. During the build, npm trusts the certificates that this machine trusts. */
async function build(podman: Podman, folder: string): Promise<void> {
  const trust: string[] = [];
  if (existsSync(certificates)) {
    const npmrc = join(folder, 'npmrc');
    await writeFile(npmrc, `cafile=${certificates}\n`);
    trust.push(
      '-v',
      `${certificates}:${certificates}:ro`,
      '-v',
      `${npmrc}:/usr/local/etc/npmrc:ro`,
    );
  }
  const bases = isOffline
    ? [
        '--pull=never',
        '--build-arg',
        `NODE=${standIns.node}`,
        '--build-arg',
        `RUNTIME=${standIns.runtime}`,
      ]
    : [];
  const file = 'ops/deploy/image/Dockerfile';
  const files = ['--ignorefile', `${file}.dockerignore`, '-f', file];
  await podman.run('build', '--network=host', ...bases, ...trust, ...files, '-t', image, '.');
  const mb = Number(await podman.run('image', 'inspect', '--format', '{{.Size}}', image)) / 1e6;
  demand(mb < limits.image, `the image has ${Math.round(mb)} MB, at most ${limits.image}`);
}

type Kind = 'api' | 'dispatcher';

/** Container of the image. The health of its process is served on `port` of this machine. */
interface Started {
  kind: Kind;
  name: string;
  port: number;
}

/**
 * Returns the restrictions and variables of a container. They match the Kubernetes manifests and
 * the user of the image.
 */
function optionsFor(server: EmbeddedPostgres): string[] {
  const variables = {
    DATABASE_URL: 'postgresql://carillon@/carillon?host=/postgres&port=5432',
    CARILLON_SECRET: randomBytes(32).toString('base64'),
    CARILLON_ADMIN_TOKEN: randomBytes(24).toString('base64url'),
    DISPATCHER_THREADS: '2',
    HOST: '127.0.0.1',
  };
  const rights = ['--read-only', '--cap-drop=all', '--security-opt=no-new-privileges'];
  const mounts = ['--tmpfs', '/tmp', '-v', `${server.socketDir}:/postgres`, '--network=host'];
  const env = Object.entries(variables).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  return [...rights, ...mounts, ...env];
}

async function untilReady(podman: Podman, { name, port }: Started): Promise<void> {
  const endsAtMs = performance.now() + startTimeoutMs;
  while (performance.now() < endsAtMs) {
    const reply = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (reply?.ok) return;
    await sleep(200);
  }
  throw new Error(`not ready: ${await podman.run('logs', name)}`);
}

/**
 * Checks that the process loaded every module from the image's compile cache. Uses the debug output
 * of Node.
 */
async function checkCompiled(podman: Podman, { kind, name }: Started): Promise<void> {
  const log = await podman.run('logs', name);
  const modules = log.split('reading cache from').slice(1);
  const compiled = modules.filter(
    (entry) => !entry.includes('success, size=') || entry.includes('was rejected'),
  );
  const text = `a starting ${kind} takes all of its ${modules.length} modules from the compile cache of the image`;
  demand(
    modules.length > 0 && compiled.length === 0,
    [text, ...compiled.map(firstLine)].join('\n'),
  );
}

const firstLine = (text: string) => text.split('\n', 1)[0];

/** Checks the memory of an idle process. */
async function checkMemory(podman: Podman, { kind, name }: Started): Promise<void> {
  const pid = Number(await podman.run('inspect', '--format', '{{.State.Pid}}', name));
  const { workingSet, anonymous, resident } = await idleMemory(pid);
  const limit = limits[kind];
  const mb = (value: number) => `${Math.round(value)} MB`;
  demand(
    workingSet <= limit.workingSet && resident <= limit.resident,
    `at rest: ${kind}, working set ${mb(workingSet)}, at most ${limit.workingSet}; anonymous ${mb(anonymous)}; resident ${mb(resident)}, at most ${limit.resident}`,
  );
}

/** Checks running processes: start, memory when idle, and stop. The first process is an api. */
async function checkRunning(podman: Podman, started: readonly Started[]): Promise<void> {
  await Promise.all(started.map((one) => untilReady(podman, one)));
  demand(true, 'two of each are ready, on a read-only root, started before the migration');
  const [api] = started;
  const page = await fetch(`http://127.0.0.1:${api?.port}/console`);
  demand(page.ok && (await page.text()).includes('<script'), 'the console is built in');
  for (const one of started.slice(0, 2)) await checkCompiled(podman, one);
  for (const one of started.slice(2)) await checkMemory(podman, one);
  for (const { name } of started) {
    await podman.run('stop', '-t', '30', name);
    const code = await podman.run('inspect', '--format', '{{.State.ExitCode}}', name);
    demand(code === '0', 'a stopped process ends with code 0');
  }
}

async function check(podman: Podman, folder: string): Promise<void> {
  await build(podman, folder);
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), durable: false });
  // Lets the user of the image open the socket.
  await chmod(server.socketDir, 0o755);
  const started: Started[] = [];
  try {
    const options = optionsFor(server);
    for (const [place, kind] of (['api', 'dispatcher', 'api', 'dispatcher'] as const).entries()) {
      const port = await freePort();
      const one = { kind, port, name: `carillon-check-${randomBytes(4).toString('hex')}` };
      started.push(one);
      const own = ['-e', `${kind === 'api' ? 'PORT' : 'METRICS_PORT'}=${port}`];
      // Makes Node print its use of the compile cache.
      const debugOptions = place < 2 ? ['-e', 'NODE_DEBUG_NATIVE=COMPILE_CACHE'] : [];
      await podman.run(
        'run',
        '-d',
        '--name',
        one.name,
        ...options,
        ...own,
        ...debugOptions,
        image,
        kind,
      );
    }
    await podman.run('run', '--rm', ...options, image, 'migrate');
    await checkRunning(podman, started);
  } finally {
    const names = started.map(({ name }) => name);
    if (names.length > 0) await podman.run('rm', '-f', '-i', ...names).catch(() => undefined);
    await server.stop('immediate');
  }
}

if (isInstalled()) {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-image-'));
  try {
    const podman = await preparePodman(folder);
    const reason = await reasonAgainstContainers(podman);
    if (reason === undefined) {
      await check(podman, folder);
      console.log('the image works');
    } else console.log(`podman runs no container here, so the image is not built: ${reason}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
} else console.log('podman cannot be used here: the image is not built.');
