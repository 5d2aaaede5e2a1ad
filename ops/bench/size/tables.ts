import { systemClock } from '../../../shared/clock.ts';
import {
  displaceOldest,
  findCrowdedInboxes,
  firstInbox,
} from '../../../shared/db/tables/channel-messages.ts';
import {
  findInstallationsOfDevices,
  writeInstallationGroup,
} from '../../../shared/db/tables/installation-saves.ts';
import { deleteOldPushes } from '../../../shared/db/tables/pushes.ts';
import { readArgs } from '../harness/arguments.ts';
import { type Bench, withBench } from '../harness/bench-service.ts';
import { createApp } from '../harness/client.ts';
import type { Figure } from '../harness/figure.ts';
import { allDatabaseCpuSeconds } from '../harness/process-use.ts';
import { subscribeSparsely, writeInstallations } from '../harness/seed.ts';

const defaultRows = 1_000_000;
const smallApp = 5000;
const saves = 10_000;
/** Devices that are saved together, as calls at the same time are. */
const savedTogether = 50;
const reads = 50;
/** Messages in each inbox. */
const messages = 10;
/** Inbox rows that one statement reads. */
const walkedTogether = 20_000;

/**
 * Measures the tables that grow, with `args[0]` rows in each (a million by default): saves of installations, a condition of a
 * small app beside a large one, the deletion of failures, and the walk over inboxes.
 */
export function benchTables(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [rows = defaultRows] = numbers;
  return withBench(log, setups[0] ?? {}, async (bench) => {
    const large = (await createApp(bench)).appId;
    const small = (await createApp(bench)).appId;
    log(`writing ${rows} installations`);
    await writeInstallations(bench, large, rows);
    await writeInstallations(bench, small, smallApp);
    await subscribeSparsely(bench, large, 50);
    await subscribeSparsely(bench, small, 50);
    return [
      { name: 'rows', value: rows, unit: 'rows' },
      ...(await measureSaves(bench, large, rows)),
      ...(await measureCondition(bench, 'an app of 5,000', small)),
      ...(await measureCondition(bench, 'the large app', large)),
      ...(await measureCleaning(bench, large, rows)),
      ...(await measureInboxes(bench, large, rows)),
    ];
  });
}

const noIds = { installationId: undefined, deviceToken: undefined, registrationId: undefined };

const cpuOf = ({ db }: Bench): Promise<number> => allDatabaseCpuSeconds(db);

/** Returns the processor time of PostgreSQL during `work`, divided by `count`, in µs. */
async function cpuMicros(bench: Bench, count: number, work: () => Promise<void>): Promise<number> {
  const before = await cpuOf(bench);
  await work();
  return (((await cpuOf(bench)) - before) * 1e6) / count;
}

interface WriteState {
  updates: number;
  hot: number;
  wal: number;
}

async function writeState({ db }: Bench): Promise<WriteState> {
  // A connection reports its counts when it is idle or asked to.
  await db.query('SELECT pg_stat_force_next_flush()');
  const { rows } = await db.query<WriteState>(
    `SELECT n_tup_upd AS updates, n_tup_hot_upd AS hot, (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal
       FROM pg_stat_user_tables WHERE relname = 'installation'`,
  );
  if (!rows[0]) throw new Error('the database returned no statistics');
  return rows[0];
}

async function measureSaves(bench: Bench, appId: string, rows: number): Promise<Figure[]> {
  const before = await writeState(bench);
  const micros = await cpuMicros(bench, saves, async () => {
    for (let i = 0; i < saves; i += savedTogether) await saveSome(bench, appId, rows);
  });
  const after = await writeState(bench);
  return [
    { name: 'save, PostgreSQL CPU', value: micros, unit: 'µs' },
    { name: 'save, write-ahead log', value: (after.wal - before.wal) / saves, unit: 'bytes' },
    {
      name: 'saves that write no index',
      value: ((after.hot - before.hot) * 100) / (after.updates - before.updates),
      unit: '%',
    },
  ];
}

/** Saves random devices unchanged. */
async function saveSome({ db }: Bench, appId: string, rows: number): Promise<void> {
  const devices = Array.from({ length: savedTogether }, () => {
    const number = 1 + Math.floor(Math.random() * rows);
    const objectId = number.toString(16).padStart(24, '0');
    return { appId, ids: { ...noIds, objectId } };
  });
  const found = await findInstallationsOfDevices(db, devices);
  const updates = found.flatMap(([first]) =>
    first ? [{ appId, id: first.installation.id, row: first.row, draft: first.installation }] : [],
  );
  await writeInstallationGroup(db, { inserts: [], updates, now: new Date(systemClock.now()) });
}

async function measureCondition(bench: Bench, name: string, appId: string): Promise<Figure[]> {
  let devices = 0;
  const micros = await cpuMicros(bench, reads, async () => {
    for (let i = 0; i < reads; i += 1) {
      const { rowCount } = await bench.db.query(
        `SELECT id FROM installation WHERE app_id = $1 AND valid AND channels && '{sparse}'::text[] ORDER BY id`,
        [appId],
      );
      devices = rowCount ?? 0;
    }
  });
  return [{ name: `condition for ${devices} devices of ${name}, PostgreSQL CPU`, value: micros, unit: 'µs' }];
}

async function measureCleaning(bench: Bench, appId: string, rows: number): Promise<Figure[]> {
  const { db } = bench;
  await db.query(
    `WITH push AS (
       INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time, expires_at, finished_at)
       VALUES ($1, 'cleaned', 'cleaned', 'done', '{}', 'prod', now(), now(), now()) RETURNING id)
     INSERT INTO push_failure (app_id, push_id, installation, connector, outcome, status, reason)
     SELECT $1, id, n, 'apns', 'failed', 400, 'BadDeviceToken' FROM push, generate_series(1, $2::int) AS n`,
    [appId, rows],
  );
  await db.query('VACUUM ANALYZE push_failure');
  const later = new Date(systemClock.now() + 60_000);
  const micros = await cpuMicros(bench, rows, async () => {
    while ((await deleteOldPushes(db, later, 500)) >= 500);
  });
  const vacuum = await cpuMicros(bench, rows, async () => {
    await db.query('VACUUM push_failure');
  });
  return [
    { name: 'failure deleted, PostgreSQL CPU', value: micros, unit: 'µs' },
    { name: 'failure vacuumed, PostgreSQL CPU', value: vacuum, unit: 'µs' },
  ];
}

async function measureInboxes(bench: Bench, appId: string, rows: number): Promise<Figure[]> {
  const { db } = bench;
  await db.query(
    `INSERT INTO channel_inbox (app_id, installation, push_id, message_id)
     SELECT $1, n / ${messages}, n % ${messages}, n % ${messages} FROM generate_series(1, $2::int) AS n`,
    [appId, rows],
  );
  await db.query('VACUUM ANALYZE channel_inbox');
  const micros = await cpuMicros(bench, rows, async () => {
    for (let place: typeof firstInbox | undefined = firstInbox; place; ) {
      const step = await findCrowdedInboxes(db, place, walkedTogether);
      for (const [app, inboxes] of step.installations) await displaceOldest(db, app, inboxes);
      place = step.next;
    }
  });
  return [{ name: 'pending message walked over, PostgreSQL CPU', value: micros, unit: 'µs' }];
}
