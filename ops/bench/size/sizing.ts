import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemClock } from '../../../shared/clock.ts';
import {
  evictOldest,
  findFullInboxes,
  firstInbox,
} from '../../../shared/db/tables/channel-messages.ts';
import {
  findInstallationsOfDevices,
  writeInstallationGroup,
} from '../../../shared/db/tables/installation-saves.ts';
import { deleteOldPushes } from '../../../shared/db/tables/pushes.ts';
import { benchApi } from '../api/api.ts';
import { type Figure, readArgs } from '../harness/arguments.ts';
import {
  type Bench,
  subscribeSparsely,
  withBench,
  writeInstallations,
} from '../harness/bench-service.ts';
import { createApp } from '../harness/client.ts';
import { allDatabaseCpuSeconds } from '../harness/process-use.ts';
import { benchPipeline } from '../pipeline/pipeline.ts';

const defaultDevices = 1_000_000;
const apiSeconds = '5';

/** Document that contains the table, between two comments. */
const page = new URL('../../../docs/operate/sizing.md', import.meta.url);
const [begin, end] = ['<!-- written by npm run bench -- sizing -->', '<!-- end -->'];

/** Measured costs from which the table is calculated. CPU time is in seconds. */
export interface Costs {
  /** Number of recipients of the measured push. */
  devices: number;
  recipientsPerSecond: number;
  /** CPU time for 1,000 recipients. */
  dispatcherCpu: number;
  databaseCpu: number;
  /** Disk space of one installation with its indexes, without custom members. */
  bytes: number;
  /** CPU time for one save of an installation. */
  saveApiCpu: number;
  saveDatabaseCpu: number;
}

/** Resources that a service needs. The numbers of cores are whole and at least one. */
interface Size {
  installations: number;
  /** Rate at which a push reaches all installations in ten minutes. */
  recipientsPerSecond: number;
  /** Saves of installations per second in the busiest hour. */
  savesPerSecond: number;
  dispatcherCores: number;
  apiCores: number;
  databaseCores: number;
  databaseGigabytes: number;
  /**
   * True if the measured push was as large and as fast. Otherwise the size is an extrapolation from
   * the measured costs.
   */
  isMeasured: boolean;
}

