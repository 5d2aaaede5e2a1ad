import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Supervised } from '../../../ops/local/supervised.ts';

/** Tests the supervision of processes by `npm start`. */
let folder: string;
let child: Supervised;
const lines: string[] = [];
const started: number[] = [];
const nodePath = process.execPath;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-supervised-'));
  await writeFile(
    join(folder, 'child.js'),
    'process.on("disconnect", () => process.exit()); process.send({ ready: true });',
  );
  child = new Supervised({
    name: 'child',
    file: 'child.ts',
    bundle: pathToFileURL(`${folder}/`),
    env: {},
    log: (line) => void lines.push(line),
    onMessage: () => void started.push(child.pid ?? 0),
  });
});

afterEach(async () => {
  process.execPath = nodePath;
  await child.stop(1000);
  await rm(folder, { recursive: true, force: true });
  lines.length = 0;
  started.length = 0;
});

const kill = async () => {
  const endings = lines.length;
  process.kill(child.pid ?? 0, 'SIGKILL');
  await expect.poll(() => lines.slice(endings).join()).toContain('child ended (SIGKILL)');
};

test('a message to a process that has ended is dropped', async () => {
  await child.start();
  await kill();
  await expect.poll(() => started.length).toBe(2);
  const errors: unknown[] = [];
  const listener = (error: unknown) => void errors.push(error);
  process.on('uncaughtException', listener);
  await kill();
  child.send({ devices: [] });
  await expect.poll(() => started.length, { timeout: 5000 }).toBe(3);
  process.off('uncaughtException', listener);
  expect(errors).toEqual([]);
});

test('a process that cannot be started again is tried until it starts', async () => {
  await child.start();
  process.execPath = join(folder, 'no-node');
  await kill();
  await expect.poll(() => lines.join()).toContain('ENOENT');
  process.execPath = nodePath;
  await expect.poll(() => started.length, { timeout: 5000 }).toBe(2);
});
