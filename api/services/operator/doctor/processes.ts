import type { Handle } from '../../../../shared/db/pool.ts';
import {
  listProcesses,
  listReports,
  processGoneMs,
  type ReportedProcess,
  type SeenProcess,
} from '../../../../shared/db/tables/processes.ts';
import { type Finding, found } from './finding.ts';

/**
 * Differences of clocks above which there is a warning: tokens of gateways and scheduled pushes depend on the time. A row
 * that the database writes late makes a clock look behind.
 */
const maxAheadMs = 1000;
const maxBehindMs = 10_000;
/** Fewest files that a process should be able to open, and the part of the limit that it may use. */
const leastFiles = 4096;
const fullShare = 0.8;
/** Time without a success of a duty, in seconds; the scheduler runs at least twice a second. */
const lateAfter = 1800;
const schedulerLateAfter = 60;

/** Checks the running processes: versions, clocks, open files, and the duties of the dispatchers. */
export async function checkProcesses(db: Handle): Promise<Finding[]> {
  const processes = await listProcesses(db, processGoneMs);
  const reports = await listReports(db, processGoneMs);
  return [
    ...checkNumbers(processes),
    ...reports.flatMap(checkClock),
    ...checkFiles(reports),
    ...checkDuties(reports),
  ];
}

/** Checks that a dispatcher runs, and that all processes have one version. */
function checkNumbers(processes: readonly SeenProcess[]): Finding[] {
  const versions = [...new Set(processes.map(({ version }) => version))];
  const ofKind = (kind: SeenProcess['kind']) => processes.filter((one) => one.kind === kind).length;
  const params = { apis: ofKind('api'), dispatchers: ofKind('dispatcher') };
  const name = 'processes';
  const finding =
    params.dispatchers === 0
      ? found({ name, status: 'fail', code: 'noDispatcher', params })
      : found({ name, status: 'ok', code: 'processes', params });
  if (versions.length <= 1) return [finding];
  const several = { versions: versions.join(', ') };
  return [finding, found({ name: 'versions', status: 'warn', code: 'severalVersions', params: several })];
}

function checkClock({ kind, host, pid, clockAheadMs }: ReportedProcess): Finding[] {
  if (clockAheadMs <= maxAheadMs && clockAheadMs >= -maxBehindMs) return [];
  const params = { kind, host, pid, seconds: (clockAheadMs / 1000).toFixed(1) };
  return [found({ name: 'process clocks', status: 'warn', code: 'processClock', params })];
}

function checkFiles(reports: readonly ReportedProcess[]): Finding[] {
  const name = 'open files';
  const scarce = reports.flatMap(({ kind, host, pid, connections, report: { maxFiles } }) => {
    if (maxFiles === null || (maxFiles >= leastFiles && connections < maxFiles * fullShare)) return [];
    const params = { kind, host, pid, max: maxFiles, used: connections };
    return [found({ name, status: 'warn', code: 'filesScarce', params })];
  });
  if (scarce.length > 0 || reports.length === 0) return scarce;
  return [found({ name, status: 'ok', code: 'filesFine' })];
}

/** Checks when a dispatcher, whichever it was, last succeeded in each duty. */
function checkDuties(reports: readonly ReportedProcess[]): Finding[] {
  const name = 'duties';
  const ages = new Map<string, number>();
  for (const { report, ageSeconds } of reports)
    for (const [duty, seconds] of Object.entries(report.duties))
      ages.set(duty, Math.min(ages.get(duty) ?? Number.POSITIVE_INFINITY, seconds + ageSeconds));
  const late = [...ages].flatMap(([duty, seconds]) => {
    const isScheduler = duty === 'scheduler';
    if (seconds <= (isScheduler ? schedulerLateAfter : lateAfter)) return [];
    const params = { duty, minutes: Math.round(seconds / 60) };
    return [found({ name, status: isScheduler ? 'fail' : 'warn', code: 'dutyStands', params })];
  });
  if (late.length > 0 || ages.size === 0) return late;
  return [found({ name, status: 'ok', code: 'dutiesFine', params: { duties: ages.size } })];
}
