import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/**
 * Programs of other ecosystems, and what they install for a test. Installed packages stay in
 * node_modules/.cache, in a folder per lock file, so that only the first run waits for a registry.
 */
const cache = fileURLToPath(new URL('../../../node_modules/.cache/clients', import.meta.url));

/** Longest time for an installation and for the run of a program. */
export const minutesMs = 300_000;

const mavenLockfile = 'io.github.chains-project:maven-lockfile:5.5.2';
const mavenDependency = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';

const versionArguments: Readonly<Record<string, string>> = {
  java: '-version',
  javac: '-version',
  go: 'version',
};

/** Tells whether programs are there; names the first one that is not, and what is skipped. */
export function hasPrograms(programs: readonly string[], skipped: string): boolean {
  const missing = programs.find(
    (program) => spawnSync(program, [versionArguments[program] ?? '--version']).status !== 0,
  );
  if (missing !== undefined) console.warn(`${missing} is not installed: ${skipped} is skipped.`);
  return missing === undefined;
}

/** Runs a program to its end. Returns its standard output; throws with its error output. */
export async function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const binaries = fileURLToPath(new URL('../../../node_modules/.bin', import.meta.url));
  const env = { ...process.env, PATH: `${binaries}${delimiter}${process.env.PATH}`, ...options.env };
  const { stdout } = await promisify(execFile)(program, [...args], {
    ...options,
    env,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** Installs into a folder that is named by the content of a lock file, unless it is there. */
async function installOnce(lockFile: URL, install: (folder: string) => Promise<unknown>): Promise<string> {
  const content = await readFile(lockFile);
  const folder = join(
    cache,
    createHash('sha256').update(lockFile.href).update(content).digest('hex').slice(0, 16),
  );
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const started = `${folder}.${process.pid}`;
  await rm(started, { recursive: true, force: true });
  await install(started);
  await rename(started, folder);
  return folder;
}

/**
 * Installs the packages of a requirements file with hashes.
 *
 * @returns folder for `PYTHONPATH`
 */
export const pythonPackages = (requirements: URL): Promise<string> =>
  installOnce(requirements, (folder) =>
    run('python3', [
      ...['-m', 'pip', 'install', '--quiet', '--no-deps', '--require-hashes', '--disable-pip-version-check'],
      ...['--requirement', fileURLToPath(requirements), '--target', folder],
    ]),
  );

/**
 * Copies the dependencies of a folder's `pom.xml`, after Maven compared each of them with the version
 * and the SHA-256 in its `lockfile.json`. Write that file with `mvn ${mavenLockfile}:generate
 * -DincludeEnvironment=false` in the folder.
 *
 * @returns class path
 */
export async function mavenPackages(folder: URL): Promise<string> {
  const packages = await installOnce(new URL('lockfile.json', folder), (target) =>
    run('mvn', [
      ...[
        '--quiet',
        '--batch-mode',
        '--strict-checksums',
        '--file',
        fileURLToPath(new URL('pom.xml', folder)),
      ],
      ...[`${mavenLockfile}:validate`, `${mavenDependency}:copy-dependencies`, `-DoutputDirectory=${target}`],
    ]),
  );
  return join(packages, '*');
}
