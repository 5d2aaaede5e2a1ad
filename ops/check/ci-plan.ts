// `.ci/run` asks this program which long checks a change needs. It prints their names on standard
// output, and the reason of each decision on standard error. CI_ALL=1 chooses all of them; CI_BASE
// names the commit that was checked last.
import { resolve } from 'node:path';
import { currentEnvironment } from '../../shared/config/config.ts';
import { type ChangedFiles, listChangedFiles } from './changed-files.ts';

/** Names of the checks: scripts of npm, and options of `npm test`. */
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
 * Changes of these files need all checks: versions of packages, and the machinery of the checks.
 */
export const needAll = [
  '.ci/',
  'ops/check/ci-plan.ts',
  'ops/check/changed-files.ts',
  'package-lock.json',
];

const benchService = ['ops/bench/gateway/', 'ops/bench/harness/', 'ops/local/service.ts'];
const testSupport = ['test/support/'];

/** What each check covers: files, and folders with a slash at their end. */
export const covered: Readonly<Record<CheckName, readonly string[]>> = {
  // Connections that are lost, what is tried again, and what callers are answered meanwhile.
  'check-failover': [
    ...['ops/deploy/high-availability/', ...benchService],
    ...['api/middleware/errors.ts', 'api/pools.ts', 'dispatcher/startup/', 'dispatcher/recording/'],
    ...['dispatcher/duties/job-keeper.ts', 'shared/backoff.ts', 'shared/queue/'],
    ...['shared/db/limits/', 'shared/db/listener.ts', 'shared/db/outage.ts', 'shared/db/pool.ts'],
    ...['shared/db/query.ts', 'shared/db/standby.ts'],
  ],
  'check-pgbackrest': [
    ...['ops/deploy/pgbackrest/', ...benchService, 'ops/local/recovery/'],
    ...['ops/cli/commands/service/recovery.ts', 'shared/db/tables/restorations.ts'],
  ],
  // The files of the image, the start of its processes, and their memory.
  'check-image': [
    ...[
      '.npmrc',
      'ops/cli/carillon.mjs',
      'ops/cli/main.ts',
      'ops/console/build.ts',
      'ops/console/bundle.ts',
    ],
    ...['ops/deploy/image/', 'ops/package/', 'api/main.ts', 'api/route-loader.ts', 'api/start.ts'],
    ...['dispatcher/main.ts', 'dispatcher/sending/pool.ts', 'dispatcher/sending/worker.ts'],
    ...['dispatcher/start.ts', 'shared/config/', 'shared/process/'],
  ],
  // Every route and parser that reads what strangers send.
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
  // Metrics, and what queries them.
  '--monitoring': [
    ...[
      'test/monitoring/',
      ...testSupport,
      'ops/monitoring/',
      'ops/deploy/kubernetes/overlays/keda/',
    ],
    ...[
      'shared/metrics.ts',
      'shared/process/operation-metrics.ts',
      'shared/process/operation-metrics.ts',
    ],
    ...['shared/queue/report.ts', 'api/services/server/service.ts', 'dispatcher/health.ts'],
    'dispatcher/sending/pool.ts',
  ],
  // What processes of two versions share: the tables, the jobs, and the push that each of them
  // continues.
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

/** A check with the decision about it. */
export interface Decision {
  readonly name: CheckName;
  readonly isNeeded: boolean;
  /** Sentence for people. */
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

if (import.meta.main) {
  const { CI_ALL, CI_BASE } = currentEnvironment();
  const changed = await listChangedFiles(resolve(import.meta.dirname, '../..'), CI_BASE);
  const decisions = planChecks(changed, CI_ALL === '1');
  for (const { reason } of decisions) process.stderr.write(`${reason}\n`);
  const needed = decisions.filter(({ isNeeded }) => isNeeded).map(({ name }) => name);
  process.stdout.write(`${needed.join(' ')}\n`);
}
