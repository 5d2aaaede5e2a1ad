import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Clock } from '../../../shared/clock.ts';

/** Folder of the built console (ops/console/README.md). */
export const consoleFolder = fileURLToPath(new URL('../../../ops/console/dist', import.meta.url));

/**
 * Returns the folder for a build if `consoleFolder` is not writable. It is in the service's data
 * directory.
 */
export const fallbackConsoleFolder = (dataDir: string): string => join(dataDir, 'console');

/**
 * File that names the current build. It is replaced atomically, after all files of the build exist.
 */
export const currentBuildFile = 'current.json';

/** Content of `current.json`. */
export const consoleBuild = z.object({
  /** Digest of the sources. It is the name of the folder with the files. */
  digest: z.string().regex(/^[0-9a-f]{16}$/),
  files: z.array(
    z.object({
      /** Path of the file below `/console/`. */
      path: z.string(),
      type: z.string(),
      /** True if compressed forms exist in the same folder, as `<path>.br` and `<path>.gz`. */
      isCompressed: z.boolean(),
    }),
  ),
});
export type ConsoleBuild = z.infer<typeof consoleBuild>;

export type Encoding = 'br' | 'gzip' | 'identity';

/** File of the console, in memory. */
export interface ConsoleFile {
  type: string;
  bodies: Partial<Record<Encoding, Buffer>>;
}

/** Files of one build. */
export interface LoadedConsole {
  digest: string;
  files: ReadonlyMap<string, ConsoleFile>;
}

/** Interval between checks for a newer build. */
const checkEveryMs = 1000;

/**
 * Files of the built console. The newest build is kept in memory (about 4 MB, of which 2 MB are
 * guides), so that a request path never reaches the file system. When a page is requested, checks
 * for a newer build at most once a second.
 */
export class ConsoleFiles {
  readonly #folders: readonly string[];
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #loaded: LoadedConsole | undefined;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | undefined;

  /** `folders` may contain a build. The newest build is used. */
  constructor(folders: readonly string[], clock: Pick<Clock, 'monotonicMs'>) {
    this.#folders = folders;
    this.#clock = clock;
  }

  /** Digest of the build in memory. Null before the first request of a page. */
  get digest(): string | null {
    return this.#loaded?.digest ?? null;
  }

  /** Returns the newest build. Returns undefined if there is no build yet. */
  async current(): Promise<LoadedConsole | undefined> {
    if (this.#clock.monotonicMs() - this.#checkedAtMs >= checkEveryMs) {
      this.#checking ??= this.#check().finally(() => {
        this.#checkedAtMs = this.#clock.monotonicMs();
        this.#checking = undefined;
      });
      await this.#checking;
    }
    return this.#loaded;
  }

  async #check(): Promise<void> {
    const found = await Promise.all(this.#folders.map(findBuild));
    const [newest] = found
      .flatMap((build) => build ?? [])
      .sort((a, b) => b.builtAtMs - a.builtAtMs);
    if (newest && newest.build.digest !== this.#loaded?.digest)
      this.#loaded = (await load(newest.folder, newest.build)) ?? this.#loaded;
  }
}

/**
 * Returns the current build of a folder. Returns undefined if the file is missing or has another format.
 */
export async function readBuild(folder: string): Promise<ConsoleBuild | undefined> {
  try {
    return consoleBuild.parse(JSON.parse(await readFile(join(folder, currentBuildFile), 'utf8')));
  } catch {
    return undefined;
  }
}

async function findBuild(folder: string) {
  const build = await readBuild(folder);
  const file = build && (await stat(join(folder, currentBuildFile)).catch(() => undefined));
  return build && file && { folder, build, builtAtMs: file.mtimeMs };
}

/**
 * Reads all files of a build. Returns undefined if a file is missing because a newer build replaces
 * it.
 */
async function load(
  folder: string,
  { digest, files }: ConsoleBuild,
): Promise<LoadedConsole | undefined> {
  try {
    const entries = files.map(async ({ path, type, isCompressed }) => {
      const file = join(folder, digest, path);
      const bodies: ConsoleFile['bodies'] = { identity: await readFile(file) };
      if (isCompressed) {
        bodies.br = await readFile(`${file}.br`);
        bodies.gzip = await readFile(`${file}.gz`);
      }
      return [path, { type, bodies }] as const;
    });
    return { digest, files: new Map(await Promise.all(entries)) };
  } catch {
    return undefined;
  }
}
