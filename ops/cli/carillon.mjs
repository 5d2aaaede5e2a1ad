#!/usr/bin/env node
// Plain JavaScript for Node 20 and newer, which finds the Node version that the sources need.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const neededMajor = 24;
/**
 * Main module: of an image's bundle, of a checkout, or of the bundle of `npm pack`
 * (ops/package/build.mjs).
 */
const commandLine = [
  '../../bundle/ops/cli/main.js',
  './main.ts',
  '../../dist/bundle/ops/cli/main.js',
]
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));
/** Processes that start without the command line where they are bundled, since it takes 4 MB. */
const isProcess = process.argv.length === 3 && ['api', 'dispatcher'].includes(process.argv[2]);
const main =
  isProcess && commandLine.href.endsWith('.js')
    ? new URL(`../../${process.argv[2]}/main.js`, commandLine)
    : commandLine;
/** Tells where `npm start` keeps a bundle of the sources of a checkout. */
const bundles = new URL('../package/bundle/place.mjs', import.meta.url);

/**
 * Memory limits, which Node takes only at the start (see shared/process/memory.ts; a test compares
 * them).
 */
const dispatcherFlags = ['--max-semi-space-size=16', '--max-old-space-size=512'];
const apiFlags = ['--max-semi-space-size=8', '--max-old-space-size=1024'];
const importFlags = ['--max-semi-space-size=4'];
const flagsOfCommand = new Map([
  ['api', apiFlags],
  ['import', importFlags],
  ['move-in', importFlags],
]);
const wanted = process.argv.includes('dispatcher')
  ? dispatcherFlags
  : (flagsOfCommand.get(process.argv[2]) ?? []);
// glibc reads it at the start, so only a process that this one starts has it.
const dispatcherMemory = { MALLOC_ARENA_MAX: '2' };
const memory = wanted === dispatcherFlags ? dispatcherMemory : {};
const flags = wanted.filter(
  (flag) => !process.execArgv.some((given) => given.startsWith(flag.split('=')[0])),
);

// Caches compiled sources for the next start and for every thread, which saves 20 MB and half of
// the time. If the folder is read-only, Node compiles them each time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL('../../node_modules/.cache/compiled', import.meta.url),
);
module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);

const isNewEnough = Number(process.versions.node.split('.')[0]) >= neededMajor;
if (isNewEnough && flags.length === 0) {
  await import((process.argv[2] === 'up' && (await bundledMain())) || main.href);
} else {
  const node = isNewEnough ? process.execPath : findNode();
  if (node) runWith(node);
  else {
    console.error(
      `Node ${neededMajor} is missing (this is ${process.version}): an optional package brings it for Linux, Windows and Intel Macs. ` +
        `Run \`npm ci --include=optional\`, or put a Node ${neededMajor} first in PATH.`,
    );
    process.exitCode = 1;
  }
}

/**
 * Returns the main module in the bundle of these sources, if the last start made it
 * (ops/package/bundle).
 */
async function bundledMain() {
  if (!main.href.endsWith('.ts') || !existsSync(bundles)) return undefined;
  const { bundleFolder } = await import(bundles.href);
  const bundled = new URL('ops/cli/main.js', bundleFolder());
  return existsSync(bundled) ? bundled.href : undefined;
}

/** Finds the Node of the optional package for this platform. */
function findNode() {
  try {
    const platform = process.platform === 'win32' ? 'win' : process.platform;
    const packageFile = createRequire(import.meta.url).resolve(
      `node-${platform}-${process.arch}/package.json`,
    );
    const file = join(dirname(packageFile), 'bin', platform === 'win' ? 'node.exe' : 'node');
    return existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Runs the command line with another Node and exits in the same way. The closed IPC channel stops
 * the child when this process is killed and cannot forward the signal. Messages pass through in
 * both directions.
 */
function runWith(node) {
  const ignore = () => {};
  const child = spawn(node, [...flags, fileURLToPath(main), ...process.argv.slice(2)], {
    env: { ...memory, ...process.env },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'])
    process.on(signal, () => child.kill(signal));
  // The other side may exit at any time, which causes `disconnect`.
  child.on('message', (message) => process.connected && process.send(message, ignore));
  process.on('message', (message) => child.connected && child.send(message, ignore));
  const disconnect = () => child.connected && child.disconnect();
  // The channel ends with the process that started this one: `false` when it ended while this file
  // was loaded.
  if (process.connected === false) disconnect();
  else if (process.connected) process.on('disconnect', disconnect);
  child.on('error', (error) => {
    console.error(`carillon: ${node} cannot be run (${error.code ?? error.message})`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
