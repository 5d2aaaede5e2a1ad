import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isAlive } from '../../../ops/local/postgres/data-directory.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../ops/local/postgres/server.ts';

const serverModule = new URL('../../../ops/local/postgres/server.ts', import.meta.url).href;
const ordinaryUser = { uid: 65534, gid: 65534 };
const isRoot = process.getuid?.() === 0;
// An ordinary user cannot run a project below a closed folder, so there is nothing to test.
const canBecomeOrdinaryUser =
  isRoot &&
  spawnSync(process.execPath, [new URL(serverModule).pathname], { ...ordinaryUser, cwd: '/' })
    .status === 0;

const started: EmbeddedPostgres[] = [];
/** Folder of one test. */
let parentDir = '';
/**
 * Folder of all tests. The first test that starts a server on `usedDir` creates the data for the
 * others.
 */
let sharedDir = '';
let usedDir = '';

/** Starts a server below the folder of the test. It is stopped after the test. */
async function start(
  dataDir = join(parentDir, 'data'),
  durable = false,
): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, memoryMb: 512, durable });
  started.push(server);
  return server;
}

/** Runs one statement. Returns the first column of the first row. */
async function query(server: { databaseUrl: string }, statement: string): Promise<unknown> {
  const client = new Client({ connectionString: server.databaseUrl });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const result = await client.query({ text: statement, rowMode: 'array' });
    return result.rows[0]?.[0];
  } finally {
    await client.end();
  }
}

/** Starts a server in a separate process, which prints its process id and waits to be killed. */
async function startInChild(dataDir: string, ids: { uid?: number; gid?: number } = {}) {
  const script = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(serverModule)});
    const options = { dataDir: ${JSON.stringify(dataDir)}, memoryMb: 512, durable: false };
    const server = await startEmbeddedPostgres(options);
    process.on('SIGTERM', () => server.stop());
    console.log(server.pid, server.databaseUrl);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    ...ids,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const [pid = '', databaseUrl = ''] = String(line).split(' ');
  return { child, pid: Number(pid), databaseUrl };
}

/** Waits until the process has exited. A zombie process counts as exited. */
async function waitForEnd(pid: number): Promise<void> {
  const hasEnded = async () => {
    if (!isAlive(pid)) return true;
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    return stat.includes(') Z ');
  };
  await expect.poll(hasEnded, { timeout: 20_000, interval: 50 }).toBe(true);
}

/** Returns the number of pages that the kernel mapped for a process without reading from disk. */
async function pageFaultsOf(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The fields after the program name start with the third field (proc(5)). `minflt` is the tenth.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[7]);
}

async function makeOpenDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'carillon-embedded-'));
  await chmod(dir, 0o777);
  return dir;
}

beforeAll(async () => {
  sharedDir = await makeOpenDir();
  usedDir = join(sharedDir, 'data');
});
afterAll(() => rm(sharedDir, { recursive: true, force: true }));

beforeEach(async () => {
  parentDir = await makeOpenDir();
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop('immediate')));
  await rm(parentDir, { recursive: true, force: true });
});

