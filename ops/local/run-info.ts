import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { say } from '../cli/language.ts';

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
 * Writes the addresses into the data directory, so that a command in the same folder finds a service on another port.
 * One file per address, mode 600.
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

function tryPort(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : port));
    });
  });
}

/** Checks that a port is free now. */
export const isPortFree = (port: number, host: string): Promise<boolean> =>
  tryPort(port, host).then(
    () => true,
    () => false,
  );

/**
 * Chooses a port: the requested one, else the default one, else any free one when the default is taken (a second clone
 * on the same machine). Throws an error for the operator when the requested port is taken.
 */
export async function choosePort(choice: {
  asked: number | undefined;
  usual: number;
  host: string;
  variable: string;
}): Promise<number> {
  const { asked, usual, host, variable } = choice;
  try {
    return await tryPort(asked ?? usual, host);
  } catch (error) {
    if (asked === undefined) return tryPort(0, host);
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new Error(
      say('{variable}={port} cannot be used on {host} ({code}); choose another port', {
        ...{ variable, host, code },
        port: asked,
      }),
      { cause: error },
    );
  }
}

/** Returns a port of loopback that is free now. */
export const freePort = (): Promise<number> => tryPort(0, '127.0.0.1');
