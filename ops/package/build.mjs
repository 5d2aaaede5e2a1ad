// Compiles the sources into `dist` for `npm pack` and `npm publish` (`prepack`), because Node strips no types from files
// below `node_modules`. The
// processes start from a bundle of them. A checkout needs no build. `node ops/package/build.mjs clean` removes `dist`.
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle/bundler.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const target = join(root, 'dist');
const folders = ['api', 'connectors', 'dispatcher', 'ops', 'shared'];
/** Files that the running service reads besides its modules: migrations and example functions. */
const assetTypes = new Set(['.sql', '.js']);
/** The console, which is built apart. */
const consoleFolder = join('ops', 'console');

rmSync(target, { recursive: true, force: true });
if (process.argv[2] !== 'clean') await build();

async function build() {
  const compiler = join(root, 'node_modules', '@typescript', 'native', 'bin', 'tsc');
  execFileSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
  for (const file of folders.flatMap(assetsOf)) cpSync(join(root, file), join(target, file));
  // The installed package has neither the sources of the console nor its packages.
  execFileSync(process.execPath, [join(root, 'ops', 'cli', 'carillon.mjs'), 'console', 'build'], {
    cwd: root,
    stdio: 'inherit',
  });
  cpSync(join(root, 'ops', 'console', 'dist'), join(target, 'ops', 'console', 'dist'), { recursive: true });
  const { name, version, type } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(target, 'package.json'), `${JSON.stringify({ name, version, type }, null, 2)}\n`);
  await bundle(target, join(target, 'bundle'));
}

function assetsOf(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && assetTypes.has(extname(entry.name)))
    .filter((entry) => !join(entry.parentPath, '').startsWith(join(root, consoleFolder)))
    .map((entry) => join(dirname(join(entry.parentPath, entry.name)), entry.name).slice(root.length));
}
