import { randomBytes } from 'node:crypto';
import { chmod, link, mkdir, open, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The two secrets of a service on one machine (protocol/operation.md#environment). */
export interface Secrets {
  adminToken: string;
  /** As `CARILLON_SECRET` holds it: 32 bytes in base64, or several with commas. */
  secret: string;
}

/** What the environment says of them; it wins over the files. */
export type GivenSecrets = { [Name in keyof Secrets]?: string | undefined };

const files: Record<keyof Secrets, { name: string; make: () => string }> = {
  adminToken: { name: 'admin-token', make: () => randomBytes(24).toString('base64url') },
  secret: { name: 'secret', make: () => randomBytes(32).toString('base64') },
};

/** Readable by nobody but the user who started the service. */
const fileMode = 0o600;

/**
 * The secrets of a data directory, made on the first start: files `admin-token` and `secret` with mode 600.
 * Two starts at once agree on the same ones. `made` names what did not exist before, for the first greeting.
 */
export async function ensureSecrets(
  dataDir: string,
  given: GivenSecrets = {},
): Promise<Secrets & { made: (keyof Secrets)[] }> {
  await mkdir(dataDir, { recursive: true });
  const adminToken = await ensure(dataDir, 'adminToken', given);
  const secret = await ensure(dataDir, 'secret', given);
  const made = [adminToken, secret].flatMap((one) => (one.isMade ? [one.key] : []));
  return { adminToken: adminToken.value, secret: secret.value, made };
}

/** The secrets as far as they are known; a file that is not there leaves its member out. */
export async function readSecrets(dataDir: string, given: GivenSecrets = {}): Promise<Partial<Secrets>> {
  const adminToken = given.adminToken || (await readSecret(join(dataDir, files.adminToken.name)));
  const secret = given.secret || (await readSecret(join(dataDir, files.secret.name)));
  return { ...(adminToken ? { adminToken } : {}), ...(secret ? { secret } : {}) };
}

async function ensure(
  dataDir: string,
  key: keyof Secrets,
  given: GivenSecrets,
): Promise<{ key: keyof Secrets; value: string; isMade: boolean }> {
  const fromEnvironment = given[key];
  if (fromEnvironment) return { key, value: fromEnvironment, isMade: false };
  const path = join(dataDir, files[key].name);
  const isMade = (await readSecret(path)) === undefined && (await createOnce(path, files[key].make()));
  const value = await readSecret(path);
  if (value === undefined) throw new Error(`${path} was removed while the service was starting`);
  return { key, value, isMade };
}

/**
 * Puts a file there with its whole content in one step, unless there is one: the link fails then. A reader
 * never sees a part of it, and a power cut leaves all of it or nothing.
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

/** One line of a file; undefined where there is none. Closes a file that others could read. */
async function readSecret(path: string): Promise<string | undefined> {
  let content: string;
  try {
    content = (await readFile(path, 'utf8')).trim();
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) await chmod(path, fileMode).catch(() => undefined);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (codeOf(error) === 'EACCES')
      throw new Error(`${path} belongs to another user: run this as the one who started the service`);
    throw error;
  }
  if (content === '') throw new Error(`${path} is empty: put back what it held`);
  return content;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
