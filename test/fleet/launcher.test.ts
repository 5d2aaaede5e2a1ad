import { spawn } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  apiFlags,
  dispatcherFlags,
  dispatcherMemory,
  importFlags,
} from '../../shared/process/memory.ts';
import { testConfig } from '../support/api.ts';
import { bareEnvironment, carillonProcess, launcher } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

/** Makes the launcher see Node 20. Its child process does not get this argument. */
const pretendOld = [
  '--import',
  `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.0.0'}})`,
];

let database: TestDatabase;
let env: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase();
  const { adminToken, secrets } = testConfig(database.url);
  env = {
    ...bareEnvironment(),
    DATABASE_URL: database.url,
    CARILLON_ADMIN_TOKEN: adminToken,
    CARILLON_SECRET: secrets.map((key) => key.toString('base64')).join(','),
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
  };
});

afterAll(() => database.drop());

describe('on a Node version that is too old', () => {
  test('runs the command with the Node of the npm package', async () => {
    expect(await carillonProcess(['--help'], { nodeArgs: pretendOld })).toMatchObject({
      code: 0,
      stderr: '',
    });
    // Not the folder of this checkout, which contains a token after `npm start`.
    const env = { PORT: '9', CARILLON_DATA_DIR: join(tmpdir(), 'carillon-without-data') };
    const wrong = await carillonProcess(['app', 'list', '--json'], { nodeArgs: pretendOld, env });
    expect(wrong.code).toBe(1);
    expect(wrong.json().error).toContain('There is no admin token');
    expect((await carillonProcess(['nonsense'], { nodeArgs: pretendOld })).code).toBe(2);
  });

  test('without that Node prints one message and exits with 1', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'carillon-launcher-'));
    const copy = join(folder, 'carillon.mjs');
    await copyFile(launcher, copy);
    const child = spawn(process.execPath, [...pretendOld, copy, 'up'], { env: bareEnvironment() });
    const [stderr, code] = await Promise.all([
      text(child.stderr),
      new Promise((resolve) => child.once('close', resolve)),
    ]);
    await rm(folder, { recursive: true });
    expect(code).toBe(1);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/^Node 24 is missing \(this is v.*Run `npm ci --include=optional`/);
  });
});

interface Announced {
  pid: number;
  process: string;
}

/** Starts a long-running command and waits for its document. */
async function start(name: string, nodeArgs: string[] = []) {
  const child = spawn(process.execPath, [...nodeArgs, launcher, name, '--json'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  const messages: unknown[] = [];
  child.on('message', (message) => messages.push(message));
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  );
  const document = await new Promise<Announced>((resolve, reject) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(JSON.parse(chunk.toString())));
    void ended.then(() => reject(new Error('it ended')));
  });
  return { child, document, ended, messages };
}

/** Waits until a process has exited. Returns false if it still runs after `timeoutMs`. */
async function hasExited(pid: number, timeoutMs = 5000): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < timeoutMs; waitedMs += 50) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

test.each([
  ['dispatcherFlags', dispatcherFlags],
  ['apiFlags', apiFlags],
  ['importFlags', importFlags],
])(
  'the command line starts a process with the same %s as `npm start` and the benchmarks',
  async (name, flags) => {
    expect(await readFile(launcher, 'utf8')).toContain(
      `const ${name} = [${flags.map((flag) => `'${flag}'`).join(', ')}];`,
    );
  },
);

test('a dispatcher gets the memory settings of `npm start`, also in the image', async () => {
  const settings = Object.entries(dispatcherMemory);
  const members = settings.map(([name, value]) => `${name}: '${value}'`).join(', ');
  expect(await readFile(launcher, 'utf8')).toContain(`const dispatcherMemory = { ${members} };`);
  const image = await readFile(
    new URL('../../ops/deploy/image/Dockerfile', import.meta.url),
    'utf8',
  );
  for (const [name, value] of settings) expect(image).toContain(`    ${name}=${value}\n`);
});

describe.each([
  ['api', []],
  ['dispatcher', []],
  ['api', pretendOld],
])('carillon %s %j', (name, nodeArgs) => {
  test.each(['SIGTERM', 'SIGINT'] as const)('exits cleanly with code 0 on %s', async (signal) => {
    const { child, document, ended, messages } = await start(name, nodeArgs);
    expect(document).toMatchObject({ process: name });
    // Each process is started by another process that sets its memory limits.
    expect(document.pid === child.pid).toBe(false);
    child.kill(signal);
    expect(await ended).toEqual({ code: 0, signal: null });
    expect(await hasExited(document.pid)).toBe(true);
    expect(messages).toContainEqual({ ready: true });
  });
});

test('stops when its launcher is killed', async () => {
  const { child, document } = await start('api', pretendOld);
  child.kill('SIGKILL');
  expect(await hasExited(document.pid)).toBe(true);
});

test('stops when its supervisor exits', async () => {
  const { child, document, ended } = await start('api', pretendOld);
  child.disconnect();
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(await hasExited(document.pid)).toBe(true);
});
