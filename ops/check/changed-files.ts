import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * Possible names of the main branch, in the order of the search. A clone has the first name. A
 * worktree often has only the second.
 */
const mainBranches = ['refs/remotes/origin/main', 'refs/heads/main'];

/** Files that a change touches, or the reason why they are unknown. */
export type ChangedFiles =
  | { readonly files: readonly string[]; readonly since: string }
  | { readonly unknown: string };

/**
 * Lists the files that differ from a base commit, including uncommitted files. The base commit is:
 *
 * 1. `given`, the commit that CI checked last (`CI_BASE`);
 * 2. on a branch, the merge base with the main branch;
 * 3. on the main branch, the first parent of the last commit.
 *
 * Returns `unknown` if the clone does not contain the base commit. This is common in a shallow
 * clone.
 */
export async function listChangedFiles(folder: string, given?: string): Promise<ChangedFiles> {
  const git = (...args: string[]): Promise<string | undefined> =>
    execute('git', args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }).then(
      ({ stdout }) => stdout,
      () => undefined,
    );
  const commitOf = async (name: string) =>
    (await git('rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`))?.trim();

  async function findBase(): Promise<{ commit: string; since: string } | { unknown: string }> {
    if (given !== undefined && given !== '') {
      const commit = await commitOf(given);
      return commit === undefined
        ? { unknown: `CI_BASE names the commit ${given}, which is not in this clone` }
        : { commit, since: 'CI_BASE' };
    }
    const head = await commitOf('HEAD');
    if (head === undefined) return { unknown: 'this is no clone of the repository' };
    const found = await Promise.all(mainBranches.map(commitOf));
    const main = found.find((commit) => commit !== undefined);
    if (main === undefined) return { unknown: 'this clone has no main branch' };
    const commit = (await git('merge-base', main, head))?.trim();
    if (commit === undefined)
      return { unknown: 'this clone does not contain the merge base with main' };
    if (commit !== head) return { commit, since: 'the merge base with main' };
    const parent = await commitOf('HEAD^1');
    return parent === undefined
      ? { unknown: 'this clone of main does not contain the commit before the last one' }
      : { commit: parent, since: 'the commit before the last one of main' };
  }

  const base = await findBase();
  if ('unknown' in base) return base;
  const differing = await git('diff', '--name-only', '--no-renames', '-z', base.commit, '--');
  const untracked = await git('ls-files', '--others', '--exclude-standard', '-z');
  if (differing === undefined || untracked === undefined)
    return { unknown: 'git cannot compare the files' };
  const files = `${differing}${untracked}`.split('\0').filter((file) => file !== '');
  return { files, since: `${base.since} (${base.commit.slice(0, 8)})` };
}
