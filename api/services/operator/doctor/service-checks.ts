import type { Handle } from '../../../../shared/db/pool.ts';
import {
  listProcesses,
  listReports,
  type ReportedProcess,
  type SeenProcess,
} from '../../../../shared/db/tables/processes.ts';
import { findRestoration } from '../../../../shared/db/tables/restorations.ts';

import { type Finding, found } from './checks.ts';

/**
 * Clock differences above which the doctor warns. Gateway tokens and scheduled pushes depend on the
 * time. A clock can appear late if the database wrote its row late, so `maxBehindMs` is larger.
 */
const maxAheadMs = 1000;
const maxBehindMs = 10_000;
/**
 * Minimum number of files that a process should be able to open, and the share of the limit that it
 * may use.
 */
const minFiles = 4096;
const fullShare = 0.8;
/**
 * Seconds after the last success of a background job after which the job is late. The scheduler
 * runs at least twice a second.
 */
const lateAfter = 1800;
const schedulerLateAfter = 60;

/**
 * Checks the running processes: versions, clocks, open files, and the background jobs of the
 * dispatchers.
 */
export async function checkProcesses(db: Handle): Promise<Finding[]> {
  const processes = await listProcesses(db);
  const reports = await listReports(db);
  return [
    ...checkNumbers(processes),
    ...reports.flatMap(checkClock),
    ...checkFiles(reports),
    ...checkBackgroundJobs(reports),
  ];
}

/** Checks that a dispatcher runs and that all processes have the same version. */
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
  return [
    finding,
    found({ name: 'versions', status: 'warn', code: 'severalVersions', params: several }),
  ];
}

function checkClock({ kind, host, pid, clockAheadMs }: ReportedProcess): Finding[] {
  if (clockAheadMs <= maxAheadMs && clockAheadMs >= -maxBehindMs) return [];
  const params = { kind, host, pid, seconds: (clockAheadMs / 1000).toFixed(1) };
  return [found({ name: 'process clocks', status: 'warn', code: 'processClock', params })];
}

function checkFiles(reports: readonly ReportedProcess[]): Finding[] {
  const name = 'open files';
  const scarce = reports.flatMap(({ kind, host, pid, connections, report: { maxFiles } }) => {
    if (maxFiles === null || (maxFiles >= minFiles && connections < maxFiles * fullShare))
      return [];
    const params = { kind, host, pid, max: maxFiles, used: connections };
    return [found({ name, status: 'warn', code: 'filesScarce', params })];
  });
  if (scarce.length > 0 || reports.length === 0) return scarce;
  return [found({ name, status: 'ok', code: 'filesFine' })];
}

