import { randomBytes } from 'node:crypto';
import { chmod, link, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { say } from '../cli/language.ts';

/** Secrets of a service on one machine (protocol/operation.md#environment). */
export interface Secrets {
  adminToken: string;
  /** Value of `CARILLON_SECRET`: 32 bytes in base64, or several such keys separated by commas. */
  secret: string;
}

/** Secrets from the environment. They take precedence over the files. */
export type GivenSecrets = { [Name in keyof Secrets]?: string | undefined };

const files: Record<keyof Secrets, { name: string; make: () => string }> = {
  adminToken: { name: 'admin-token', make: () => randomBytes(24).toString('base64url') },
  secret: { name: 'secret', make: () => randomBytes(32).toString('base64') },
};

/** Only the user who started the service can read the file. */
const fileMode = 0o600;

/**
 * Reads the secrets of a data directory and creates missing secrets. The files are `admin-token`
 * and `secret`, with mode 600. Two concurrent starts use the same secrets. `created` names the
 * secrets that this call created.
 */
export async function ensureSecrets(
  dataDir: string,
  given: GivenSecrets = {},
): Promise<Secrets & { created: (keyof Secrets)[] }> {
  await mkdir(dataDir, { recursive: true });
  const adminToken = await ensure(dataDir, 'adminToken', given);
  const secret = await ensure(dataDir, 'secret', given);
  const created = [adminToken, secret].flatMap((one) => (one.isCreated ? [one.key] : []));
  return { adminToken: adminToken.value, secret: secret.value, created };
}

/** Reads the existing secrets. The result has no member for a missing file. */
export async function readSecrets(
  dataDir: string,
  given: GivenSecrets = {},
): Promise<Partial<Secrets>> {
  const adminToken = given.adminToken || (await readSecret(join(dataDir, files.adminToken.name)));
  const secret = given.secret || (await readSecret(join(dataDir, files.secret.name)));
  return { ...(adminToken ? { adminToken } : {}), ...(secret ? { secret } : {}) };
}

async function ensure(
  dataDir: string,
  key: keyof Secrets,
  given: GivenSecrets,
): Promise<{ key: keyof Secrets; value: string; isCreated: boolean }> {
  const fromEnvironment = given[key];
  if (fromEnvironment) return { key, value: fromEnvironment, isCreated: false };
  const path = join(dataDir, files[key].name);
  const isCreated =
    (await readSecret(path)) === undefined && (await createOnce(path, files[key].make()));
  const value = await readSecret(path);
  if (value === undefined)
    throw new Error(say('{path} was removed while the service was starting', { path }));
  return { key, value, isCreated };
}

/**
 * Creates a file with its whole content in one step. Returns false if the file exists, because the
 * hard link then fails. A reader never sees partial content. After a power failure the file is
 * complete or missing.
 */
async function createOnce(path: string, content: string): Promise<boolean> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const handle = await open(draft, 'wx', fileMode);
  try {
    await handle.writeFile(`${content}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Reads a file of one line. Returns undefined if it is missing. Sets mode 600 if other users could
 * read the file.
 */
async function readSecret(path: string): Promise<string | undefined> {
  let content: string;
  try {
    content = (await readFile(path, 'utf8')).trim();
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) await chmod(path, fileMode).catch(() => undefined);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (codeOf(error) === 'EACCES')
      throw new Error(
        say('{path} belongs to another user: run this as the one who started the service', {
          path,
        }),
      );
    throw error;
  }
  if (content === '') throw new Error(say('{path} is empty: put back what it held', { path }));
  return content;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

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
