import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { currentEnvironment } from '../../shared/config/config.ts';

// Decides which long checks a change needs. `.ci/run` runs this program. It prints the names of the
// checks on standard output and the reasons on standard error. CI_ALL=1 selects all checks. CI_BASE
// is the commit that CI checked last.

/** Names of the checks: npm scripts, or options of `npm test`. */
export const checkNames = [
  'check-failover',
  'check-pgbackrest',
  'check-image',
  'fuzz',
  '--monitoring',
  '--upgrade',
] as const;
export type CheckName = (typeof checkNames)[number];

/**
 * A change of one of these files needs all checks: package versions and the code that runs the
 * checks.
 */
export const needAll = ['.ci/', 'ops/check/ci-plan.ts', 'package-lock.json'];

const benchService = ['ops/bench/gateway/', 'ops/bench/harness/', 'ops/local/service.ts'];
const testSupport = ['test/support/'];

/** Files and folders that each check covers. A folder ends with a slash. */
export const covered: Readonly<Record<CheckName, readonly string[]>> = {
  // Lost connections, retries, and replies during an outage.
  'check-failover': [
    ...['ops/deploy/high-availability/', ...benchService],
    ...['api/middleware/errors.ts', 'api/start.ts', 'dispatcher/startup/', 'dispatcher/recording/'],
    ...['dispatcher/background/job-keeper.ts', 'shared/backoff.ts', 'shared/queue/'],
    ...['shared/db/limits/', 'shared/db/listener.ts', 'shared/db/outage.ts', 'shared/db/pool.ts'],
    ...['shared/db/query.ts', 'shared/db/standby.ts'],
  ],
  'check-pgbackrest': [
    ...['ops/deploy/pgbackrest/', ...benchService, 'ops/local/recovery/'],
    ...['ops/cli/commands/service/recovery.ts', 'shared/db/tables/restorations.ts'],
  ],
  // Contents of the image, and start and memory of its processes.
  'check-image': [
    ...[
      '.npmrc',
      'ops/cli/carillon.mjs',
      'ops/cli/main.ts',
      'ops/console/build.ts',
      'ops/console/bundle.ts',
      'ops/console/guide-files.ts',
      'ops/console/guides.ts',
    ],
    ...['ops/deploy/image/', 'ops/package/', 'api/main.ts', 'api/route-loader.ts', 'api/start.ts'],
    ...['dispatcher/main.ts', 'dispatcher/sending/pool.ts', 'dispatcher/sending/worker.ts'],
    ...['dispatcher/start.ts', 'shared/config/', 'shared/process/'],
  ],
  // All routes and parsers that read untrusted input.
  fuzz: [
    ...['test/fuzz/', 'test/clients/judges/', ...testSupport],
    ...[
      'api/',
      'connectors/http2/',
      'docs/openapi.json',
      'ops/import/',
      'shared/domain/',
      'shared/http/',
    ],
    'shared/query/',
  ],
  // Metrics and their queries.
  '--monitoring': [
    ...[
      'test/monitoring/',
      ...testSupport,
      'ops/monitoring/',
      'ops/deploy/kubernetes/overlays/keda/',
    ],
    ...['shared/metrics.ts', 'shared/process/operation-metrics.ts'],
    ...['shared/queue/report.ts', 'api/services/server/service.ts', 'dispatcher/health.ts'],
    'dispatcher/sending/pool.ts',
  ],
  // Data that processes of two versions share: tables, jobs, and a push that both versions process.
  '--upgrade': [
    ...[
      'test/upgrade/',
      ...testSupport,
      'api/services/push/',
      'dispatcher/',
      'shared/db/',
      'shared/queue/',
    ],
    'shared/rules/',
  ],
};

/** Check, and whether the change needs it. */
export interface Decision {
  readonly name: CheckName;
  readonly isNeeded: boolean;
  /** Sentence that is printed. */
  readonly reason: string;
}

/** Decides for each check whether a change needs it. */
export function planChecks(changed: ChangedFiles, isAll: boolean): Decision[] {
  return checkNames.map((name) => ({ name, ...decide(name, changed, isAll) }));
}

function decide(name: CheckName, changed: ChangedFiles, isAll: boolean): Omit<Decision, 'name'> {
  if (isAll) return { isNeeded: true, reason: `${name} runs: CI_ALL is set.` };
  if ('unknown' in changed)
    return {
      isNeeded: true,
      reason: `${name} runs, because the change is not known: ${changed.unknown}.`,
    };
  const cause = changed.files.find((file) => isBelow(file, [...needAll, ...covered[name]]));
  return cause === undefined
    ? {
        isNeeded: false,
        reason: `${name} is left out: nothing that it checks differs from ${changed.since}.`,
      }
    : { isNeeded: true, reason: `${name} runs: ${cause} differs from ${changed.since}.` };
}

const isBelow = (file: string, paths: readonly string[]): boolean =>
  paths.some((path) => (path.endsWith('/') ? file.startsWith(path) : file === path));

const execute = promisify(execFile);

/**
 * Possible names of the main branch, in the order of the search. A clone has the first name. A
 * worktree often has only the second.
 */
const mainBranches = ['refs/remotes/origin/main', 'refs/heads/main'];

/** Files that a change touches, or the reason why they are unknown. */
type ChangedFiles =
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

if (import.meta.main) {
  const { CI_ALL, CI_BASE } = currentEnvironment();
  const changed = await listChangedFiles(resolve(import.meta.dirname, '../..'), CI_BASE);
  const decisions = planChecks(changed, CI_ALL === '1');
  for (const { reason } of decisions) process.stderr.write(`${reason}\n`);
  const needed = decisions.filter(({ isNeeded }) => isNeeded).map(({ name }) => name);
  process.stdout.write(`${needed.join(' ')}\n`);
}
