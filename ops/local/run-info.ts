import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Addresses of the running service of a data directory. */
export interface RunInfo {
  /** Base URL of the public API and the admin API. */
  url: string;
  /** URL of the database, for `migrate` and `doctor`. */
  databaseUrl: string;
  /** URL of the dispatcher's health and metrics. */
  metricsUrl: string;
}

const fileNames: Record<keyof RunInfo, string> = {
  url: 'url',
  databaseUrl: 'database-url',
  metricsUrl: 'metrics-url',
};

/**
 * Writes the addresses into the data directory, so that commands find a service on a non-default
 * port. Each address has a file with mode 600.
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

/**
 * Reads the addresses. Returns an empty object if no service runs here. The files of a killed
 * service remain.
 */
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
