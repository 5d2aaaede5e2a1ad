import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Clock } from '../../../shared/clock.ts';

/** Folder of the built console (ops/console/README.md). */
export const consoleFolder = fileURLToPath(new URL('../../../ops/console/dist', import.meta.url));

/**
 * Folder of a build where the other one cannot be written, in the data directory of the service.
 */
export const fallbackConsoleFolder = (dataDir: string): string => join(dataDir, 'console');

/**
 * Name of the file that names the current build. It is replaced as a whole, after the files of the
 * build exist.
 */
export const currentBuildFile = 'current.json';

/** Content of `current.json`. */
export const consoleBuild = z.object({
  /** Digest of the sources; name of the folder with the files. */
  digest: z.string().regex(/^[0-9a-f]{16}$/),
  files: z.array(
    z.object({
      /** Path below `/console/`. */
      path: z.string(),
      type: z.string(),
      /** Whether a compressed form exists: beside the file, as `<path>.br` and `<path>.gz`. */
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

/** Interval between two looks for another build. */
const lookEveryMs = 1000;

/**
 * Files of the built console. Keeps the newest build in memory (about 1 MB), so that a path of a
 * request never reaches the file system. Looks for a newer build at most once a second, when a page
 * is asked for.
 */
export class ConsoleFiles {
  readonly #folders: readonly string[];
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #loaded: LoadedConsole | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  /** Takes the folders that may hold a build; the newest one counts. */
  constructor(folders: readonly string[], clock: Pick<Clock, 'monotonicMs'>) {
    this.#folders = folders;
    this.#clock = clock;
  }

  /** Digest of the build in memory; null before a page was asked for. */
  get digest(): string | null {
    return this.#loaded?.digest ?? null;
  }

  /** Returns the newest build, or undefined before there is one. */
  async current(): Promise<LoadedConsole | undefined> {
    if (this.#clock.monotonicMs() - this.#lookedAtMs >= lookEveryMs) {
      this.#looking ??= this.#look().finally(() => {
        this.#lookedAtMs = this.#clock.monotonicMs();
        this.#looking = undefined;
      });
      await this.#looking;
    }
    return this.#loaded;
  }

  async #look(): Promise<void> {
    const found = await Promise.all(this.#folders.map(findBuild));
    const [newest] = found
      .flatMap((build) => build ?? [])
      .sort((a, b) => b.builtAtMs - a.builtAtMs);
    if (newest && newest.build.digest !== this.#loaded?.digest)
      this.#loaded = (await load(newest.folder, newest.build)) ?? this.#loaded;
  }
}

/**
 * Returns the current build of a folder; undefined when it has none, or a file that is not ours.
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

/** Reads all files of a build; undefined when one is missing because a newer build replaces it. */
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
