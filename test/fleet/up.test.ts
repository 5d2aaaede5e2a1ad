import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const project = fileURLToPath(new URL('../..', import.meta.url));

/** Running `npm start` with its output. */
interface Started {
  child: ChildProcess;
  output: () => string;
  url: string;
  ended: Promise<number | null>;
}

let parentDir: string;
let dataDir: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  parentDir = await mkdtemp(join(tmpdir(), 'carillon-up-'));
  await chmod(parentDir, 0o755);
  dataDir = join(parentDir, 'data');
});
afterAll(async () => {
  for (const child of running)
    if (child.pid && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, 'SIGKILL');
  await rm(parentDir, { recursive: true, force: true });
});

/** Starts the command and waits for a line of its output. By default, the line with its address. */
async function npmStart({
  command = ['npm', 'start'],
  directory = dataDir,
  line = /^carillon ready (\S+)$/m,
} = {}): Promise<Started> {
  const env = {
    ...process.env,
    PORT: '0',
    METRICS_PORT: '0',
    CARILLON_DATA_DIR: directory,
    CARILLON_FUNCTIONS_DIR: join(project, 'ops/functions-example'),
    LOG_LEVEL: 'warn',
  };
  // Removes the variables of the test run, because npm sets its own.
  for (const name of Object.keys(env))
    if (/^(npm_|VITEST|NODE_ENV)/.test(name)) Reflect.deleteProperty(env, name);
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.push(child);
  let text = '';
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const url = await new Promise<string>((resolve, reject) => {
    const add = (chunk: Buffer) => {
      text += chunk;
      const match = line.exec(text);
      if (match) resolve(match[1] ?? '');
    };
    child.stdout.on('data', add);
    child.stderr.on('data', add);
    void ended.then((code) => reject(new Error(`npm start ended with ${code}:\n${text}`)));
  });
  return { child, output: () => text, url, ended };
}

/**
 * Returns processes that have our data directory in their command line or environment, except this
 * test.
 */
async function processesOf(dir: string): Promise<string[]> {
  const { stdout } = await run('sh', [
    '-c',
    `grep -lsz '^CARILLON_DATA_DIR=${dir}$' /proc/[0-9]*/environ; grep -lsz '^${dir}/postgres$' /proc/[0-9]*/cmdline; true`,
  ]);
  return stdout.split('\n').filter((line) => line !== '');
}

/**
 * Returns the command lines of processes that have the secret of our data directory in their
 * environment.
 */
async function holdersOfSecret(dir: string): Promise<string[]> {
  const secret = (await readFile(join(dir, 'secret'), 'utf8')).trim();
  const { stdout } = await run('sh', ['-c', `grep -lsF -e '${secret}' /proc/[0-9]*/environ; true`]);
  const paths = stdout.split('\n').filter((line) => line !== '');
  const names = paths.map((path) => readFile(path.replace(/environ$/, 'cmdline'), 'utf8'));
  return (await Promise.all(names)).map((name) => name.replace(/\0.*/s, ''));
}

const curls = (output: string) => output.split('\n').filter((line) => line.startsWith('curl '));
const appIdOf = (output: string) => /X-LC-Id (\w+)/.exec(output)?.[1];

