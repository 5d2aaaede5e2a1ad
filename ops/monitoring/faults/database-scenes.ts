import { join } from 'node:path';
import { Client } from 'pg';
import { sleep } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import { startEmbeddedPostgres } from '../../local/postgres/server.ts';
import { cloneServer, ended, repeat, type Scene, type Stage, type StageApp } from './stage.ts';

/** Locks a table while `work` runs. */
async function whileLocked(
  stage: Stage,
  table: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const client = new Client({ connectionString: stage.db.url });
  await client.connect();
  try {
    await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    await work();
  } finally {
    await client.end();
  }
}

/** Calls wait for a locked table: first in PostgreSQL, then for a free connection. */
async function lockCalls(stage: Stage, signal: AbortSignal): Promise<void> {
  const app = await stage.createApp();
  const read = () => stage.call(app, '/1.1/tables/Notifications/none');
  let callers: Promise<void>[] = [];
  await whileLocked(stage, 'notification', async () => {
    // The callers start one after the other, so that replies arrive steadily and not in groups.
    callers = Array.from({ length: 40 }, (_, i) =>
      sleep(i * 150, signal).then(() => repeat(signal, 10, read)),
    );
    await ended(signal);
  });
  await Promise.all(callers);
}

/** Planning waits for a locked table, so pushes start more than 5 s late. */
async function lockPlanning(stage: Stage, signal: AbortSignal): Promise<void> {
  const app = await stage.createApp({ pushCallsPerMinute: 1000 });
  await stage.addDevices(app, 1);
  await repeat(signal, 500, () =>
    whileLocked(stage, 'installation', async () => {
      await stage.call(app, '/1.1/push', { data: { alert: 'A fault' } });
      await sleep(6000, signal);
    }),
  );
}

/** Resolves when a standby has replayed a transaction. Before that, its lag is unknown. */
async function untilReplayed(standby: Database): Promise<void> {
  const hasReplayed = async () =>
    (await standby.query<{ at: Date | null }>('SELECT pg_last_xact_replay_timestamp() AS at'))
      .rows[0]?.at;
  while (!(await hasReplayed())) await sleep(50);
}

/**
 * A standby receives changes but does not replay them, as during a long statement on the standby.
 */
async function lagStandby(stage: Stage, signal: AbortSignal): Promise<void> {
  const dataDir = join(stage.folder, 'standby');
  await cloneServer({ ...stage.primary, db: stage.db }, dataDir);
  const server = await startEmbeddedPostgres({ dataDir, memoryMb: 1024, durable: false });
  const standby = new Database({ url: server.databaseUrl, applicationName: 'faults' });
  try {
    await stage.createApp();
    await untilReplayed(standby);
    await standby.query('SELECT pg_wal_replay_pause()');
    await stage.service.stopDispatchers();
    await stage.service.startDispatcher({ DATABASE_READ_URL: server.databaseUrl });
    await ended(signal);
    await stage.service.stopDispatchers();
    await stage.service.startDispatcher();
  } finally {
    await standby.close();
    await server.stop('immediate');
  }
}

/** The scheduler waits for a locked table. The query of the scheduler's gauges waits too. */
const lockSchedule = (stage: Stage, signal: AbortSignal) =>
  whileLocked(stage, 'scheduled_push', () => ended(signal));

/** The database is read-only, like a former primary. Calls that write fail. */
async function onlyRead(stage: Stage, signal: AbortSignal): Promise<void> {
  const app = await stage.createApp();
  await setReadOnly(stage, 'on');
  await repeat(signal, 50, () => save(stage, app));
  await setReadOnly(stage, 'off');
}

const save = (stage: Stage, app: StageApp) =>
  stage.call(app, '/1.1/installations', { deviceType: 'android', installationId: 'fault' });

/** Makes new connections read-only or writable, and ends the old connections. */
async function setReadOnly({ db }: Stage, value: 'on' | 'off'): Promise<void> {
  await db.query(
    `BEGIN READ WRITE; ALTER DATABASE carillon SET default_transaction_read_only = ${value}; COMMIT`,
  );
  await db.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'carillon'
      AND pid <> pg_backend_pid()`,
  );
}

export const databaseScenes: readonly Scene[] = [
  {
    alerts: ['CarillonSchemaPending'],
    async run({ db }, signal) {
      const last = 'SELECT max(name) FROM carillon_migration';
      const { rows } = await db.query(
        `DELETE FROM carillon_migration WHERE name = (${last}) RETURNING name, run_on`,
      );
      await ended(signal);
      await db.query('INSERT INTO carillon_migration (name, run_on) VALUES ($1, $2)', [
        rows[0]?.name,
        rows[0]?.run_on,
      ]);
    },
  },
  { alerts: ['CarillonFirstSendSlow'], run: lockPlanning },
  { alerts: ['CarillonApiSlow', 'CarillonPoolFull'], run: lockCalls },
  {
    alerts: ['CarillonReadingOld', 'CarillonDutyStands', 'CarillonSchedulerLate'],
    labels: { duty: 'scheduler' },
    run: lockSchedule,
  },
  { alerts: ['CarillonStandbyLag'], run: lagStandby },
  { alerts: ['CarillonApiErrors', 'CarillonDatabaseErrors'], run: onlyRead },
];
