// Compiles the sources into `dist` for `npm pack` and `npm publish` (`prepack`), because Node does
// not strip types below `node_modules`. `tsconfig.build.json` lists the folders. A bundle of the
// result is created too, from which the processes start. A checkout needs no build. `node
// ops/package/build.mjs clean` removes `dist`. With a folder path as argument, it builds into that
// folder.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle/bundler.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [, , wanted = 'dist'] = process.argv;
const target = wanted === 'clean' ? join(root, 'dist') : resolve(root, wanted);

rmSync(target, { recursive: true, force: true });
if (wanted !== 'clean') await build();

async function build() {
  const compiler = join(root, 'node_modules', '@typescript', 'native', 'bin', 'tsc');
  run([compiler, '-p', 'tsconfig.build.json', '--outDir', target]);
  // Builds the console, because the installed package contains neither the console's sources nor
  // their packages.
  const cli = [join(root, 'ops', 'cli', 'carillon.mjs'), 'console', 'build', '--json'];
  const { digest } = JSON.parse(
    execFileSync(process.execPath, cli, { cwd: root, encoding: 'utf8' }),
  );
  // Files that the service reads in addition to its modules. Only the current console build is
  // copied, because a checkout may contain older builds.
  const built = ['current.json', digest].map((name) => join('ops', 'console', 'dist', name));
  const page = [join('ops', 'local', 'try', 'site'), join('examples', 'web')];
  const assets = [join('shared', 'db', 'migrations'), ...built, ...page];
  for (const folder of assets)
    cpSync(join(root, folder), join(target, folder), { recursive: true });
  const { name, version, type } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(
    join(target, 'package.json'),
    `${JSON.stringify({ name, version, type }, null, 2)}\n`,
  );
  await bundle(target, join(target, 'bundle'));
}

function run(args) {
  execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
}