describe('startEmbeddedPostgres', () => {
  test('creates a UTF-8 database and keeps its data for the next start', async () => {
    const first = await start();
    expect(await query(first, 'SHOW server_encoding')).toBe('UTF8');
    expect(await query(first, "SELECT upper('äß 你')")).toBe('Äß 你');
    await query(first, 'CREATE TABLE kept AS SELECT 7 AS n');
    await first.stop();
    expect(await first.exited).toEqual({ code: 0, signal: null });
    const second = await start();
    expect(await query(second, 'SELECT n FROM kept')).toBe(7);
  });

  test('listens only on a socket in a folder of mode 700, and removes the folder', async () => {
    const server = await start(usedDir);
    expect(await query(server, 'SHOW listen_addresses')).toBe('');
    expect((await stat(server.socketDir)).mode & 0o777).toBe(0o700);
    await server.stop();
    await expect(stat(server.socketDir)).rejects.toThrow('ENOENT');
  });

  test('writes commits to disk before it confirms them, unless `durable` is false', async () => {
    const server = await start(usedDir, true);
    for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
      expect(await query(server, `SHOW ${setting}`)).toBe('on');
    }
  });

  test.skipIf(process.platform !== 'linux')(
    'keeps the memory of a statement for the next statement of the same connection',
    async () => {
      const { databaseUrl } = await start(usedDir);
      const client = new Client({ connectionString: databaseUrl });
      await client.connect();
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      // A string of 4 MB grows in memory, which takes at least 1,000 pages.
      const statement =
        "SELECT length(string_agg(repeat('x', 100), '')) FROM generate_series(1, 40_000)";
      await client.query(statement);
      const before = await pageFaultsOf(rows[0]?.pid);
      for (let i = 0; i < 10; i += 1) await client.query(statement);
      expect((await pageFaultsOf(rows[0]?.pid)) - before).toBeLessThan(1000);
      await client.end();
    },
  );

  test('rolls back transactions and stops while clients are connected', async () => {
    const server = await start(usedDir);
    const client = new Client({ connectionString: server.databaseUrl });
    client.on('error', () => undefined);
    await client.connect();
    await client.query('BEGIN');
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    await client.end().catch(() => undefined);
  });

  test('recovers committed data after its server was killed', async () => {
    const first = await start(usedDir, true);
    await query(first, 'CREATE TABLE kept AS SELECT 7 AS n');
    process.kill(first.pid, 'SIGKILL');
    expect(await first.exited).toEqual({ code: null, signal: 'SIGKILL' });
    const second = await start(usedDir);
    expect(await query(second, 'SELECT n FROM kept')).toBe(7);
  });

  test('ignores a lock file with the process id of another program', async () => {
    await (await start(usedDir)).stop();
    const lines = [process.pid, usedDir, 1, 5432, '/nowhere', '', '1 1', 'ready', ''];
    await writeFile(join(usedDir, 'postmaster.pid'), lines.join('\n'));
    const server = await start(usedDir);
    expect(await query(server, 'SELECT 1')).toBe(1);
  });

  test('refuses a data directory in use and names the process', async () => {
    const server = await start(usedDir);
    await expect(start(usedDir)).rejects.toThrow(
      `already running on ${usedDir} (process ${server.pid})`,
    );
    expect(await query(server, 'SELECT 1')).toBe(1);
  });

  test('lets one of two concurrent first starts succeed', async () => {
    const outcomes = await Promise.allSettled([start(), start()]);
    expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(['fulfilled', 'rejected']);
    const [winner] = started;
    expect(winner && (await query(winner, 'SELECT 1'))).toBe(1);
  });

  test('refuses a folder with other content, and does not change it', async () => {
    const notes = join(parentDir, 'data', 'notes.txt');
    await mkdir(dirname(notes));
    await writeFile(notes, 'mine');
    await expect(start()).rejects.toThrow('holds no PostgreSQL data');
    expect(await readFile(notes, 'utf8')).toBe('mine');
  });

  test('runs with a path that is too long for a socket', async () => {
    const server = await start(
      join(parentDir, 'a folder with a long name '.repeat(6), 'x'.repeat(120), 'data'),
    );
    expect(await query(server, 'SELECT 1')).toBe(1);
  });

  test('stops when its parent process is killed, and can start again immediately', async () => {
    const { child, pid } = await startInChild(usedDir);
    child.kill('SIGKILL');
    const again = await start(usedDir);
    expect(again.pid).not.toBe(pid);
    await waitForEnd(pid);
  });

  test.skipIf(!canBecomeOrdinaryUser)('runs for an ordinary user', async () => {
    const { child, databaseUrl } = await startInChild(join(parentDir, 'data'), ordinaryUser);
    expect((await stat(join(parentDir, 'data'))).uid).toBe(ordinaryUser.uid);
    expect(await query({ databaseUrl }, 'SELECT 1')).toBe(1);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  test.skipIf(!isRoot)('runs for root below a folder that only root can enter', async () => {
    await chmod(parentDir, 0o700);
    const server = await start();
    await query(server, 'CREATE TABLE kept AS SELECT 7 AS n');
    await server.stop();
    const again = await start();
    expect(await query(again, 'SELECT n FROM kept')).toBe(7);
    // Without user namespaces, the data is in another folder.
    const realDir = await realpath(join(parentDir, 'data'));
    await again.stop();
    if (!realDir.startsWith(parentDir)) await rm(dirname(realDir), { recursive: true });
  });
});
