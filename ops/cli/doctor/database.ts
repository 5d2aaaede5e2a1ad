import type { Clock } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import { pendingChanges } from '../../../shared/queue/migrate.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

/** design.md 4: PostgreSQL 15 or newer. */
const oldestVersion = 150_000;

/** Tokens of gateways and scheduled pushes live by the clock; a second is noticed, a minute is refused. */
const warnAboveMs = 1000;
const failAboveMs = 60_000;

/** Opens the database for the length of the check-up. */
export function openForCheckup(url: string): Database {
  return new Database({ url, applicationName: 'carillon doctor', maxConnections: 2 });
}

/** Reachable, new enough, and with the same time as this machine. */
export async function checkDatabase(db: Database, clock: Clock): Promise<Finding[]> {
  try {
    // The first query pays for the connection; the second one measures.
    await db.query('SELECT 1');
    const askedAtMs = clock.now();
    const { rows } = await db.query<{ version: number; name: string; now_ms: number }>(
      `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS name,
              (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms`,
    );
    const middleMs = (askedAtMs + clock.now()) / 2;
    const row = rows[0];
    if (!row) throw new Error('it gave no answer');
    return [checkVersion(row), checkClock(row.now_ms - middleMs)];
  } catch (error) {
    const advice =
      'Start it, or correct DATABASE_URL; under `npm start` the database runs only while the service does.';
    return [fail('database', `not reachable: ${reasonOf(error)}`, advice)];
  }
}

function checkVersion({ version, name }: { version: number; name: string }): Finding {
  return version >= oldestVersion
    ? ok('database', `PostgreSQL ${name} answers`)
    : fail('database', `PostgreSQL ${name} is too old`, 'Move to PostgreSQL 15 or newer.');
}

function checkClock(differenceMs: number): Finding {
  const awayMs = Math.abs(differenceMs);
  const detail = `the database's clock is ${(awayMs / 1000).toFixed(3)} s ${differenceMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  const advice = 'Let both machines take their time from NTP.';
  if (awayMs > failAboveMs) return fail('clock', detail, advice);
  return awayMs > warnAboveMs ? warn('clock', detail, advice) : ok('clock', detail);
}

/** A standby that `where` scans read, if one is set. */
export async function checkStandby(url: string): Promise<Finding> {
  const standby = openForCheckup(url);
  try {
    await standby.query('SELECT 1 FROM installation LIMIT 1');
    return ok('standby', 'the standby answers');
  } catch (error) {
    return fail(
      'standby',
      `not usable: ${reasonOf(error)}`,
      'Start it, correct DATABASE_READ_URL, or leave it out.',
    );
  } finally {
    await standby.close();
  }
}

/** Whether the tables and queues are those that this version expects. */
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
