import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { FunctionHost } from '../../../ops/functions/host.ts';
import { carillonProcess } from '../../support/cli.ts';

/**
 * Tests what a malicious function can access, on a host that root starts and on a host of an
 * ordinary user.
 */
const token = 'a token of both of them';
const secret = 'the-secret-of-the-service';
const isRoot = process.getuid?.() === 0;

/**
 * Escape attempts. Each is the body of a function with one argument `at`, the target, and returns
 * what it read.
 */
const escapes: Record<string, string> = {
  'the environment of its own process': "readFileSync('/proc/self/environ')",
  'the environment of the host': "readFileSync('/proc/' + process.ppid + '/environ')",
  'the environment of a process of the service': "readFileSync('/proc/' + at.pid + '/environ')",
  'the command lines of processes': "readdirSync('/proc')",
  'a secret file': 'readFileSync(at.file)',
  'a secret file by a path through its folder': "readFileSync(at.dir + '/../' + at.fileBelow)",
  'a secret file by its bytes': 'readFileSync(Buffer.from(at.file))',
  'a secret file as a module': "(await import(at.json, { with: { type: 'json' } })).default",
  'a secret file by require': 'createRequire(import.meta.url)(at.json)',
  'a secret file as a blob': '(await openAsBlob(at.file)).text()',
  'a secret file as an environment': 'process.loadEnvFile(at.file)',
  'a file to write': "writeFileSync(at.dir + '/new.js', 'x')",
  'a child process': "(await import('node:child_process')).execFileSync('id')",
  'a cluster': "(await import('node:cluster')).default.fork().id",
  'a thread':
    "new (await import('node:worker_threads')).Worker('1', { eval: true, execArgv: [] }).threadId",
  'a native addon': 'process.dlopen({ exports: {} }, at.addon)',
  'an inspector': "new (await import('node:inspector')).Session().connect() ?? 'connected'",
  'an open debugger': "(await import('node:inspector')).open(0) ?? 'open'",
  'another debugger by a signal': "process.kill(at.pid, 'SIGUSR1')",
  'another debugger by a named import': "(await import('node:process')).kill(at.pid, 0)",
  'another debugger by the name of Node': 'process._debugProcess(at.pid) ?? 1',
  'internals of Node': "process.binding('fs') && 1",
  WASI: "new (await import('node:wasi')).WASI({ version: 'preview1', preopens: { '/': '/' } }) && 1",
  'a database file': "new (await import('node:sqlite')).DatabaseSync(':memory:') && 1",
  'root again': 'process.setuid(0) ?? process.setuid(0)',
};

/**
 * Errors that show that an escape attempt was blocked, as opposed to errors in the test's own code.
 */
const refusals =
  /^(ERR_ACCESS_DENIED|ERR_DLOPEN_DISABLED|ERR_UNKNOWN_BUILTIN_MODULE|EPERM|.*(?:kill|_debugProcess) is not a function)$/;

const preamble = `import { openAsBlob, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';`;

let parent: string;
let dir: string;
let victim: ChildProcess;
const hosts: FunctionHost[] = [];

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'carillon-confined-'));
  await chmod(parent, 0o755);
  dir = join(parent, 'functions');
  await mkdir(dir);
  await writeFile(join(parent, 'secret.json'), JSON.stringify({ secret }), { mode: 0o600 });
  const tries = Object.entries(escapes).map(
    ([name, code]) => `${JSON.stringify(name)}: async (at) => ${code},`,
  );
  await writeFile(
    join(dir, 'tries.js'),
    `${preamble}
const ways = { ${tries.join('\n')} };
export default async ({ way, at }) => {
  try { return { got: String(await ways[way](at)) }; } catch (error) { return { error: error.code ?? error.message }; }
};`,
  );
  await writeFile(
    join(dir, 'who.js'),
    'export default () => [process.getuid(), Object.keys(process.env)];',
  );
  await writeFile(join(dir, '_help.js'), 'export const helped = 1;');
  await writeFile(
    join(dir, 'helped.js'),
    "import { helped } from './_help.js'; export default () => helped;",
  );
  victim = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
    env: { CARILLON_SECRET: secret },
  });
});
afterAll(async () => {
  victim.kill('SIGKILL');
  for (const host of hosts) await host.close();
  await rm(parent, { recursive: true });
});

