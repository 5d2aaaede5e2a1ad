import type { Handle } from '../../../../shared/db/pool.ts';
import { type Finding, found } from './finding.ts';

/** Limits of a database that is kept up; tests lower them. */
const defaultLimits = {
  /** Dead rows of a table from which on it is named, if they are more than half of its live ones. */
  deadRows: 1_000_000,
  /** Age of a transaction. */
  transactionSeconds: 3600,
  /** Log that an unread slot keeps. */
  slotBytes: 1e9,
  /** Transactions since the oldest frozen one; autovacuum begins at 200 million, the database ends at 2,147. */
  warnTransactions: 1e9,
  failTransactions: 1.6e9,
};

type UpkeepLimits = typeof defaultLimits;

/** Tables of the service; those of the queue are in a schema of their own. */
const ownSchemas = `(current_schema(), 'pgboss')`;
/** Tables that a finding names. */
const maxNamed = 5;

/** Checks what lets a database grow or stop: autovacuum, old transactions, unread slots, transaction ids. */
export async function checkUpkeep(db: Handle, limits: Partial<UpkeepLimits> = {}): Promise<Finding[]> {
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
                     AND c.reloptions && '{autovacuum_enabled=false,autovacuum_enabled=off}' ORDER BY 1) AS off`,
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

async function checkTransactions(db: Handle, { transactionSeconds }: UpkeepLimits): Promise<Finding[]> {
  const name = 'transactions';
  const { rows } = await db.query<{ pid: number; application: string; minutes: number }>(
    `SELECT pid, application_name AS application, round(extract(epoch FROM now() - xact_start) / 60)::int AS minutes
       FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND xact_start < now() - $1 * interval '1 second'
      ORDER BY xact_start LIMIT ${maxNamed}`,
    [transactionSeconds],
  );
  if (rows.length === 0) return [found({ name, status: 'ok', code: 'snapshotsFine' })];
  return rows.map((row) => found({ name, status: 'warn', code: 'oldSnapshot', params: { ...row } }));
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
  if (age <= limits.warnTransactions) return found({ name, status: 'ok', code: 'wraparoundFar', params });
  const status = age > limits.failTransactions ? 'fail' : 'warn';
  return found({ name, status, code: 'wraparoundNear', params });
}
