import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  checkNames,
  covered,
  listChangedFiles,
  needAll,
  planChecks,
} from '../../../ops/check/ci-plan.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../../..', import.meta.url));

describe('the checks that a change needs', () => {
  const needed = (...files: string[]) =>
    planChecks({ files, since: 'x' }, false).flatMap(({ name, isNeeded }) =>
      isNeeded ? [name] : [],
    );

  test.each([
    [['README.md', 'ops/console/src/app.tsx'], []],
    [['ops/deploy/high-availability/patroni.yml'], ['check-failover']],
    [['ops/deploy/pgbackrest/pgbackrest.conf'], ['check-pgbackrest']],
    [['ops/bench/harness/client.ts'], ['check-failover', 'check-pgbackrest']],
    [['ops/deploy/image/Dockerfile'], ['check-image']],
    [['api/routes/service/service.ts'], ['fuzz']],
    [['ops/monitoring/alerts.ts'], ['--monitoring']],
    [['shared/db/migrations/0080-new.sql'], ['--upgrade']],
    [['shared/db/pool.ts'], ['check-failover', '--upgrade']],
    [
      ['README.md', 'ops/monitoring/alerts.ts', 'ops/import/splitter.ts'],
      ['fuzz', '--monitoring'],
    ],
    [['package-lock.json'], checkNames],
    [['.ci/run'], checkNames],
  ])('for %j are %j', (files, names) => {
    expect(needed(...files)).toEqual(names);
  });

  test('compare whole names of files', () => {
    expect(needed('shared/db/pool.ts.orig')).toEqual(['--upgrade']);
    expect(needed('apis/route.ts')).toEqual([]);
  });

  test('are all checks with CI_ALL, or if the change is unknown', () => {
    expect(planChecks({ files: [], since: 'x' }, true).every(({ isNeeded }) => isNeeded)).toBe(
      true,
    );
    expect(planChecks({ unknown: 'no clone' }, false).every(({ isNeeded }) => isNeeded)).toBe(true);
  });

  test('are explained by the file that needs a check, or by what was compared', () => {
    const reasons = planChecks(
      { files: ['shared/config/config.ts'], since: 'CI_BASE (1a2b3c4d)' },
      false,
    );
    const reasonOf = (name: string) => reasons.find((one) => one.name === name)?.reason;
    expect(reasonOf('check-image')).toBe(
      'check-image runs: shared/config/config.ts differs from CI_BASE (1a2b3c4d).',
    );
    expect(reasonOf('fuzz')).toBe(
      'fuzz is left out: nothing that it checks differs from CI_BASE (1a2b3c4d).',
    );
    expect(planChecks({ unknown: 'no clone' }, false)[0]?.reason).toContain('no clone');
  });

  test('are printed as words for `.ci/run`, apart from the reasons', async () => {
    const env = { ...currentEnvironment(), CI_ALL: '1' };
    const { stdout, stderr } = await execute(process.execPath, ['ops/check/ci-plan.ts'], {
      cwd: root,
      env,
    });
    expect(stdout).toBe(`${checkNames.join(' ')}\n`);
    expect(stderr.trim().split('\n')).toEqual(
      checkNames.map((name) => `${name} runs: CI_ALL is set.`),
    );
  });

  test('are selected by files and folders that exist', () => {
    const paths = [...needAll, ...Object.values(covered).flat()];
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('are scripts of npm, or options of `npm test`', async () => {
    const [manifest, steps] = await Promise.all(
      ['package.json', 'ops/check/all.ts'].map((file) => readFile(join(root, file), 'utf8')),
    );
    for (const name of checkNames) {
      const isOption = name.startsWith('--');
      expect(isOption ? steps : manifest).toContain(
        isOption ? `  ${name.slice(2)}: '` : `"${name}": "`,
      );
    }
  });
});

describe('the files of a change', () => {
  let folder: string;
  let origin: string;

  const git = async (cwd: string, ...args: string[]): Promise<string> => {
    const who = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.com' };
    const env = {
      ...currentEnvironment(),
      ...who,
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@example.com',
    };
    return (await execute('git', args, { cwd, env })).stdout.trim();
  };
  const write = async (cwd: string, file: string) => {
    await mkdir(dirname(join(cwd, file)), { recursive: true });
    await writeFile(join(cwd, file), file);
  };
  const commit = async (cwd: string, ...files: string[]): Promise<string> => {
    for (const file of files) await write(cwd, file);
    await git(cwd, 'add', '-A');
    await git(cwd, 'commit', '-qm', files.join());
    return git(cwd, 'rev-parse', 'HEAD');
  };
  const clone = async (...options: string[]): Promise<string> => {
    const path = await mkdtemp(join(folder, 'clone-'));
    await git(folder, 'clone', '-q', ...options, pathToFileURL(origin).href, path);
    return path;
  };
  const filesOf = async (cwd: string, given?: string) => {
    const changed = await listChangedFiles(cwd, given);
    return 'files' in changed ? [...changed.files].sort() : changed.unknown;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'carillon-changes-'));
    origin = join(folder, 'origin');
    await git(folder, 'init', '-q', '-b', 'main', origin);
    await commit(origin, 'a', 'b');
    await git(origin, 'checkout', '-qb', 'branch');
    await commit(origin, 'c');
    await commit(origin, 'ä b.ts');
    await git(origin, 'checkout', '-q', 'main');
    await commit(origin, 'd');
    await commit(origin, 'e');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('on a branch are the files of all its commits since the merge base', async () => {
    expect(await filesOf(await clone('--branch', 'branch'))).toEqual(['c', 'ä b.ts']);
  });

  test('on main are the files of its last commit', async () => {
    expect(await filesOf(await clone())).toEqual(['e']);
    expect(await filesOf(await clone('--depth', '2'))).toEqual(['e']);
  });

  test('for a merge into main are the files of the merged branch', async () => {
    const path = await clone();
    await git(path, 'merge', '-q', '--no-ff', '--no-edit', 'origin/branch');
    await git(path, 'update-ref', 'refs/remotes/origin/main', 'HEAD');
    expect(await filesOf(path)).toEqual(['c', 'ä b.ts']);
  });

  test('include files that are not committed, moved or deleted', async () => {
    const path = await clone('--branch', 'branch');
    await write(path, 'new/file');
    await git(path, 'mv', 'a', 'moved');
    await rm(join(path, 'b'));
    expect(await filesOf(path)).toEqual(['a', 'b', 'c', 'moved', 'new/file', 'ä b.ts']);
  });

  test('are compared with the commit that CI checked last', async () => {
    const path = await clone();
    expect(await filesOf(path, await git(path, 'rev-parse', 'HEAD~2'))).toEqual(['d', 'e']);
  });

  test.each([
    ['a shallow clone of main', ['--depth', '1'], undefined, /does not contain the commit before/],
    [
      'a shallow clone of a branch',
      ['--depth', '1', '--branch', 'branch'],
      undefined,
      /no main branch/,
    ],
    [
      'shallow clones of a branch and main',
      ['--depth', '1', '--branch', 'branch', '--no-single-branch'],
      undefined,
      /merge base/,
    ],
    ['a clone without the given commit', [], '0'.repeat(40), /CI_BASE names the commit 0{40}/],
  ])('are unknown in %s', async (_, options, given, reason) => {
    expect(await filesOf(await clone(...options), given)).toMatch(reason);
  });

  test('are unknown in a folder that is not a clone', async () => {
    const path = join(folder, 'plain');
    await mkdir(path);
    expect(await filesOf(path)).toBe('this is no clone of the repository');
  });
});