describe.skipIf(process.platform !== 'linux')('npm start', { timeout: 120_000 }, () => {
  let firstAppId: string | undefined;

  test('creates a demo, shows its first push, and stops cleanly', async () => {
    const service = await npmStart();
    const output = service.output();
    firstAppId = appIdOf(output);
    expect(output).toMatch(/APNs \(sandbox\) +500 +500 +0/);
    expect(output).toMatch(/device channel +275 +275 +0 +275/);
    for (const title of [
      'FCM',
      'Huawei',
      'Xiaomi',
      'Meizu',
      'OPPO',
      'vivo',
      'Honor',
      'FCM \\(vendor_g\\)',
      'Web Push',
    ])
      expect(output).toMatch(new RegExp(`^${title} \\(sandbox\\) +25 +25 +0`, 'm'));
    const page = /^sandbox +(\S+)/m.exec(output)?.[1] ?? '';
    expect(await (await fetch(page)).text()).toContain('Huawei');
    const tryPage = /^try it +(\S+)/m.exec(output)?.[1] ?? '';
    expect(await (await fetch(tryPage)).text()).toContain('/page.js');
    expect((await fetch(`${tryPage}page.json`)).status).toBe(200);
    expect(curls(output)).toHaveLength(3);
    for (const curl of curls(output)) {
      const { stdout } = await run('sh', ['-c', curl]);
      expect(JSON.parse(stdout)).not.toHaveProperty('error');
    }
    service.child.kill('SIGINT');
    const stoppedAtMs = performance.now();
    expect(await service.ended).toBe(0);
    expect(performance.now() - stoppedAtMs).toBeLessThan(10_000);
    await expect(fetch(tryPage)).rejects.toThrow();
    await expect.poll(() => processesOf(dataDir), { timeout: 20_000 }).toEqual([]);
  });

  test('continues with the same data, and keeps its secrets private', async () => {
    const token = (await readFile(join(dataDir, 'admin-token'), 'utf8')).trim();
    expect((await stat(join(dataDir, 'admin-token'))).mode & 0o777).toBe(0o600);
    const service = await npmStart();
    expect(appIdOf(service.output())).toBe(firstAppId);
    expect(service.output()).not.toContain('first push [');
    const apps = await fetch(`${service.url}/console/api/apps`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(await apps.json()).toMatchObject({ results: [{ appId: firstAppId }] });
    // Only api and dispatcher have the secret, not the sandbox or the functions.
    expect((await holdersOfSecret(dataDir)).sort()).toEqual([
      'carillon api',
      'carillon dispatcher',
    ]);
    await endBySignal(service, 'SIGTERM');
  });

  test('restarts a killed process, even the database', async () => {
    const service = await npmStart();
    for (const name of ['api', 'dispatcher']) {
      const killed = await pidOf(name);
      process.kill(killed, 'SIGKILL');
      await expect.poll(() => pidOf(name), { timeout: 15_000 }).not.toBe(killed);
    }
    const postmaster = Number(
      (await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0],
    );
    process.kill(postmaster, 'SIGKILL');
    const isReady = async () => {
      const reply = await fetch(`${service.url}/readyz`).catch(() => undefined);
      return reply?.status;
    };
    await expect.poll(isReady, { timeout: 30_000 }).toBe(200);
    await endBySignal(service, 'SIGINT');
  });

  test('leaves no process for more than a few seconds if it is killed', async () => {
    const service = await npmStart();
    const { stdout } = await run('pgrep', ['-P', String(service.child.pid)]);
    process.kill(Number(stdout.trim().split('\n')[0]), 'SIGKILL');
    await service.ended;
    await expect.poll(() => processesOf(dataDir), { timeout: 10_000 }).toEqual([]);
  });

  test.each([
    ['during a first start', 'other', /database migrated/],
    ['after it is ready', 'data', /^carillon ready (\S+)/m],
  ])('leaves no process if its terminal is closed %s', async (_case, name, line) => {
    const directory = join(parentDir, name);
    const inTerminal = ['script', '--quiet', '--return', '--command', 'npm start', '/dev/null'];
    const { child, ended } = await npmStart({ command: inTerminal, directory, line });
    child.kill('SIGKILL');
    await ended;
    await expect.poll(() => processesOf(directory), { timeout: 10_000 }).toEqual([]);
  });

  async function endBySignal(service: Started, signal: NodeJS.Signals): Promise<void> {
    // Signals the whole process group, like a terminal.
    if (service.child.pid) process.kill(-service.child.pid, signal);
    expect(await service.ended).toBe(0);
    await expect.poll(() => processesOf(dataDir), { timeout: 20_000 }).toEqual([]);
  }

  /**
   * Returns the id of the process of this data directory with this title, or 0 if there is none.
   */
  async function pidOf(name: string): Promise<number> {
    for (const path of await processesOf(dataDir)) {
      const pid = Number(path.split('/')[2]);
      const title = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (title.replaceAll('\0', '').trim() === `carillon ${name}`) return pid;
    }
    return 0;
  }
});