/** Checks when each background job last succeeded in any dispatcher. */
function checkBackgroundJobs(reports: readonly ReportedProcess[]): Finding[] {
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

/** Limits of a well-maintained database. Tests use smaller limits. */
const defaultLimits = {
  /**
   * Number of dead rows above which a table is reported, if they are more than half of its live
   * rows.
   */
  deadRows: 1_000_000,
  /** Age of a transaction above which it is reported. */
  transactionSeconds: 3600,
  /** Bytes of WAL that an unread replication slot may keep. */
  slotBytes: 1e9,
  /**
   * Number of transactions since the oldest frozen transaction. Autovacuum starts at 200 million.
   * PostgreSQL stops at 2,147 million.
   */
  warnTransactions: 1e9,
  failTransactions: 1.6e9,
};

type UpkeepLimits = typeof defaultLimits;

/** Schemas of Carillon's tables. The queue's tables have their own schema. */
const ownSchemas = `(current_schema(), 'pgboss')`;
/** Maximum number of tables in a finding. */
const maxNamed = 5;

/**
 * Checks conditions that make a database grow or stop: autovacuum, old transactions, unread
 * replication slots, transaction ids.
 */
export async function checkUpkeep(
  db: Handle,
  limits: Partial<UpkeepLimits> = {},
): Promise<Finding[]> {
  const all = { ...defaultLimits, ...limits };
  return [
    ...(await checkAutovacuum(db, all)),
    ...(await checkTransactions(db, all)),
    ...(await checkSlots(db, all)),
    await checkWraparound(db, all),
  ];
}

async function checkAutovacuum(db: Handle, { deadRows }: UpkeepLimits): Promise<Finding[]> {
  const name = 'autovacuum';
  const { rows } = await db.query<{ isOn: boolean; off: string[] }>(
    `SELECT current_setting('autovacuum')::boolean AS "isOn",
            ARRAY(SELECT c.oid::regclass::text FROM pg_class c
                   WHERE c.relnamespace::regnamespace::text IN ${ownSchemas}
                     AND c.reloptions && '{autovacuum_enabled=false,autovacuum_enabled=off}'
                       ORDER BY 1) AS off`,
  );
  const { isOn = true, off = [] } = rows[0] ?? {};
  const { rows: full } = await db.query<{ table: string; dead: number; live: number }>(
    `SELECT relname AS table, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
      WHERE schemaname IN ${ownSchemas} AND n_dead_tup > $1 AND n_dead_tup > n_live_tup / 2
      ORDER BY n_dead_tup DESC LIMIT ${maxNamed}`,
    [deadRows],
  );
  const findings = full.map((params) =>
    found({ name, status: 'warn', code: 'deadRows', params: { ...params } }),
  );
  if (!isOn) findings.push(found({ name, status: 'fail', code: 'autovacuumOff' }));
  const tables = off.slice(0, maxNamed).join(', ');
  if (off.length > 0)
    findings.push(found({ name, status: 'warn', code: 'autovacuumOffFor', params: { tables } }));
  return findings.length > 0 ? findings : [found({ name, status: 'ok', code: 'autovacuumFine' })];
}

async function checkTransactions(
  db: Handle,
  { transactionSeconds }: UpkeepLimits,
): Promise<Finding[]> {
  const name = 'transactions';
  const { rows } = await db.query<{ pid: number; application: string; minutes: number }>(
    `SELECT pid, application_name AS application,
      round(extract(epoch FROM now() - xact_start) / 60)::int AS minutes
       FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND xact_start < now() - $1 * interval '1 second'
      ORDER BY xact_start LIMIT ${maxNamed}`,
    [transactionSeconds],
  );
  if (rows.length === 0) return [found({ name, status: 'ok', code: 'snapshotsFine' })];
  return rows.map((row) =>
    found({ name, status: 'warn', code: 'oldSnapshot', params: { ...row } }),
  );
}

async function checkSlots(db: Handle, { slotBytes }: UpkeepLimits): Promise<Finding[]> {
  const { rows } = await db.query<{ slot: string; megabytes: number }>(
    `SELECT slot, round(bytes / 1e6)::int AS megabytes FROM (
       SELECT slot_name AS slot, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS bytes
         FROM pg_replication_slots WHERE NOT active AND NOT pg_is_in_recovery()) AS s
      WHERE bytes > $1 ORDER BY bytes DESC LIMIT ${maxNamed}`,
    [slotBytes],
  );
  return rows.map((row) =>
    found({ name: 'replication slots', status: 'warn', code: 'idleSlot', params: { ...row } }),
  );
}

async function checkWraparound(db: Handle, limits: UpkeepLimits): Promise<Finding> {
  const { rows } = await db.query<{ age: number }>(
    `SELECT greatest(age(datfrozenxid), mxid_age(datminmxid))::float8 AS age
       FROM pg_database WHERE datname = current_database()`,
  );
  const age = rows[0]?.age ?? 0;
  const name = 'wraparound';
  const params = { millions: Math.round(age / 1e6) };
  if (age <= limits.warnTransactions)
    return found({ name, status: 'ok', code: 'wraparoundFar', params });
  const status = age > limits.failTransactions ? 'fail' : 'warn';
  return found({ name, status, code: 'wraparoundNear', params });
}

/** Reports pushes that a restore has paused. */
export async function checkRestoration(db: Handle): Promise<Finding[]> {
  const restoration = await findRestoration(db);
  if (!restoration || restoration.paused === 0) return [];
  const { asOf, paused } = restoration;
  return [
    found({
      name: 'restore',
      status: 'warn',
      code: 'restored',
      params: { asOf: asOf.toISOString(), paused },
    }),
  ];
}