const sizes = [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/** Duration of a push to all installations. */
const pushSeconds = 600;
/**
 * Each device saves its installation once a day. The rate in the busiest hour is four times the
 * average rate.
 */
const savesPerDeviceSecond = 4 / 86_400;
/** Planned utilization of a core. */
const plannedUtilization = 0.6;

/** Returns the resources that a service needs for a number of installations. */
export function sizeOf(installations: number, costs: Costs): Size {
  const recipientsPerSecond = installations / pushSeconds;
  const savesPerSecond = installations * savesPerDeviceSecond;
  const cores = (seconds: number) => Math.max(1, Math.ceil(seconds / plannedUtilization));
  return {
    installations,
    recipientsPerSecond,
    savesPerSecond,
    dispatcherCores: cores((recipientsPerSecond * costs.dispatcherCpu) / 1000),
    apiCores: cores(savesPerSecond * costs.saveApiCpu),
    databaseCores: cores(
      (recipientsPerSecond * costs.databaseCpu) / 1000 + savesPerSecond * costs.saveDatabaseCpu,
    ),
    databaseGigabytes: (installations * costs.bytes) / 1e9,
    isMeasured: installations <= costs.devices && recipientsPerSecond <= costs.recipientsPerSecond,
  };
}

const number = (value: number): string => {
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : 2;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
};

/** Returns the table as Markdown. */
export function sizingTable(costs: Costs): string {
  const rows = sizes.map((installations) => sizeOf(installations, costs));
  return [
    '| installations | recipients/s for a push to all in 10 min | saves/s in the busiest hour | dispatcher cores | api cores | PostgreSQL cores | installations on disk | |',
    '|---|---|---|---|---|---|---|---|',
    ...rows.map(
      (row) =>
        `| ${number(row.installations)} | ${number(row.recipientsPerSecond)} | ${number(row.savesPerSecond)} | ${row.dispatcherCores} | ${row.apiCores} | ${row.databaseCores} | ${number(row.databaseGigabytes)} GB | ${row.isMeasured ? 'within the measured' : 'arithmetic'} |`,
    ),
    '',
    `Measured: ${number(costs.recipientsPerSecond)} recipients/s for a push to ${number(costs.devices)}; per 1,000 recipients ${number(costs.dispatcherCpu * 1000)} ms of the`,
    `dispatcher and ${number(costs.databaseCpu * 1000)} ms of PostgreSQL; per save ${number(costs.saveApiCpu * 1000)} ms of the api and ${number(costs.saveDatabaseCpu * 1000)} ms of PostgreSQL; ${number(costs.bytes)} bytes per installation.`,
  ].join('\n');
}

/**
 * Measures a push to `args[0]` devices (1,000,000) and saves of installations. Writes the table of
 * docs/operate/sizing.md from the results.
 */
export async function benchSizing(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const [devices = defaultDevices] = readArgs(args).numbers;
  const pushed = await benchPipeline([String(devices), '--gateway', 'quick'], log);
  const called = await benchApi([apiSeconds], log);
  const costs = costsOf([...pushed, ...called], devices);
  await writeTable(sizingTable(costs));
  log(`docs/operate/sizing.md is written`);
  return sizes.map((installations) => ({
    name: `${number(installations)} installations, all cores`,
    value: coresOf(sizeOf(installations, costs)),
    unit: 'cores',
  }));
}

const coresOf = ({ dispatcherCores, apiCores, databaseCores }: Size): number =>
  dispatcherCores + apiCores + databaseCores;

function costsOf(figures: Figure[], devices: number): Costs {
  const find = (name: string): number => {
    const figure = figures.find((one) => one.name.endsWith(name));
    if (!figure) throw new Error(`no figure is named ${name}`);
    return figure.value;
  };
  return {
    devices,
    recipientsPerSecond: find('throughput'),
    dispatcherCpu: find(': dispatcher CPU'),
    databaseCpu: find(': PostgreSQL CPU'),
    bytes: find('installation on disk'),
    saveApiCpu: find('installation saves: api CPU') / 1e6,
    saveDatabaseCpu: find('installation saves: PostgreSQL CPU') / 1e6,
  };
}

async function writeTable(table: string): Promise<void> {
  const text = await readFile(page, 'utf8');
  const [before, after] = [text.indexOf(begin), text.indexOf(end)];
  if (before < 0 || after < before)
    throw new Error('docs/operate/sizing.md has no place for the table');
  await mkdir(dirname(page.pathname), { recursive: true });
  await writeFile(page, `${text.slice(0, before + begin.length)}\n${table}\n${text.slice(after)}`);
}

const defaultRows = 1_000_000;
const smallApp = 5000;
const saves = 10_000;
/** Number of devices that are saved in one statement, as the service does for concurrent calls. */
const savesPerStatement = 50;
const reads = 50;
/** Number of messages in each inbox. */
const messages = 10;
/** Number of inbox rows that one statement reads. */
const inboxRowsPerStatement = 20_000;

/**
 * Measures the tables that grow, with `args[0]` rows in each table (1,000,000): saves of
 * installations, a condition of a small app beside a large app, the deletion of failures, and the
 * search for inboxes with too many messages.
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

/** Returns the CPU time of PostgreSQL during `work`, divided by `count`, in µs. */
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
  // A connection reports its statistics when it is idle, or after this call.
  await db.query('SELECT pg_stat_force_next_flush()');
  const { rows } = await db.query<WriteState>(
    `SELECT n_tup_upd AS updates, n_tup_hot_upd AS hot,
      (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal
       FROM pg_stat_user_tables WHERE relname = 'installation'`,
  );
  if (!rows[0]) throw new Error('the database returned no statistics');
  return rows[0];
}

async function measureSaves(bench: Bench, appId: string, rows: number): Promise<Figure[]> {
  const before = await writeState(bench);
  const micros = await cpuMicros(bench, saves, async () => {
    for (let i = 0; i < saves; i += savesPerStatement) await saveSome(bench, appId, rows);
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

/** Saves random devices without a change. */
async function saveSome({ db }: Bench, appId: string, rows: number): Promise<void> {
  const devices = Array.from({ length: savesPerStatement }, () => {
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
        `SELECT id FROM installation WHERE app_id = $1 AND valid AND channels && '{sparse}'::text[]
          ORDER BY id`,
        [appId],
      );
      devices = rowCount ?? 0;
    }
  });
  return [
    {
      name: `condition for ${devices} devices of ${name}, PostgreSQL CPU`,
      value: micros,
      unit: 'µs',
    },
  ];
}

async function measureCleaning(bench: Bench, appId: string, rows: number): Promise<Figure[]> {
  const { db } = bench;
  await db.query(
    `WITH push AS (
       INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
         push_time, expires_at, finished_at)
       VALUES ($1, 'cleaned', 'cleaned', 'done', '{}', 'prod', now(), now(), now()) RETURNING id)
     INSERT INTO push_failure (app_id, push_id, installation, connector, outcome, status, reason)
     SELECT $1, id, n, 'apns', 'failed', 400, 'BadDeviceToken'
       FROM push, generate_series(1, $2::int) AS n`,
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
     SELECT $1, n / ${messages}, n % ${messages}, n % ${messages}
       FROM generate_series(1, $2::int) AS n`,
    [appId, rows],
  );
  await db.query('VACUUM ANALYZE channel_inbox');
  const micros = await cpuMicros(bench, rows, async () => {
    for (let cursor: typeof firstInbox | undefined = firstInbox; cursor; ) {
      const step = await findFullInboxes(db, cursor, inboxRowsPerStatement);
      for (const [app, inboxes] of step.installations) await evictOldest(db, app, inboxes);
      cursor = step.next;
    }
  });
  return [{ name: 'pending message walked over, PostgreSQL CPU', value: micros, unit: 'µs' }];
}
