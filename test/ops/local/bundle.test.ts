import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageVersion } from '../../../shared/config/config.ts';

const run = promisify(execFile);
const project = fileURLToPath(new URL('../../..', import.meta.url));

/** Returns the texts of the modules below a folder, by name. */
async function modulesBelow(folder: string): Promise<Map<string, string>> {
  const names = (await readdir(folder, { recursive: true })).filter(
    (name) => extname(name) === '.js',
  );
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return new Map(names.map((name, i) => [name, texts[i] ?? '']));
}

describe('the bundle of npm start', { timeout: 60_000 }, () => {
  let folder: string;
  let modules: Map<string, string>;

  beforeAll(async () => {
    const { stdout } = await run(process.execPath, [join(project, 'ops/package/bundle/build.mjs')]);
    folder = fileURLToPath(stdout.trim());
    modules = await modulesBelow(folder);
  }, 60_000);

  test('is built once for the same sources', async () => {
    const { stdout } = await run(process.execPath, [join(project, 'ops/package/bundle/build.mjs')]);
    expect(fileURLToPath(stdout.trim())).toBe(folder);
  });

  test('has every module that is started by its file name', async () => {
    const routes = (await readdir(join(project, 'api/routes'), { recursive: true }))
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `api/routes/${name}`);
    const started = [
      'api/main.ts',
      'dispatcher/main.ts',
      'dispatcher/sending/worker.ts',
      'ops/local/up.ts',
    ];
    for (const source of [...started, ...routes])
      expect(modules.has(source.replace(/\.ts$/, '.js')), source).toBe(true);
  });

  test('leads modules to their bundled form, and assets to their path in the sources', async () => {
    const name = [...modules.keys()].find((one) => one.includes('module-url')) ?? '';
    const { t: moduleUrl } = await import(pathToFileURL(join(folder, name)).href);
    const base = pathToFileURL(join(project, 'dispatcher/sending/pool.ts')).href;
    expect(fileURLToPath(moduleUrl('./worker.ts', base))).toBe(
      join(folder, 'dispatcher/sending/worker.js'),
    );
    const confined = pathToFileURL(join(project, 'ops/functions/confinement.ts')).href;
    expect(fileURLToPath(moduleUrl('./worker.ts', confined))).toBe(
      join(project, 'ops/functions/worker.ts'),
    );
    const { stdout } = await run(process.execPath, [join(folder, 'ops/cli/main.js'), '--version']);
    expect(stdout.trim()).toBe(packageVersion());
  });

  test('keeps texts that V8 stores in one byte per character, and known source positions', () => {
    for (const [name, text] of modules) {
      expect(/[^\0-\x7f]/.exec(text)?.index, name).toBeUndefined();
      expect(text, name).not.toMatch(
        /__ROOT__|__BUNDLE__|\b__(dirname|filename)\b|import\.meta\.(dir|file)name/,
      );
      for (const [, path = ''] of text.matchAll(
        /new URL\("((?:\.\.\/)+[^"]+)", import\.meta\.url\)/g,
      ))
        expect(
          existsSync(new URL(path, pathToFileURL(join(folder, name)))),
          `${name}: ${path}`,
        ).toBe(true);
    }
  });
});