/** Variables of other programs that contain secrets under various names. */
const foreign = [
  ...[
    'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'AWS_SECRET_ACCESS_KEY',
    'DB_PASSWORD',
    'APP_SECRET',
  ],
  ...[
    'STRIPE_KEY',
    'GITHUB_TOKEN',
    'SMTP_URL',
    'SMS_URL',
    'SMS_WEBHOOK_URL',
    'OPERATOR_MAIL',
    'PGPASSWORD',
    'NODE_OPTIONS',
  ],
  ...[
    'LD_PRELOAD',
    'HTTPS_PROXY',
    'OIDC_CLIENT_SECRET',
    'function_own',
    'FUNCTION_',
    'MY_FUNCTION_X',
    'PATHS',
  ],
];

async function startHost(of: string, isSameUser: boolean, maxProcesses?: number) {
  const logged: string[] = [];
  const env = {
    PATH: '/bin',
    CARILLON_SECRET: secret,
    DATABASE_URL: secret,
    METRICS_TOKEN: secret,
    ...Object.fromEntries(foreign.map((name) => [name, secret])),
    FUNCTION_OWN: 'x',
    TZ: 'UTC',
  };
  const common = { dir: of, port: 0, token, apiUrl: 'http://127.0.0.1:1', env, isSameUser };
  const host = new FunctionHost({
    ...common,
    log: (line) => void logged.push(line),
    ...(maxProcesses === undefined ? {} : { maxProcesses }),
  });
  hosts.push(host);
  const port = await host.start();
  const call = async (name: string, body: object = {}) => {
    const headers = { 'X-Carillon-Functions-Token': token };
    const url = `http://127.0.0.1:${port}/1.1/functions/${name}`;
    const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    const text: { result?: unknown; code?: number } = JSON.parse(await reply.text());
    return { status: reply.status, ...text };
  };
  return { host, call, logged };
}

describe.each([
  { who: 'as root starts it', isSameUser: false },
  { who: 'of the same user as the service', isSameUser: true },
])('a function $who', ({ isSameUser }) => {
  let call: Awaited<ReturnType<typeof startHost>>['call'];
  beforeAll(async () => {
    ({ call } = await startHost(dir, isSameUser));
  });

  test.each(Object.keys(escapes))('cannot get %s', async (way) => {
    const file = join(parent, 'secret.json');
    const addon = new URL('../../../node_modules/@node-rs/argon2/index.js', import.meta.url)
      .pathname;
    const at = { pid: victim.pid, file, json: file, fileBelow: 'secret.json', dir, addon };
    const { result } = await call('tries', { way, at });
    // As root, the last attempt would only set the user that the process already has.
    if (way === 'root again' && (isSameUser || !isRoot)) return;
    expect(result).toEqual({ error: expect.stringMatching(refusals) });
  });

  test('sees only the variables for functions, and can import files of its folder', async () => {
    const { result } = await call('who');
    const [uid, names] = Array.isArray(result) ? result : [];
    // Node itself sets the last variable for the IPC channel.
    expect(names.toSorted()).toEqual(expect.arrayContaining(['FUNCTION_OWN', 'PATH', 'TZ']));
    const others = names.filter((name: string) => !['FUNCTION_OWN', 'PATH', 'TZ'].includes(name));
    expect(others.filter((name: string) => !name.startsWith('NODE_CHANNEL_'))).toEqual([]);
    if (isRoot) expect(uid === 0).toBe(isSameUser);
    expect((await call('helped')).result).toBe(1);
  });
});

