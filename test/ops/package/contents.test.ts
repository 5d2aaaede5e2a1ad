import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../..', import.meta.url));
/**
 * Folder that looks like the installed package. It is below `node_modules`, so that modules find
 * the dependencies.
 */
let folder = '';
let packed: string[] = [];

/** Time to build the package while other tests use all CPUs, in ms. */
const buildMs = 180_000;

beforeAll(async () => {
  const cache = join(root, 'node_modules', '.cache');
  await mkdir(cache, { recursive: true });
  folder = await mkdtemp(join(cache, 'package-'));
  await run(process.execPath, ['ops/package/build.mjs', join(folder, 'dist')], { cwd: root });
  const manifest = z.object({ files: z.array(z.string()) });
  const { files } = manifest.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')));
  for (const file of [
    'package.json',
    'README.md',
    'LICENSE',
    ...files.filter((name) => name !== 'dist/'),
  ]) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await cp(join(root, file), join(folder, file), { recursive: true });
  }
  const pack = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: folder,
  });
  const report = z.array(z.object({ files: z.array(z.object({ path: z.string() })) }));
  packed = report
    .parse(JSON.parse(pack.stdout))
    .flatMap((one) => one.files.map(({ path }) => path));
}, buildMs);

afterAll(() => rm(folder, { recursive: true, force: true }));

/**
 * Returns the start of a packed file's path, up to the first name below `dist`, `bundle` and `ops`.
 */
const partOf = (path: string): string =>
  /^(?:dist\/)?(?:bundle\/)?(?:ops\/)?[^/]+/.exec(path)?.[0] ?? path;

describe('npm pack', () => {
  test('contains what an operator runs, and no development tools', () => {
    expect([...new Set(packed.map(partOf))].sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'dist/api',
      'dist/bundle/api',
      'dist/bundle/chunks',
      'dist/bundle/dispatcher',
      'dist/bundle/ops/cli',
      'dist/bundle/ops/console',
      'dist/bundle/ops/local',
      'dist/bundle/ops/sandbox',
      'dist/connectors',
      'dist/dispatcher',
      // Examples of the description at /openapi.json.
      'dist/docs',
      // Service worker of the page that tries Web Push.
      'dist/examples',
      'dist/ops/cli',
      'dist/ops/client',
      'dist/ops/console',
      'dist/ops/functions',
      'dist/ops/import',
      'dist/ops/local',
      'dist/ops/move-in',
      'dist/ops/package',
      'dist/ops/sandbox',
      'dist/package.json',
      'dist/shared',
      'ops/cli',
      'package.json',
    ]);
  });

  test('contains one documentation file, and of the builds only what `carillon up` imports', () => {
    const small = packed.filter((path) => /^dist\/(docs|ops\/package)\//.test(path));
    expect(small.sort()).toEqual([
      'dist/docs/examples.json',
      'dist/ops/package/bundle/background.js',
    ]);
  });

  test('contains the built console without its sources', () => {
    const parts = packed.filter((path) => path.startsWith('dist/ops/console/'));
    expect([...new Set(parts.map((path) => path.split('/')[3]))].sort()).toEqual([
      'build.js',
      'dist',
      'guide-files.js',
    ]);
    expect(parts.filter((path) => path.endsWith('/index.html'))).toHaveLength(1);
    // This file names the current build.
    expect(parts).toContain('dist/ops/console/dist/current.json');
  });

  test('contains the page that tries Web Push, with the worker of the example', () => {
    const page = ['index.html', 'page.css', 'page.js'].map((name) => `ops/local/try/site/${name}`);
    const example = ['sw.js', 'carillon-push.js'].map((name) => `examples/web/${name}`);
    for (const path of [...page, ...example]) expect(packed).toContain(`dist/${path}`);
  });

  test('contains every migration', async () => {
    const { stdout } = await run('git', ['ls-files', 'shared/db/migrations'], { cwd: root });
    const migrations = stdout.trim().split('\n');
    expect(packed.filter((path) => path.endsWith('.sql')).sort()).toEqual(
      migrations.map((path) => `dist/${path}`).sort(),
    );
  });
});

describe('the command line of the package', () => {
  const carillon = async (...args: string[]) => {
    const file = join(folder, 'ops/cli/carillon.mjs');
    return run(process.execPath, [file, ...args], { cwd: folder }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: unknown) =>
        z.object({ code: z.number(), stdout: z.string(), stderr: z.string() }).parse(error),
    );
  };
  const sentence = 'Benchmarks are in the repository: run `npm run bench` in a clone of it.';

  test('does not list `bench` in its help', async () => {
    const { code, stdout } = await carillon('--help');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}migrate /m);
    expect(stdout).not.toContain('bench');
  });

  test.each([[['bench']], [['bench', 'pipeline', '--threads', '1']], [['bench', '--help']]])(
    'answers %j with one sentence that says where benchmarks are',
    async (args) => {
      expect(await carillon(...args)).toEqual({
        code: 1,
        stdout: '',
        stderr: `carillon: ${sentence}\n`,
      });
    },
  );

  test('answers `bench --json` with one document', async () => {
    const { code, stdout } = await carillon('bench', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({ error: sentence });
  });
});
