import { constants } from 'node:fs';
import { chmod, chown, copyFile, lstat, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '../postgres/binaries.ts';

/**
 * Copies a folder with modes and owners, and waits until it is on the disk. Skips what `isWanted` refuses (paths relative to
 * the folder), and files that vanish during the copy, which a running PostgreSQL deletes at any time. Returns the bytes.
 */
export async function copyTree(
  from: string,
  to: string,
  isWanted: (path: string) => boolean = () => true,
): Promise<number> {
  const copy = async (path: string): Promise<number> => {
    const [source, target] = [join(from, path), join(to, path)];
    const found = await lstat(source);
    if (!found.isDirectory()) {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
    } else {
      await mkdir(target, { recursive: true });
      let bytes = 0;
      for (const name of await readdir(source)) {
        const below = join(path, name);
        if (isWanted(below)) bytes += await copy(below).catch(zeroIfGone);
      }
      await settle(target, found);
      return bytes;
    }
    await settle(target, found);
    return found.size;
  };
  return copy('.');
}

function zeroIfGone(error: unknown): number {
  if (hasCode(error, 'ENOENT')) return 0;
  throw error;
}

/** Gives a copy the mode and, where we may, the owner of its source, and writes it to the disk. */
async function settle(
  path: string,
  { mode, uid, gid }: { mode: number; uid: number; gid: number },
): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  if (process.getuid?.() === 0) await chown(path, uid, gid);
  await chmod(path, mode & 0o7777);
}
