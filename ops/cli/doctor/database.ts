import { type Finding, fail, ok, reasonOf, warn } from '../../../api/services/operator/doctor/finding.ts';
import type { Clock } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import { readStandbyLag } from '../../../shared/db/standby.ts';
import { pendingChanges } from '../../../shared/queue/migrate.ts';

/** PostgreSQL 15, the oldest supported version (develop/architecture.md#data). */
const oldestVersion = 150_000;

/** Limits on the clock difference: gateway tokens and scheduled pushes depend on the time. */
const warnAboveMs = 1000;
const failAboveMs = 60_000;

/** Opens the database for the checks. */
export function openForChecks(url: string): Database {
  return new Database({ url, applicationName: 'carillon doctor', maxConnections: 2 });
}

/** Checks that the database is reachable, new enough, and has the same time as this machine. */
export async function checkDatabase(db: Database, clock: Clock): Promise<Finding[]> {
  try {
    // The first query opens the connection, so that the second one measures the clock only.
    await db.query('SELECT 1');
    const askedAtMs = clock.now();
    const { rows } = await db.query<ServerInfo>(
      `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS name,
              (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms,
              (SELECT s.version FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid() AND s.ssl) AS tls,
              inet_client_addr() IS NULL AS is_socket,
              coalesce(inet_client_addr() <<= ANY ('{127.0.0.0/8,::1/128}'::inet[]), true) AS is_local`,
    );
    const middleMs = (askedAtMs + clock.now()) / 2;
    const row = rows[0];
    if (!row) throw new Error('it returned no row');
    return [checkVersion(row), ...checkEncryption(row), checkClock(row.now_ms - middleMs)];
  } catch (error) {
    const advice =
      'Start it, or correct DATABASE_URL; under `npm start` the database runs only while the service does.';
    return [fail('database', `not reachable: ${reasonOf(error)}`, advice)];
  }
}

interface ServerInfo {
  version: number;
  name: string;
  now_ms: number;
  /** Null where the connection is not encrypted. */
  tls: string | null;
  is_socket: boolean;
  /** Whether the connection is from this machine. */
  is_local: boolean;
}

function describeConnection({ tls, is_socket: isSocket }: ServerInfo): string {
  if (isSocket) return 'through a socket of this machine';
  return tls === null ? 'the connection is not encrypted' : `the connection is encrypted (${tls})`;
}

/** Checks that a connection to another machine is encrypted: keys are stored encrypted, other data is not. */
export function checkEncryption({ tls, is_local: isLocal }: Pick<ServerInfo, 'tls' | 'is_local'>): Finding[] {
  if (tls !== null || isLocal) return [];
  const advice =
    'Add sslmode=verify-full to DATABASE_URL, or sslmode=require where its certificate has no name.';
  return [
    warn('encryption', 'the connection to the database leaves this machine and is not encrypted', advice),
  ];
}

function checkVersion(info: ServerInfo): Finding {
  const { version, name } = info;
  return version >= oldestVersion
    ? ok('database', `PostgreSQL ${name} answers, ${describeConnection(info)}`)
    : fail('database', `PostgreSQL ${name} is too old`, 'Move to PostgreSQL 15 or newer.');
}

function checkClock(differenceMs: number): Finding {
  const absoluteMs = Math.abs(differenceMs);
  const detail = `the database's clock is ${(absoluteMs / 1000).toFixed(3)} s ${differenceMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  const advice = 'Let both machines take their time from NTP.';
  if (absoluteMs > failAboveMs) return fail('clock', detail, advice);
  return absoluteMs > warnAboveMs ? warn('clock', detail, advice) : ok('clock', detail);
}

/** Lag of a standby above which there is a warning: its scans move to the primary long before. */
const maxLagSeconds = 30;

/** Checks the standby for `where` scans, and how far it is behind. */
export async function checkStandby(url: string, maxSeconds = maxLagSeconds): Promise<Finding> {
  const standby = openForChecks(url);
  const name = 'standby';
  try {
    await standby.query('SELECT 1 FROM installation LIMIT 1');
    const seconds = await readStandbyLag(standby);
    const detail = `the standby answers, ${seconds.toFixed(1)} s behind`;
    if (seconds <= maxSeconds) return ok(name, detail);
    return warn(
      name,
      detail,
      'See its log and the network to the primary; in this time the primary serves all scans.',
    );
  } catch (error) {
    return fail(
      name,
      `not usable: ${reasonOf(error)}`,
      'Start it, correct DATABASE_READ_URL, or leave it out.',
    );
  } finally {
    await standby.close();
  }
}

/** Checks that all migrations of this version have run. */
export async function checkMigrations(url: string): Promise<Finding> {
  try {
    const pending = await pendingChanges(url);
    return pending.length === 0
      ? ok('migrations', 'the database is up to date')
      : fail('migrations', `still to be run: ${pending.join(', ')}`, 'Run `carillon migrate`.');
  } catch (error) {
    return fail(
      'migrations',
      `cannot be told: ${reasonOf(error)}`,
      'A database of a newer version, or of something else? See DATABASE_URL.',
    );
  }
}
