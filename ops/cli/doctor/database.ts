import { statfs } from 'node:fs/promises';
import { type Finding, found, reasonOf } from '../../../api/services/operator/doctor/checks.ts';
import type { Clock } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import {
  citusVersion,
  placingStatements,
  readDistribution,
  readShardServers,
  type ShardServer,
} from '../../../shared/db/sharding.ts';
import { readStandbyLag } from '../../../shared/db/standby.ts';
import type { TextParams } from '../../../shared/domain/texts/texts.ts';
import { pendingChanges } from '../../../shared/queue/migrate.ts';

/** PostgreSQL 15, the oldest supported version (develop/architecture.md#data). */
const oldestVersion = 150_000;

/** Limits on the clock difference. Gateway tokens and scheduled pushes depend on the time. */
const warnAboveMs = 1000;
const failAboveMs = 60_000;

/** Opens the database for the checks. */
export function openForChecks(url: string): Database {
  return new Database({ url, applicationName: 'carillon doctor', maxConnections: 2 });
}

/**
 * Checks that the database is reachable and new enough, and that its clock matches this machine's
 * clock.
 */
export async function checkDatabase(db: Database, clock: Clock): Promise<Finding[]> {
  try {
    // The first query opens the connection, so that the second query measures only the clock.
    await db.query('SELECT 1');
    const queriedAtMs = clock.now();
    const { rows } = await db.query<ServerInfo>(
      `SELECT current_setting('server_version_num')::int AS version,
              current_setting('server_version') AS name,
              (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms,
              (SELECT s.version FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid() AND s.ssl) AS tls,
              inet_client_addr() IS NULL AS is_socket,
                coalesce(inet_client_addr() <<= ANY ('{127.0.0.0/8,::1/128}'::inet[]),
                  true) AS is_local`,
    );
    const middleMs = (queriedAtMs + clock.now()) / 2;
    const row = rows[0];
    if (!row) throw new Error('it returned no row');
    return [checkVersion(row), ...checkEncryption(row), checkClock(row.now_ms - middleMs)];
  } catch (error) {
    const params = { why: reasonOf(error) };
    return [found({ name: 'database', status: 'fail', code: 'databaseAway', params })];
  }
}

interface ServerInfo {
  version: number;
  name: string;
  now_ms: number;
  /** TLS version. Null if the connection is not encrypted. */
  tls: string | null;
  is_socket: boolean;
  /** True if the connection comes from this machine. */
  is_local: boolean;
}

/**
 * Checks that a connection to another machine is encrypted. Only keys are encrypted in the
 * database; other data would cross the network in plain text.
 */
export function checkEncryption({
  tls,
  is_local: isLocal,
}: Pick<ServerInfo, 'tls' | 'is_local'>): Finding[] {
  if (tls !== null || isLocal) return [];
  return [found({ name: 'encryption', status: 'warn', code: 'databaseUnencrypted' })];
}

function checkVersion({
  version: number,
  name: version,
  tls,
  is_socket: isSocket,
}: ServerInfo): Finding {
  const name = 'database';
  if (number < oldestVersion)
    return found({ name, status: 'fail', code: 'databaseOld', params: { version } });
  const unencrypted = isSocket ? 'databaseBySocket' : 'databaseOpen';
  const code = tls === null || isSocket ? unencrypted : 'databaseEncrypted';
  return found({ name, status: 'ok', code, params: { version, tls } });
}

function checkClock(differenceMs: number): Finding {
  const absoluteMs = Math.abs(differenceMs);
  const seconds = (absoluteMs / 1000).toFixed(3);
  const params: TextParams = differenceMs < 0 ? { behind: seconds } : { ahead: seconds };
  const name = 'clock';
  if (absoluteMs <= warnAboveMs) return found({ name, status: 'ok', code: 'clockFine', params });
  return found({
    name,
    status: absoluteMs > failAboveMs ? 'fail' : 'warn',
    code: 'clockOff',
    params,
  });
}

/** Lag of a standby above which a warning is shown. Scans move to the primary long before. */
const maxLagSeconds = 30;

