import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentEnvironment, type Environment } from '../../../shared/config/config.ts';
import { Database } from '../../../shared/db/pool.ts';
import { createAccess, LocalService } from '../../local/service.ts';
import type { Supervised } from '../../local/supervised.ts';
import { bundleInBackground } from '../../package/bundle/background.ts';
import { type BenchGateway, startBenchGateway } from '../gateway/gateway.ts';
import type { Setup } from './arguments.ts';

/** Name of the benchmark's connections in pg_stat_activity. */
export const benchName = 'bench';
/**
 * Connections of the benchmark to the database. They stay open, so that their CPU time can be
 * separated from the CPU time of the service.
 */
const connections = 10;

/** Separate service for a benchmark, with a durable database in a temporary directory. */
export interface Bench {
  url: string;
  adminToken: string;
  gateway: BenchGateway;
  /**
   * Direct access to the database, to write rows and to read details that the api does not return.
   */
  db: Database;
  /** Process ids by role. */
  pids(): { api: number | undefined; dispatchers: (number | undefined)[] };
}

/** Starts the service, calls `work`, and removes everything afterwards. */
export async function withBench<T>(
  log: (line: string) => void,
  setup: Setup,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'));
  const closers: (() => Promise<unknown>)[] = [];
  try {
    return await work(await startBench({ dataDir, log, setup, closers }));
  } finally {
    for (const close of closers.reverse()) await close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface BenchStart {
  dataDir: string;
  log: (line: string) => void;
  setup: Setup;
  /** Functions that close the opened resources, in the order of opening. */
  closers: (() => Promise<unknown>)[];
}

async function startBench({ dataDir, log, setup, closers }: BenchStart): Promise<Bench> {
  const env = environmentOf(setup);
  const gateway = await startBenchGateway(env, log);
  closers.push(() => gateway.stop());
  const access = await createAccess();
  const { url: running } = setup.database ?? {};
  // A running database may contain rows of earlier benchmarks. The service must decrypt them, so
  // the secret depends only on the URL.
  if (running !== undefined) access.secret = createHash('sha256').update(running).digest('base64');
  // Bundles the console in the background, like `npm start`.
  const bundling = bundleInBackground(log);
  closers.push(() => bundling.stop());
  const options = { ...access, dataDir, databaseUrl: running, env, log };
  const service = new LocalService({ ...options, bundle: bundling.folder });
  await service.start();
  closers.push(() => service.stop());
  const others: Supervised[] = [];
  for (let i = 1; i < (setup.dispatchers ?? 1); i += 1)
    others.push(await service.startDispatcher({ METRICS_PORT: '0' }));
  const db = openDatabase(service.databaseUrl);
  closers.push(() => db.close());
  const pids = () => ({
    api: service.apiPid,
    dispatchers: [service.dispatcherPid, ...others.map(({ pid }) => pid)],
  });
  return { url: access.publicUrl, adminToken: access.adminToken, gateway, db, pids };
}

const openDatabase = (url: string): Database =>
  new Database({
    url,
    applicationName: benchName,
    statementTimeoutMs: 0,
    maxConnections: connections,
    minConnections: connections,
  });

function environmentOf({ threads, streams, gateway, database, logLevel }: Setup): Environment {
  return {
    ...currentEnvironment(),
    LOG_LEVEL: logLevel ?? 'warn',
    ...(threads === undefined ? {} : { DISPATCHER_THREADS: String(threads) }),
    ...(streams === undefined ? {} : { BENCH_STREAMS: String(streams) }),
    ...(gateway === undefined ? {} : { BENCH_GATEWAY: gateway }),
    ...(database?.readUrl === undefined ? {} : { DATABASE_READ_URL: database.readUrl }),
  };
}

/**
 * From this number of rows on, the indexes are dropped before the insert and built again
 * afterwards.
 */
const manyRows = 50_000;

/**
 * Writes installations directly into the table, because the benchmark measures sending and not
 * registration. Device number i has `i` as its object id and in the last eight digits of its token
 * (gateway/gateway.ts). The first device has badge 1.
 */
export const writeInstallations = (
  bench: Pick<Bench, 'db' | 'gateway'>,
  appId: string,
  count: number,
): Promise<void> => writeAudiences(bench, [appId], count);

/** Writes `each` installations for each app. Device numbers continue from one app to the next. */
export async function writeAudiences(
  { db, gateway }: Pick<Bench, 'db' | 'gateway'>,
  appIds: readonly string[],
  each: number,
): Promise<void> {
  const indexes = appIds.length * each < manyRows ? [] : await dropIndexes(db);
  await db.transaction(async (tx) => {
    await tx.query(
      `INSERT INTO installation (app_id, object_id, device_type, device_token, topic, badge)
       SELECT app_id, lpad(to_hex(i), 24, '0'), 'ios',
              encode(substr(sha256(i::text::bytea), 1, 28) || int4send(i), 'hex'), $3,
              CASE WHEN i = 1 THEN 1 END
         FROM unnest($1::text[]) WITH ORDINALITY AS a (app_id, place),
              generate_series((place - 1)::int * $2 + 1, place::int * $2) AS i`,
      [appIds, each, gateway.apns.topics[0]],
    );
    await tx.query(`SET LOCAL maintenance_work_mem = '512MB'`);
    for (const { definition } of indexes) await tx.query(definition);
  });
  await db.query('VACUUM ANALYZE installation');
  await db.query('CHECKPOINT');
}

/** Subscribes every `nth` installation of an app to the channel `sparse`. */
export async function subscribeSparsely(
  { db }: Pick<Bench, 'db'>,
  appId: string,
  nth: number,
): Promise<void> {
  await db.query(
    `UPDATE installation SET channels = '{sparse}' WHERE app_id = $1
      AND ('x' || right(device_token, 8))::bit(32)::int % $2 = 0`,
    [appId, nth],
  );
  await db.query('VACUUM ANALYZE installation');
  await db.query('CHECKPOINT');
}

interface Index {
  name: string;
  definition: string;
}

/** Drops all indexes except the primary key. Returns their definitions. */
async function dropIndexes(db: Bench['db']): Promise<Index[]> {
  const { rows } = await db.query<Index>(
    `SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      WHERE i.indrelid = 'installation'::regclass AND NOT i.indisprimary`,
  );
  for (const { name } of rows) await db.query(`DROP INDEX ${name}`);
  return rows;
}

/**
 * SQL of a member with one of four locales. Three of them have a translation, some of them in
 * another spelling.
 */
const locale = `'locale', (ARRAY['en_US', 'en_GB', 'zh_CN', 'de_DE'])[1 + (id % 4)::int]`;
const ownName = `'name', 'Person ' || id`;

/** Gives the installations of an app one of four locales each. */
export const writeLocales = (bench: Pick<Bench, 'db'>, appId: string): Promise<void> =>
  writeFields(bench, appId, locale);

/** Gives each installation of an app a different name, and no level. */
export const writeNames = (bench: Pick<Bench, 'db'>, appId: string): Promise<void> =>
  writeFields(bench, appId, ownName);

/**
 * Gives the installations of an app all fields that any kind of push reads: a locale, a name, and
 * one of four zones with the same time.
 */
export async function writeFieldsOfAllKinds(
  bench: Pick<Bench, 'db'>,
  appId: string,
): Promise<void> {
  await bench.db.query(
    `UPDATE installation SET time_zone = (ARRAY['Etc/UTC', 'Africa/Abidjan', 'Atlantic/Reykjavik',
      'Africa/Accra'])[1 + (id % 4)::int]
      WHERE app_id = $1`,
    [appId],
  );
  await writeFields(bench, appId, `${locale}, ${ownName}`);
}

async function writeFields(
  { db }: Pick<Bench, 'db'>,
  appId: string,
  members: string,
): Promise<void> {
  await db.query(
    `UPDATE installation SET fields = jsonb_build_object(${members}) WHERE app_id = $1`,
    [appId],
  );
  await db.query('VACUUM ANALYZE installation');
}
