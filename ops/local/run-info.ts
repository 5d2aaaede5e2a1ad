import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Addresses of the service of a data directory while it runs. */
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
 * Writes the addresses into the data directory, so that a command in the same folder finds a
 * service on another port. One file per address, mode 600.
 */
export async function writeRunInfo(dataDir: string, info: RunInfo): Promise<void> {
  for (const key of keys) {
    const path = join(dataDir, fileNames[key]);
    const draft = `${path}.${randomBytes(6).toString('hex')}`;
    await writeFile(draft, `${info[key]}\n`, { mode: 0o600 });
    await rename(draft, path);
  }
}

const keys = ['url', 'databaseUrl', 'metricsUrl'] as const;

/** Reads the addresses; empty when no service runs here. The files of a killed service remain. */
export async function readRunInfo(dataDir: string): Promise<Partial<RunInfo>> {
  const found: Partial<RunInfo> = {};
  for (const key of keys) {
    const text = await readFile(join(dataDir, fileNames[key]), 'utf8').catch(() => '');
    if (text.trim() !== '') found[key] = text.trim();
  }
  return found;
}

/** Removes the addresses when the service stops. */
export async function removeRunInfo(dataDir: string): Promise<void> {
  for (const key of keys) await rm(join(dataDir, fileNames[key]), { force: true });
}