describe('a folder of functions', () => {
  test.runIf(isRoot)(
    'that only root can read is run from a copy, which is deleted when the host ends',
    async () => {
      const closed = join(parent, 'closed');
      await mkdir(join(closed, 'hooks'), { recursive: true });
      await writeFile(join(closed, 'one.js'), 'export default () => 1;', { mode: 0o600 });
      await writeFile(join(closed, 'hooks/_User.beforeSave.js'), 'export default () => undefined;');
      await symlink(join(parent, 'secret.json'), join(closed, '_link.json'));
      await chmod(closed, 0o700);
      // Uses its own folder, because concurrent tests create copies too.
      const temporary = join(parent, 'temporary');
      await mkdir(temporary);
      await chmod(temporary, 0o755);
      vi.stubEnv('TMPDIR', temporary);
      onTestFinished(() => void vi.unstubAllEnvs());
      const { host, call, logged } = await startHost(closed, false);
      expect((await call('one')).result).toBe(1);
      expect(logged.join()).toContain('functions run from a copy');
      expect(await readdir(temporary)).toHaveLength(1);
      await writeFile(join(closed, 'one.js'), 'export default () => 2;');
      await expect.poll(async () => (await call('one')).result).toBe(2);
      await host.close();
      expect(await readdir(temporary)).toEqual([]);
    },
  );

  test.runIf(isRoot)('that is copied keeps the files of a running call until it ends', async () => {
    const closed = join(parent, 'closed-later');
    const temporary = join(parent, 'temporary-later');
    await mkdir(closed);
    await mkdir(temporary);
    await chmod(temporary, 0o755);
    await writeFile(join(closed, 'one.js'), 'export default () => 1;');
    await writeFile(join(closed, '_late.js'), 'export const value = 1;');
    await writeFile(
      join(closed, 'late.js'),
      "export default async ({ url }) => { await fetch(url); return (await import('./_late.js')).value; };",
    );
    await chmod(closed, 0o700);
    vi.stubEnv('TMPDIR', temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    const requested = Promise.withResolvers<ServerResponse>();
    const server = createServer((_request, response) => requested.resolve(response));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const { host, call } = await startHost(closed, false);
    const late = call('late', { url: `http://127.0.0.1:${port}` });
    const response = await requested.promise;
    for (const value of [2, 3]) {
      await writeFile(join(closed, 'one.js'), `export default () => ${value};`);
      await expect.poll(async () => (await call('one')).result).toBe(value);
    }
    response.end();
    expect(await late).toEqual({ status: 200, result: 1 });
    await expect.poll(() => readdir(temporary)).toHaveLength(1);
    await host.close();
    expect(await readdir(temporary)).toEqual([]);
  });

  test('with a star in its path is refused, because Node would allow more', async () => {
    const starred = join(parent, 'all*');
    await mkdir(starred);
    await expect(startHost(starred, true)).rejects.toThrow('must not have a *');
  });

  test('that contains the data directory is refused at the start', async () => {
    const env = { CARILLON_FUNCTIONS_DIR: parent, CARILLON_DATA_DIR: join(parent, 'data') };
    const { code, stderr } = await carillonProcess(['up'], { env });
    expect([code, stderr]).toEqual([1, expect.stringContaining('holds the data directory')]);
  });
});

test('at the limit of processes replaces an idle process, or refuses if all are busy', async () => {
  const many = join(parent, 'many');
  await mkdir(many);
  const waits = 'export default ({ wait }) => wait ? new Promise(() => undefined) : process.pid;';
  for (const name of ['a', 'b', 'c']) await writeFile(join(many, `${name}.js`), waits);
  const { call, host } = await startHost(many, true, 2);
  const first = (await call('a')).result;
  await call('b');
  expect((await call('c')).status).toBe(200);
  expect((await call('a')).result).not.toBe(first);
  const atWork = Promise.allSettled([call('a', { wait: true }), call('c', { wait: true })]);
  await expect.poll(async () => (await call('b')).status).toBe(429);
  await host.close();
  await atWork;
});
