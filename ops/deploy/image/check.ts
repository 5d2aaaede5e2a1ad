// `npm run check-image`: builds the image with podman, starts two of each process from it on a read-only root, and
// stops them. Says so and ends with 0 where podman is missing. IMAGE_BASES=registry takes the bases that the Dockerfile
// names.
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { choosePort } from '../../local/ports.ts';
import { startEmbeddedPostgres } from '../../local/postgres/server.ts';
import { certificates, makeStandIns, standIns } from './stand-ins.ts';

const run = promisify(execFile);
const root = resolve(import.meta.dirname, '../../..');
const image = 'localhost/carillon-check';
/** Largest image, and resident memory of a process right after its start, in MB; both show what a change adds. */
const limits = { image: 260, api: 125, dispatcher: 230 };
const patienceMs = 90_000;

const folder = await mkdtemp(join(tmpdir(), 'carillon-image-'));
const environment = currentEnvironment();
const env = { ...environment, CONTAINERS_CONF: join(folder, 'containers.conf') };
const podman = async (...args: string[]) =>
  (await run('podman', args, { env, cwd: root, maxBuffer: 1e8 })).stdout.trim();
const containers: string[] = [];

/** Returns whether podman can be used here. */
function isInstalled(): boolean {
  try {
    execFileSync('podman', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function demand(condition: boolean, text: string): void {
  if (!condition) throw new Error(text);
  console.log(`ok  ${text}`);
}

const isOffline = environment.IMAGE_BASES !== 'registry';

/** Makes the stand-ins and runs one. Returns why this machine runs no container; undefined where it does. */
async function reasonAgainstContainers(): Promise<string | undefined> {
  try {
    if (!isOffline) return undefined;
    await makeStandIns(env);
    await podman('run', '--rm', '--network=host', '--pull=never', standIns.node, 'node', '--version');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message.trim().split('\n').at(-1) : String(error);
  }
}

/** Builds the image; npm in the build trusts the certificates that this machine trusts. */
async function build(): Promise<void> {
  const trust: string[] = [];
  if (existsSync(certificates)) {
    const npmrc = join(folder, 'npmrc');
    await writeFile(npmrc, `cafile=${certificates}\n`);
    trust.push('-v', `${certificates}:${certificates}:ro`, '-v', `${npmrc}:/usr/local/etc/npmrc:ro`);
  }
  const bases = isOffline
    ? ['--pull=never', '--build-arg', `NODE=${standIns.node}`, '--build-arg', `RUNTIME=${standIns.runtime}`]
    : [];
  const ignore = ['--ignorefile', 'ops/deploy/image/Dockerfile.dockerignore'];
  await podman(
    'build',
    '--network=host',
    ...bases,
    ...trust,
    ...ignore,
    '-f',
    'ops/deploy/image/Dockerfile',
    '-t',
    image,
    '.',
  );
  const mb = Number(await podman('image', 'inspect', '--format', '{{.Size}}', image)) / 1e6;
  demand(mb < limits.image, `the image has ${Math.round(mb)} MB, at most ${limits.image}`);
}

interface Started {
  name: string;
  port: number;
}

async function start(command: string, options: string[], port: number): Promise<Started> {
  const variable = command === 'api' ? 'PORT' : 'METRICS_PORT';
  const name = `carillon-check-${randomBytes(4).toString('hex')}`;
  containers.push(name);
  await podman('run', '-d', '--name', name, ...options, '-e', `${variable}=${port}`, image, command);
  return { name, port };
}

async function untilReady({ name, port }: Started): Promise<void> {
  const endsAtMs = performance.now() + patienceMs;
  while (performance.now() < endsAtMs) {
    const reply = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (reply?.ok) return;
    await sleep(200);
  }
  throw new Error(`not ready: ${await podman('logs', name)}`);
}

async function residentMb(name: string): Promise<number> {
  const pid = await podman('inspect', '--format', '{{.State.Pid}}', name);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1000);
}

/** Checks processes that start, run at rest and stop; they begin with an api, and the kinds alternate. */
async function checkRunning(started: readonly Started[]): Promise<void> {
  await Promise.all(started.map(untilReady));
  demand(true, 'two of each are ready, on a read-only root, started before the migration');
  const [api] = started;
  const page = await fetch(`http://127.0.0.1:${api?.port}/console`);
  demand(page.ok && (await page.text()).includes('<script'), 'the console is built in');
  for (const [place, { name }] of started.entries()) {
    const kind = place % 2 === 0 ? 'api' : 'dispatcher';
    const mb = await residentMb(name);
    demand(
      mb > 0 && mb <= limits[kind],
      `the memory of a started ${kind} is ${mb} MB, at most ${limits[kind]}`,
    );
  }
  for (const { name } of started) {
    await podman('stop', '-t', '30', name);
    const code = await podman('inspect', '--format', '{{.State.ExitCode}}', name);
    demand(code === '0', 'a stopped process ends with code 0');
  }
}

async function check(): Promise<void> {
  await build();
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), durable: false });
  try {
    const { uid, gid } = await stat(server.socketDir);
    const variables = {
      DATABASE_URL: 'postgresql://carillon@/carillon?host=/postgres&port=5432',
      CARILLON_SECRET: randomBytes(32).toString('base64'),
      CARILLON_ADMIN_TOKEN: randomBytes(24).toString('base64url'),
      DISPATCHER_THREADS: '2',
      HOST: '127.0.0.1',
    };
    // The user that may open the socket of this PostgreSQL; the image's own user is 65532.
    const rights = [
      '--user',
      `${uid}:${gid}`,
      '--read-only',
      '--cap-drop=all',
      '--security-opt=no-new-privileges',
    ];
    const mounts = ['--tmpfs', '/tmp', '-v', `${server.socketDir}:/postgres`, '--network=host'];
    const options = [
      ...rights,
      ...mounts,
      ...Object.entries(variables).flatMap(([name, value]) => ['-e', `${name}=${value}`]),
    ];
    const port = () => choosePort({ asked: 0, usual: 0, host: '127.0.0.1', variable: 'PORT' });
    const started: Started[] = [];
    for (const command of ['api', 'dispatcher', 'api', 'dispatcher'])
      started.push(await start(command, options, await port()));
    await podman('run', '--rm', ...options, image, 'migrate');
    await checkRunning(started);
  } finally {
    if (containers.length > 0) await podman('rm', '-f', '-i', ...containers).catch(() => undefined);
    await server.stop('immediate');
  }
}

try {
  if (isInstalled()) {
    // runc and lower limits also work where a machine gives root fewer rights.
    const limitsLine = 'default_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]';
    const runtime = existsSync('/usr/sbin/runc') ? '[engine]\nruntime = "runc"\n' : '';
    await writeFile(env.CONTAINERS_CONF, `[containers]\n${limitsLine}\n${runtime}`);
    const reason = await reasonAgainstContainers();
    if (reason === undefined) {
      await check();
      console.log('the image works');
    } else console.log(`podman runs no container here, so the image is not built: ${reason}`);
  } else console.log('podman cannot be used here: the image is not built.');
} finally {
  await rm(folder, { recursive: true, force: true });
}
