import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { SenderPool } from '../../../dispatcher/sending/pool.ts';
import { createMetrics } from '../../../shared/metrics.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { testConfig } from '../../support/api.ts';
import { openTestDatabase } from '../../support/database.ts';

const { url } = await openTestDatabase();

let pool: SenderPool;
/** Threads of the pool in the order in which they started: the bulk threads, then the express thread. */
let threads: Worker[];
/** Messages of the log. */
let logged: string[];
const log = createLogger({
  level: 'warn',
  name: 'test',
  destination: { write: (line) => logged.push(JSON.parse(line).msg) },
});
const keep = (thread: Worker) => threads.push(thread);

afterEach(async () => {
  process.off('worker', keep);
  await pool.close();
});

/** Opens a pool with two bulk threads that have run their first task. */
async function openPool(): Promise<void> {
  threads = [];
  logged = [];
  process.on('worker', keep);
  const { secrets, publicUrl, privateHosts, pushHosts } = testConfig(url);
  const keys = secrets.map((key) => key.toString('base64'));
  const hosts = { publicUrl, privateHosts, pushHosts };
  const database = { databaseUrl: url, pooler: 'none', connections: 2 } as const;
  const data = { ...database, ...hosts, secrets: keys, logLevel: 'silent' };
  pool = new SenderPool({ threads: 2, data, log });
  await pool.warmUp([]);
}

/** Returns how often the threads have waited for a database connection. */
async function waits(): Promise<number> {
  const text = await pool.metricsText(createMetrics());
  const name = 'carillon_db_pool_wait_seconds_count{pool="dispatcher thread"}';
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(name))
      ?.split(' ')
      .at(-1),
  );
}

test('a scrape counts each thread once while an ended thread is replaced', async () => {
  await openPool();
  const before = await waits();
  expect(before).toBeGreaterThan(0);
  const [first] = threads;
  await Promise.all([first && once(first, 'exit'), first?.terminate()]);
  expect(threads).toHaveLength(4);
  expect(await waits()).toBe(before);
});

test('an error in an idle thread is logged, and the thread is replaced', async () => {
  await openPool();
  const [, second] = threads;
  const exited = new Promise((resolve) => second?.once('exit', resolve));
  // piscina's code in the thread expects one message only, and throws.
  second?.postMessage({});
  await exited;
  expect(threads).toHaveLength(4);
  expect(logged).toEqual(['a sending thread failed']);
  await pool.warmUp([]);
});
