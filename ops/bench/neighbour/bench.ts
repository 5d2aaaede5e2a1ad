import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import { type Figure, percentiles, readArgs } from '../harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from '../harness/bench-service.ts';
import { type BenchApp, call, createApp, push, pushAndWait } from '../harness/client.ts';
import { processUse } from '../harness/process-use.ts';
import { type HostileCall, hostilePatterns, type Pattern, type Targets } from './patterns.ts';

/** Start options of the worker thread that makes the hostile calls. */
export const attackOrder = z.object({
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  clients: z.number(),
});
type AttackOrder = z.infer<typeof attackOrder>;

/** Number of calls by HTTP status. */
const answers = z.record(z.string(), z.number());
export type Answers = z.infer<typeof answers>;

/**
 * Clients of the hostile app. They run in a separate thread, so that they do not delay the measured
 * calls.
 */
class Attack {
  readonly #worker: Worker;

  constructor(order: AttackOrder) {
    this.#worker = new Worker(moduleUrl('./hostile-worker.ts', import.meta.url), {
      workerData: order,
    });
  }

  /** Starts the calls. Each client makes them one after the other without a pause. */
  begin(calls: HostileCall[]): void {
    this.#worker.postMessage(calls);
  }

  /** Aborts the running calls. Returns the number of finished calls by status. */
  async end(): Promise<Answers> {
    const reply = once(this.#worker, 'message');
    this.#worker.postMessage([]);
    const [message] = await reply;
    return answers.parse(message);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Devices of the hostile app. They are numerous enough to make a list without an index slow. */
const devices = 100_000;
/** Users of the hostile app. Each has the maximum size that an app key can write. */
const users = 400;
const userBytes = 110_000;
/** Length of the text that patterns are matched with. */
const longBytes = 60_000;

/**
 * Writes the rows of the hostile app directly into the tables. An app could write this number of
 * rows in an hour.
 */
async function writeHostileRows({ db }: Pick<Bench, 'db'>, appId: string): Promise<Targets> {
  await db.transaction(async (tx) => {
    await tx.query('SET LOCAL synchronous_commit = off');
    await tx.query(
      `INSERT INTO app_user (app_id, object_id, username, session_nonce, session_hash, fields)
       SELECT $1, lpad(to_hex(i), 24, '0'), 'user ' || i, int8send(i), sha256(int8send(i)),
              jsonb_build_object('parts',
              (SELECT jsonb_agg(jsonb_build_array(left(md5((i * j)::text), 10)))
                                             FROM generate_series(1, $3::int) AS j))
         FROM generate_series(1, $2::int) AS i`,
      [appId, users, Math.floor(userBytes / 16)],
    );
    await tx.query(
      `INSERT INTO installation (app_id, object_id, device_type, installation_id, fields)
       SELECT $1, lpad(to_hex(i), 24, '0'), 'android', 'hostile-' || i, jsonb_build_object(
                'level', i % 1000, 'city', 'c' || i % 30, 'text',
                translate(md5(i::text) || md5(i::text), '0123456789cdef', 'abababababababab'), 'at',
                jsonb_build_object('__type', 'GeoPoint', 'latitude', i % 90, 'longitude', i % 180))
         FROM generate_series(1, $2::int) AS i`,
      [appId, devices],
    );
    await tx.query(
      `UPDATE installation SET fields = fields || jsonb_build_object('owned', 1, 'owner',
        jsonb_build_object(
                '__type', 'Pointer', 'className', '_User', 'objectId', object_id))
        WHERE app_id = $1 AND object_id <= lpad(to_hex($2::int), 24, '0')`,
      [appId, users],
    );
    await tx.query(
      `UPDATE installation SET fields = fields || jsonb_build_object('long',
                (SELECT string_agg(translate(md5(j::text), '0123456789cdef', 'abababababababab'),
                '')
                   FROM generate_series(1, $2::int) AS j))
        WHERE app_id = $1 AND object_id <= lpad(to_hex(20), 24, '0')`,
      [appId, Math.floor(longBytes / 32)],
    );
  });
  await db.query('VACUUM ANALYZE installation');
  await db.query('VACUUM ANALYZE app_user');
  await db.query('CHECKPOINT');
  return { devices: Array.from({ length: 20 }, (_, i) => (i + 1).toString(16).padStart(24, '0')) };
}

const defaultSeconds = 5;
const defaultClients = 32;
/** Pause between two calls of the measured app. */
const pauseMs = 20;
/** Time until an attack has used up the share of its app. */
const warmMs = 500;

interface Stage extends Bench {
  app: BenchApp;
  seconds: number;
  log: (line: string) => void;
}

/**
 * Measures `POST /1.1/push` of one app and `/readyz` under the load of a hostile app that uses its
 * app key. Each pattern runs for `args[0]` seconds (5) with `args[1]` concurrent clients (32). The
 * first measurement has no load. `--pattern where` runs only the patterns whose names contain
 * "where".
 */
export function benchNeighbour(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups, pattern: part = '' } = readArgs(args);
  const [seconds = defaultSeconds, clients = defaultClients] = numbers;
  return withBench(log, { threads: 1, ...setups[0] }, async (bench) => {
    const app = await createApp(bench);
    await writeInstallations(bench, app.appId, 1);
    await pushAndWait(bench, app, {});
    log('writing the rows of the hostile app');
    const hostile = await createHostileApp(bench);
    const all = hostilePatterns(await writeHostileRows(bench, hostile.appId));
    const patterns = all.filter(({ name }) => name.includes(part));
    if (patterns.length === 0)
      throw new Error(`--pattern is a part of one of: ${all.map(({ name }) => name).join(', ')}`);
    const attack = new Attack({ url: bench.url, clients, headers: headersOf(hostile) });
    try {
      const stage = { ...bench, app, seconds, log };
      const figures = await measure(stage, 'no load');
      for (const pattern of patterns) figures.push(...(await underAttack(stage, attack, pattern)));
      const use = await processUse(bench.pids().api);
      const peak = {
        name: 'api, peak resident memory',
        value: use?.peakMegabytes ?? Number.NaN,
        unit: 'MB',
      };
      return [...figures, peak];
    } finally {
      await attack.close();
    }
  });
}

const hostileApp = z.object({ appId: z.string(), appKey: z.string() });
type HostileApp = z.infer<typeof hostileApp>;

const headersOf = ({ appId, appKey }: HostileApp) => ({
  'x-lc-id': appId,
  'x-lc-key': appKey,
  'content-type': 'application/json',
});

/** Creates an app whose options allow its app key every call. */
function createHostileApp({ url, adminToken }: Bench): Promise<HostileApp> {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const options = {
    allowUserQuery: true,
    allowInstallationQuery: true,
    forbidClientPush: false,
    hybridPush: true,
  };
  const body = JSON.stringify({ name: 'Hostile', options });
  return call(`${url}/console/api/apps`, { method: 'POST', headers, body }, hostileApp);
}

async function underAttack(
  stage: Stage,
  attack: Attack,
  { name, calls }: Pattern,
): Promise<Figure[]> {
  attack.begin(calls);
  await sleep(warmMs);
  const figures = await measure(stage, name);
  const answered = await attack.end();
  const use = await processUse(stage.pids().api);
  stage.log(
    `${name}: ${JSON.stringify(answered)}, the api has ${use?.residentMegabytes.toFixed()} MB`,
  );
  await untilQuiet(stage);
  return figures;
}

/** Waits until the database has finished the statements of the previous pattern. */
async function untilQuiet({ db }: Stage): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ busy: number }>(
      `SELECT count(*) AS busy FROM pg_stat_activity
        WHERE application_name LIKE 'carillon api%' AND state = 'active'`,
    );
    if (rows[0]?.busy === 0) return;
    await sleep(pauseMs);
  }
}

async function measure(stage: Stage, name: string): Promise<Figure[]> {
  const endsAtMs = performance.now() + stage.seconds * 1000;
  const [pushes, checks] = await Promise.all([
    repeat(endsAtMs, () => push(stage, stage.app, {})),
    repeat(endsAtMs, () => call(`${stage.url}/readyz`, {}, z.unknown())),
  ]);
  return [...percentiles(`${name}: push`, pushes), ...percentiles(`${name}: readyz`, checks)];
}

/** Repeats a call until `endsAtMs`. Returns the milliseconds that each call took. */
async function repeat(endsAtMs: number, work: () => Promise<unknown>): Promise<number[]> {
  const tookMs: number[] = [];
  while (performance.now() < endsAtMs) {
    const startedAtMs = performance.now();
    await work();
    tookMs.push(performance.now() - startedAtMs);
    await sleep(pauseMs);
  }
  return tookMs;
}
