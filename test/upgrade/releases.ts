import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Folder of this version. */
export const here = fileURLToPath(new URL('../../', import.meta.url));

export interface Release {
  version: string;
  commit: string;
}

/** Returns the newest version that the changelog names with its commit. */
export async function readLastRelease(): Promise<Release> {
  const text = await readFile(join(here, 'CHANGELOG.md'), 'utf8');
  const [, version, commit] = text.match(/^## (\d\S+) - .*\n\nCommit `([0-9a-f]{40})`/m) ?? [];
  if (version === undefined || commit === undefined)
    throw new Error('CHANGELOG.md names no version with its commit');
  return { version, commit };
}

/**
 * Writes the sources of a commit into a new folder, with the installed packages of this version. Returns why that is
 * impossible: a shallow clone or a package has no history.
 */
export async function checkOut({ commit, version }: Release, folder: string): Promise<string | undefined> {
  try {
    await run('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: here });
  } catch {
    return `version ${version} (commit ${commit}) is not in the history of this copy: clone the whole repository`;
  }
  const archive = join(folder, 'sources.tar');
  const root = join(folder, 'sources');
  await mkdir(root);
  await run('git', ['archive', `--output=${archive}`, commit], { cwd: here });
  await run('tar', ['-xf', archive, '-C', root]);
  // What the release imports stays a dependency for development as long as it is the newest one: pg-cursor for 0.3.0.
  await symlink(join(here, 'node_modules'), join(root, 'node_modules'));
  return undefined;
}
