import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Where the service of a data directory can be reached while it runs. */
export interface RunInfo {
  /** Base of the public and the admin API. */
  url: string;
  /** The database, for `migrate` and `doctor`. */
  databaseUrl: string;
  /** Health and metrics of the dispatcher. */
  metricsUrl: string;
}

const fileNames: Record<keyof RunInfo, string> = {
  url: 'url',
  databaseUrl: 'database-url',
  metricsUrl: 'metrics-url',
};

/**
 * Leaves a note in the data directory, so that a command in the same folder finds a service that was started
 * on another port: one file per address, mode 600.
 */
export async function writeRunInfo(dataDir: string, where: RunInfo): Promise<void> {
  for (const key of keys) {
    const path = join(dataDir, fileNames[key]);
    const draft = `${path}.${randomBytes(6).toString('hex')}`;
    await writeFile(draft, `${where[key]}\n`, { mode: 0o600 });
    await rename(draft, path);
  }
}

const keys = ['url', 'databaseUrl', 'metricsUrl'] as const;

/** What the note says; empty when no service runs here. A service that was killed leaves its note behind. */
export async function readRunInfo(dataDir: string): Promise<Partial<RunInfo>> {
  const found: Partial<RunInfo> = {};
  for (const key of keys) {
    const text = await readFile(join(dataDir, fileNames[key]), 'utf8').catch(() => '');
    if (text.trim() !== '') found[key] = text.trim();
  }
  return found;
}

/** Takes the note away when the service stops. */
export async function removeRunInfo(dataDir: string): Promise<void> {
  for (const key of keys) await rm(join(dataDir, fileNames[key]), { force: true });
}
