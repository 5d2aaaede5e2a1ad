import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { currentEnvironment } from '../../shared/config/config.ts';

/**
 * Cache of the packages that tests and benchmarks install from other ecosystems (Maven, Go, PyPI).
 * It has one folder per lock file, so only the first run downloads packages.
 */
const cache = fileURLToPath(new URL('../../node_modules/.cache/clients', import.meta.url));

/** Time limit of an installation and of a program run. */
export const minutesMs = 300_000;

const mavenLockfile = 'io.github.chains-project:maven-lockfile:5.5.2';
const mavenDependency = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';

/**
 * Arguments for testing whether a program works. For Python this tests pip, because Debian's Python
 * has no pip.
 */
const versionArguments: Readonly<Record<string, readonly string[]>> = {
  java: ['-version'],
  javac: ['-version'],
  go: ['version'],
  python3: ['-m', 'pip', '--version'],
  ntfy: ['--help'],
};

/**
 * Returns true if all programs are installed. Otherwise prints the first missing program and the
 * name of the skipped test.
 */
export function hasPrograms(programs: readonly string[], skipped: string): boolean {
  const missing = programs.find(
    (program) => spawnSync(program, versionArguments[program] ?? ['--version']).status !== 0,
  );
  if (missing !== undefined) console.warn(`${missing} is not installed: ${skipped} is skipped.`);
  return missing === undefined;
}

/**
 * Runs a program and returns its standard output. If the program fails, throws its output, unless
 * `acceptsFailure` is set.
 */
export async function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; acceptsFailure?: boolean } = {},
): Promise<string> {
  const binaries = fileURLToPath(new URL('../../node_modules/.bin', import.meta.url));
  const own = currentEnvironment();
  const env = { ...own, PATH: `${binaries}${delimiter}${own.PATH}`, ...options.env };
  const { acceptsFailure = false, ...others } = options;
  const running = promisify(execFile)(program, [...args], {
    ...others,
    env,
    maxBuffer: 64 * 1024 * 1024,
  });
  const { stdout } = await running.catch((error) => {
    if (acceptsFailure && typeof error.stdout === 'string') return error;
    // Compilers write their errors to standard output, which the message of execFile omits.
    throw new Error(`${error.message}\n${String(error.stdout).slice(-4_000)}`, { cause: error });
  });
  return stdout;
}

/** Returns the version in a lock file: the first group of the pattern. */
export function versionIn(lockFile: URL, pattern: RegExp): string {
  const version = pattern.exec(readFileSync(lockFile, 'utf8'))?.[1];
  if (version === undefined) throw new Error(`${lockFile.pathname} has no ${pattern.source}`);
  return version;
}

/** Returns the version of a package that our package.json pins. */
export const npmVersion = (name: string): string =>
  versionIn(
    new URL('../../package.json', import.meta.url),
    new RegExp(`"${name}": "([\\d.a-z-]+)"`),
  );

/**
 * Installs into a folder whose name is the hash of the given files. Does nothing if the folder
 * exists. A failed installation does not create the folder.
 *
 * @returns the folder
 */
export async function installOnce(
  files: readonly URL[],
  install: (folder: string) => Promise<unknown>,
): Promise<string> {
  const digest = createHash('sha256');
  for (const file of files) digest.update(await readFile(file));
  const folder = join(cache, digest.digest('hex').slice(0, 16));
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const started = `${folder}.${process.pid}`;
  await rm(started, { recursive: true, force: true });
  await install(started);
  await rename(started, folder);
  return folder;
}

/**
 * Installs the packages of a package-lock.json, without their scripts.
 *
 * @returns folder with `node_modules`
 */
export const npmPackages = (lockFile: URL): Promise<string> =>
  installOnce([lockFile], async (folder) => {
    await mkdir(folder, { recursive: true });
    for (const name of ['package.json', 'package-lock.json'])
      await copyFile(new URL(name, lockFile), join(folder, name));
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
    });
  });

/**
 * Installs the packages of a requirements file with hashes.
 *
 * @returns folder for `PYTHONPATH`
 */
export const pythonPackages = (requirements: URL): Promise<string> =>
  installOnce([requirements], (folder) =>
    run('python3', [
      ...[
        '-m',
        'pip',
        'install',
        '--quiet',
        '--no-deps',
        '--require-hashes',
        '--disable-pip-version-check',
      ],
      ...['--requirement', fileURLToPath(requirements), '--target', folder],
    ]),
  );

/**
 * Downloads the dependencies of a folder's `pom.xml`. Maven checks the version and SHA-256 of each
 * dependency against `lockfile.json`. To create that file, run `mvn ${mavenLockfile}:generate
 * -DincludeEnvironment=false` in the folder.
 *
 * @returns class path
 */
export async function mavenPackages(folder: URL): Promise<string> {
  const packages = await installOnce([new URL('lockfile.json', folder)], (target) =>
    run('mvn', [
      ...['--quiet', '--batch-mode', '--strict-checksums'],
      ...['--file', fileURLToPath(new URL('pom.xml', folder))],
      ...[
        `${mavenLockfile}:validate`,
        `${mavenDependency}:copy-dependencies`,
        `-DoutputDirectory=${target}`,
      ],
    ]),
  );
  return join(packages, '*');
}
