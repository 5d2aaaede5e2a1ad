import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  type ConsoleBuild,
  consoleBuild,
  consoleFolder,
  currentBuildFile,
  fallbackConsoleFolder,
  readBuild,
} from '../../api/services/server/console-files.ts';

import { systemClock } from '../../shared/clock.ts';
import { currentEnvironment } from '../../shared/config/config.ts';
import { isGuideFile } from './guide-files.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const sources = join(root, 'ops', 'console');
const bundler = join(sources, 'bundle.ts');
const maxBuildMs = 60_000;

/** Result of a build of the console. */
export interface BuiltConsole {
  digest: string;
  folder: string;
  /** False if a build of these sources already existed. */
  isNew: boolean;
}

/**
 * Builds the console in a separate process if its sources changed since the last build. Makes the
 * result the current build of `folder`. Concurrent calls and processes are safe: each builds into
 * its own folder, and the last one wins. If the sources or the bundler are missing (an installed
 * package contains only the build), returns the existing build. Throws if there is no build either,
 * if the folder is not writable, or if the build fails.
 */
export async function buildConsole(
  folder: string = consoleFolder,
  signal?: AbortSignal,
): Promise<BuiltConsole> {
  const existing = await readBuild(folder);
  if (!(await exists(bundler)) || !(await exists(join(root, 'node_modules', 'vite')))) {
    if (existing) return { digest: existing.digest, folder, isNew: false };
    throw new Error(
      'the console cannot be built here: `vite` is missing; run `npm ci` without --omit=dev',
    );
  }
  const digest = await digestOfSources();
  if (existing?.digest === digest) return { digest, folder, isNew: false };
  const target = join(folder, digest);
  const temporary = `${target}.${randomBytes(4).toString('hex')}`;
  try {
    await mkdir(temporary, { recursive: true });
    const env = { ...currentEnvironment(), NODE_ENV: 'production' };
    await run(process.execPath, [bundler, temporary, digest], {
      cwd: root,
      env,
      timeout: maxBuildMs,
      signal,
    });
    await publish({ folder, temporary, target, digest });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  await removeOthers(folder, [digest, existing?.digest]);
  return { digest, folder, isNew: true };
}

const notWritable = new Set(['EACCES', 'EPERM', 'EROFS']);

/**
 * Builds the console into its folder, or into the data directory if its folder is not writable.
 * Throws the errors of `buildConsole`.
 */
export async function buildConsoleSomewhere(
  dataDir: string,
  signal?: AbortSignal,
  folder: string = consoleFolder,
): Promise<BuiltConsole> {
  try {
    return await buildConsole(folder, signal);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!notWritable.has(code)) throw error;
    return buildConsole(fallbackConsoleFolder(dataDir), signal);
  }
}

/** Build that runs while a process starts. */
export interface BackgroundBuild {
  /** Ends the build. Resolves when its process has exited. */
  stop(): Promise<void>;
}

/**
 * Starts a build in the background. A failure is only logged, because the service works without its
 * console.
 */
export function buildConsoleInBackground(
  dataDir: string,
  log: (line: string) => void,
): BackgroundBuild {
  const controller = new AbortController();
  // If this process exits early, the bundler exits too.
  const abort = () => controller.abort();
  process.once('exit', abort);
  const building = buildConsoleSomewhere(dataDir, controller.signal).then(
    () => undefined,
    (error: unknown) => {
      if (controller.signal.aborted) return;
      log(`the console was not built: ${error instanceof Error ? error.message : String(error)}`);
    },
  );
  return {
    stop: async () => {
      process.off('exit', abort);
      controller.abort();
      await building;
    },
  };
}

interface Publication {
  folder: string;
  temporary: string;
  target: string;
  digest: string;
}

async function publish({ folder, temporary, target, digest }: Publication): Promise<void> {
  const files = JSON.parse(await readFile(join(temporary, 'files.json'), 'utf8'));
  const build: ConsoleBuild = consoleBuild.parse({ digest, files });
  // Another process may have published a build of the same sources. That build is equivalent.
  await rename(temporary, target).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  });
  const pointer = `${temporary}.json`;
  await writeFile(pointer, JSON.stringify(build));
  await rename(pointer, join(folder, currentBuildFile));
}

/**
 * Removes old builds and the remains of killed builds. Keeps the current and the previous build,
 * because open pages may still load files of the previous build.
 */
async function removeOthers(folder: string, kept: (string | undefined)[]): Promise<void> {
  for (const name of await readdir(folder)) {
    const isOld = /^[0-9a-f]{16}$/.test(name) && !kept.includes(name);
    if (isOld || (await isAbandoned(folder, name)))
      await rm(join(folder, name), { recursive: true, force: true });
  }
}

async function isAbandoned(folder: string, name: string): Promise<boolean> {
  if (!/^[0-9a-f]{16}\.[0-9a-f]{8}/.test(name)) return false;
  const { mtimeMs } = await stat(join(folder, name)).catch(() => ({
    mtimeMs: Number.POSITIVE_INFINITY,
  }));
  return systemClock.now() - mtimeMs > 2 * maxBuildMs;
}

/** True for a guide to credentials. The console imports no other modules of the connectors. */
const isCredentialGuide = (file: string): boolean => /[/\\]guides?\.ts$/.test(file);

/**
 * Returns the digest of the console's sources, of the modules that it may import
 * (`.dependency-cruiser.cjs`), of the guides that it contains, and of its package versions.
 */
async function digestOfSources(): Promise<string> {
  const hash = createHash('sha256');
  const own = (await filesIn(sources)).filter(
    (file) => !relative(sources, file).startsWith('dist'),
  );
  const credentialGuides = (await filesIn(join(root, 'connectors'))).filter(isCredentialGuide);
  const docs = join(root, 'docs');
  const guides = (await filesIn(docs)).filter((file) =>
    isGuideFile(relative(docs, file).split(sep).join('/')),
  );
  const client = await filesIn(join(root, 'ops', 'client'));
  const domain = await filesIn(join(root, 'shared', 'domain'));
  const inputs = [...own, ...credentialGuides, ...guides, ...client, ...domain];
  const files = [...inputs, join(root, 'package-lock.json')];
  for (const file of files.toSorted()) {
    const bytes = await readFile(file).catch(() => Buffer.alloc(0));
    hash.update(`${relative(root, file)}\n${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex').slice(0, 16);
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
