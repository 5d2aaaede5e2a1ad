import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { installOnce, run } from '../../ops/check/toolchains.ts';

/** Root folder of this version. */
export const here = fileURLToPath(new URL('../../', import.meta.url));

export interface Release {
  version: string;
  commit: string;
}

/** Returns the newest version for which the changelog names a commit. */
export async function readLastRelease(): Promise<Release> {
  const text = await readFile(join(here, 'CHANGELOG.md'), 'utf8');
  const [, version, commit] = text.match(/^## (\d\S+) - .*\n\nCommit `([0-9a-f]{40})`/m) ?? [];
  if (version === undefined || commit === undefined)
    throw new Error('CHANGELOG.md names no version with its commit');
  return { version, commit };
}

/**
 * Writes the sources of a commit into a new folder, with the installed packages of this version.
 * Returns the reason if this is impossible, for example because a shallow clone or a package has no
 * history.
 */
export async function checkOut(
  { commit, version }: Release,
  folder: string,
): Promise<string | undefined> {
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
  await symlink(join(here, 'node_modules'), join(root, 'node_modules'));
  await installDropped(root, folder);
  return undefined;
}

/**
 * Installs packages of a release that this version does not use, in a folder where the sources of
 * the release look for them.
 */
async function installDropped(root: string, folder: string): Promise<void> {
  const manifest = join(root, 'package.json');
  const { dependencies } = JSON.parse(await readFile(manifest, 'utf8'));
  const dropped = Object.entries(dependencies).filter(
    ([name]) => !existsSync(join(here, 'node_modules', name)),
  );
  if (dropped.length === 0) return;
  const packages = dropped.map(([name, version]) => `${name}@${version}`);
  const installed = await installOnce([pathToFileURL(manifest)], async (target) => {
    await mkdir(target, { recursive: true });
    // Without a package.json of its own, npm would install into this repository, which is above the
    // folder.
    await writeFile(join(target, 'package.json'), '{ "private": true }');
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], {
      cwd: target,
    });
  });
  await symlink(join(installed, 'node_modules'), join(folder, 'node_modules'));
}
