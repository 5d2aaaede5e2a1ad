import { chmod, chown, cp, lstat, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Functions folder that the user of the functions can read. */
export interface ReadableFolder {
  dir: string;
  /** Removes the folder if it is a copy. */
  remove(): Promise<void>;
}

/** Limits on a folder that has to be copied. */
const maxEntries = 5_000;
const maxBytes = 50 * 1024 * 1024;

/**
 * Returns the folder, or a copy of it if `user` cannot read it. Root starts functions as a separate
 * user, and the project may be inside a folder with mode 700. Only root and `user` can read the
 * copy. Throws an error for the operator if the folder is too large to copy.
 */
export async function openForFunctions(
  dir: string,
  user: number | undefined,
  log: (line: string) => void,
): Promise<ReadableFolder> {
  const real = await realpath(dir);
  // Node treats * as a wildcard, so the permission model would allow more than this folder.
  if (real.includes('*'))
    throw new Error(`${real}: a folder of functions must not have a * in its path`);
  if (user === undefined || (await isOpen(real)))
    return { dir: real, remove: async () => undefined };
  await refuseLarge(real);
  const copy = await mkdtemp(join(await openTemporaryDir(), 'carillon-functions-'));
  await cp(real, copy, { recursive: true, verbatimSymlinks: true });
  await giveTo(copy, user);
  log(`functions run from a copy: their user cannot read ${real}`);
  return { dir: await realpath(copy), remove: () => rm(copy, { recursive: true, force: true }) };
}

const entriesOf = async (dir: string): Promise<string[]> =>
  (await readdir(dir, { recursive: true })).map((entry) => join(dir, entry));

/** True if all users can enter the parent folders and read all files in the folder. */
async function isOpen(dir: string): Promise<boolean> {
  for (let above = dirname(dir); above !== dirname(above); above = dirname(above))
    if (((await stat(above)).mode & 0o001) === 0) return false;
  for (const path of [dir, ...(await entriesOf(dir))]) {
    const entry = await lstat(path);
    const needed = entry.isDirectory() ? 0o005 : 0o004;
    if (!entry.isSymbolicLink() && (entry.mode & needed) !== needed) return false;
  }
  return true;
}

async function refuseLarge(dir: string): Promise<void> {
  const entries = await entriesOf(dir);
  let bytes = 0;
  for (const path of entries) bytes += (await lstat(path)).size;
  if (entries.length <= maxEntries && bytes <= maxBytes) return;
  throw new Error(
    `${dir} is closed to the user that functions run as, and too large to be copied for it: ` +
      `open it with \`chmod -R o+rX\`, the folders above with \`chmod o+x\`, or start the service as another user than root`,
  );
}

/** Returns the system's temporary folder, or /tmp if other users cannot enter it. */
async function openTemporaryDir(): Promise<string> {
  const dir = await realpath(tmpdir());
  for (let above = dir; above !== dirname(above); above = dirname(above))
    if (((await stat(above)).mode & 0o001) === 0) return '/tmp';
  return dir;
}

async function giveTo(copy: string, user: number): Promise<void> {
  for (const path of [copy, ...(await entriesOf(copy))]) {
    const entry = await lstat(path);
    if (entry.isSymbolicLink()) continue;
    await chown(path, 0, user);
    await chmod(path, entry.isDirectory() ? 0o750 : 0o640);
  }
}
