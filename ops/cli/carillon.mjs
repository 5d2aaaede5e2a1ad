#!/usr/bin/env node
// Plain JavaScript that runs on Node 20 and newer. It finds the Node version that the sources need.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const neededMajor = 24;
/**
 * Main module: in the bundle of an image, in a checkout, or in the bundle of `npm pack`
 * (ops/package/build.mjs).
 */
const commandLine = [
  '../../bundle/ops/cli/main.js',
  './main.ts',
  '../../dist/bundle/ops/cli/main.js',
]
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));
/** If these processes are bundled, they start without the command line to save memory. */
const isProcess = process.argv.length === 3 && ['api', 'dispatcher'].includes(process.argv[2]);
const main =
  isProcess && commandLine.href.endsWith('.js')
    ? new URL(`../../${process.argv[2]}/main.js`, commandLine)
    : commandLine;
/** Module that knows where `npm start` keeps the bundle of a checkout. */
const bundles = new URL('../package/bundle/place.mjs', import.meta.url);

/**
 * Memory limits. Node accepts them only at its start (shared/process/memory.ts). A test compares
 * the values with that file.
 */
const dispatcherFlags = ['--max-semi-space-size=16', '--max-old-space-size=512'];
const apiFlags = ['--max-semi-space-size=16', '--max-old-space-size=1024'];
const importFlags = ['--max-semi-space-size=4'];
const flagsOfCommand = new Map([
  ['api', apiFlags],
  ['import', importFlags],
  ['move-in', importFlags],
]);
const wanted = process.argv.includes('dispatcher')
  ? dispatcherFlags
  : (flagsOfCommand.get(process.argv[2]) ?? []);
// glibc reads this variable at the start of a process, so it works only in the child process.
const dispatcherMemory = { MALLOC_ARENA_MAX: '2' };
const memory = wanted === dispatcherFlags ? dispatcherMemory : {};
const flags = wanted.filter(
  (flag) => !process.execArgv.some((given) => given.startsWith(flag.split('=')[0])),
);

// Caches the compiled sources. The next start and every thread then need less time and memory. If
// the folder is read-only, Node compiles the sources on each start.
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
 * Returns the main module in the bundle of the current sources, if a previous start created the
 * bundle (ops/package/bundle).
 */
async function bundledMain() {
  if (!main.href.endsWith('.ts') || !existsSync(bundles)) return undefined;
  const { bundleFolder } = await import(bundles.href);
  const bundled = new URL('ops/cli/main.js', bundleFolder());
  return existsSync(bundled) ? bundled.href : undefined;
}

/** Finds the Node program in the optional package for this platform. */
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
 * Runs the command line with another Node and exits with its exit code or signal. If this process
 * is killed and cannot forward the signal, the closed IPC channel stops the child. IPC messages are
 * forwarded in both directions.
 */
function runWith(node) {
  const ignore = () => {};
  const child = spawn(node, [...flags, fileURLToPath(main), ...process.argv.slice(2)], {
    env: { ...memory, ...process.env },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'])
    process.on(signal, () => child.kill(signal));
  // Send errors are ignored, because the other side may exit at any time. The exit causes
  // `disconnect`.
  child.on('message', (message) => process.connected && process.send(message, ignore));
  process.on('message', (message) => child.connected && child.send(message, ignore));
  const disconnect = () => child.connected && child.disconnect();
  // The IPC channel closes when the process that started this process exits. `connected` is false
  // if it exited while this file was loading.
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