/** Checks the standby that runs the `where` scans, and its lag. */
export async function checkStandby(url: string, maxSeconds = maxLagSeconds): Promise<Finding> {
  const standby = openForChecks(url);
  const name = 'standby';
  try {
    await standby.query('SELECT 1 FROM installation LIMIT 1');
    const seconds = await readStandbyLag(standby);
    const params = { seconds: seconds.toFixed(1) };
    return seconds <= maxSeconds
      ? found({ name, status: 'ok', code: 'standbyFine', params })
      : found({ name, status: 'warn', code: 'standbyLate', params });
  } catch (error) {
    return found({ name, status: 'fail', code: 'standbyAway', params: { why: reasonOf(error) } });
  } finally {
    await standby.close();
  }
}

/** Checks that all migrations of this version have run. */
export async function checkMigrations(url: string): Promise<Finding> {
  const name = 'migrations';
  try {
    const pending = await pendingChanges(url);
    if (pending.length === 0) return found({ name, status: 'ok', code: 'migrationsFine' });
    const params = { changes: pending.join(', ') };
    return found({ name, status: 'fail', code: 'migrationsPending', params });
  } catch (error) {
    return found({
      name,
      status: 'fail',
      code: 'migrationsUntold',
      params: { why: reasonOf(error) },
    });
  }
}

/**
 * Limits on the free disk space. A limit is exceeded only if both the share and the number of bytes
 * are below it.
 */
const defaultLimits = { warnShare: 0.1, warnBytes: 5e9, failShare: 0.02, failBytes: 1e9 };

const inGigabytes = (bytes: number) => (bytes / 1e9).toFixed(1);

/**
 * Checks the free disk space of the database. This works only if the database is on this machine
 * and the role may read the path of its data folder, because PostgreSQL itself does not report disk
 * space.
 */
export async function checkDisk(
  db: Database,
  limits: Partial<typeof defaultLimits> = {},
): Promise<Finding> {
  const { warnShare, warnBytes, failShare, failBytes } = { ...defaultLimits, ...limits };
  const { rows } = await db.query<{ size: number; dir: string | null }>(
    `SELECT pg_database_size(current_database())::float8 AS size,
            (SELECT setting FROM pg_settings WHERE name = 'data_directory'
              AND (inet_client_addr() IS NULL
                OR inet_client_addr() <<= ANY ('{127.0.0.0/8,::1/128}'::inet[]))) AS dir`,
  );
  const { size = 0, dir = null } = rows[0] ?? {};
  const used = inGigabytes(size);
  const room = dir === null ? undefined : await statfs(dir).catch(() => undefined);
  if (!room)
    return found({ name: 'disk', status: 'ok', code: 'diskUnseen', params: { size: used } });
  const [free, total] = [room.bavail * room.bsize, room.blocks * room.bsize];
  const params = { size: used, free: inGigabytes(free), total: inGigabytes(total) };
  if (free < total * failShare && free < failBytes)
    return found({ name: 'disk', status: 'fail', code: 'diskScarce', params });
  return free < total * warnShare && free < warnBytes
    ? found({ name: 'disk', status: 'warn', code: 'diskScarce', params })
    : found({ name: 'disk', status: 'ok', code: 'diskFine', params });
}

/** Reports the servers of the shards. Returns nothing without Citus (operate/distributed.md). */
export async function checkSharding(db: Database): Promise<Finding[]> {
  const version = await citusVersion(db);
  if (version === undefined) return [];
  const servers = await readShardServers(db);
  const findings = servers.map(findingOf);
  const isComplete = placingStatements(await readDistribution(db)).length === 0;
  const whole = isComplete
    ? found({ name: 'spread', status: 'ok', code: 'spreadFine', params: { version } })
    : found({ name: 'spread', status: 'warn', code: 'spreadPartly', params: { version } });
  return [whole, ...findings];
}

function findingOf({ server, shards, rows, bytes }: ShardServer): Finding {
  const sizes = {
    rows: Math.round(rows).toLocaleString('en'),
    megabytes: (bytes / 1e6).toFixed(1),
  };
  return found({
    name: 'spread',
    status: 'ok',
    code: 'spreadServer',
    params: { server, shards, ...sizes },
  });
}
