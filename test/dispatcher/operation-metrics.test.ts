import { Counter } from 'prom-client';
import { beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../dispatcher/start.ts';
import { failureKind } from '../../shared/db/limits/database-errors.ts';
import { Database, type Handle } from '../../shared/db/pool.ts';
import { createMetrics } from '../../shared/metrics.ts';
import { readSharedState, reportQueues } from '../../shared/queue/report.ts';
import { Semaphore } from '../../shared/semaphore.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
let dispatcher: RunningDispatcher;
beforeAll(async () => {
  dispatcher = await service.dispatch();
});

/** Returns the values of a metric by their labels in exposition format. */
function valuesIn(text: string, name: string): Record<string, number> {
  const lines = text.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? (\\S+)$`, 'gm'));
  return Object.fromEntries([...lines].map(([, labels = '', value]) => [labels, Number(value)]));
}

const scrapeDispatcher = async () =>
  (await fetch(`http://127.0.0.1:${dispatcher.metricsPort}/metrics`)).text();
const scrapeApi = async (): Promise<string> => (await service.api.request('GET', '/metrics')).body;

describe('the metrics of processes', () => {
  test('contain the version of each process, and compare its schema', async () => {
    const [api, other] = [await scrapeApi(), await scrapeDispatcher()];
    expect(api).toMatch(
      /^carillon_build_info\{process="api",version="\d+\.\d+\.\d+",node="v24\S+"\} 1$/m,
    );
    expect(other).toMatch(/^carillon_build_info\{process="dispatcher",version=/m);
    expect(valuesIn(other, 'carillon_schema_pending')).toEqual({ '': 0 });
    await service.db.query(
      `INSERT INTO carillon_migration (name, run_on) VALUES ('9999_later', now())`,
    );
    await expect
      .poll(async () => {
        await service.api.request('GET', '/readyz');
        return valuesIn(await scrapeApi(), 'carillon_schema_newer');
      })
      .toEqual({ '': 1 });
  });

  test('contain every pool with its limit', async () => {
    const pools = { ...valuesIn(await scrapeApi(), 'carillon_db_pool_connections') };
    Object.assign(pools, valuesIn(await scrapeDispatcher(), 'carillon_db_pool_connections'));
    expect(pools['{pool="api",state="limit"}']).toBe(10);
    expect(pools['{pool="api (queries)",state="waiting"}']).toBe(0);
    expect(pools['{pool="dispatcher (scan)",state="limit"}']).toBe(18);
  });

  test("report how long calls waited for a connection and for their app's share", async () => {
    const turns = new Semaphore({ concurrency: 1, maxWaiting: 10 });
    const db = new Database({
      url: service.databaseUrl,
      applicationName: 'test',
      maxConnections: 2,
      fairShare: turns,
    });
    const single = new Database({
      url: service.databaseUrl,
      applicationName: 'test',
      maxConnections: 1,
    });
    for (const limited of [db, single]) {
      await limited.query('SELECT 1');
      limited.takeWaits();
      // The second query waits for the first query, and the transaction waits for both.
      await Promise.all([
        limited.query('SELECT pg_sleep(0.1)'),
        limited.query('SELECT 1'),
        limited.transaction((tx) => tx.query('SELECT 1')),
      ]);
      const { counts, sumSeconds } = limited.takeWaits();
      expect(counts.reduce((sum, count) => sum + count)).toBe(3);
      expect(sumSeconds).toBeGreaterThan(0.15);
      expect(limited.takeWaits().sumSeconds).toBe(0);
      await limited.close();
    }
    const waits = 'carillon_db_pool_wait_seconds_count';
    expect(valuesIn(await scrapeApi(), waits)['{pool="api"}']).toBeGreaterThan(0);
    await expect
      .poll(async () => Object.keys(valuesIn(await scrapeDispatcher(), waits)))
      .toEqual(expect.arrayContaining(['{pool="dispatcher"}', '{pool="dispatcher thread"}']));
  });

  test('contain the heap of the worker threads and its limit', async () => {
    const heap = async () => valuesIn(await scrapeDispatcher(), 'carillon_worker_heap_bytes');
    await expect.poll(async () => (await heap())['{kind="largest"}']).toBeGreaterThan(1e6);
    const {
      '{kind="used"}': used,
      '{kind="largest"}': largest,
      '{kind="limit"}': limit,
    } = await heap();
    expect(used).toBeGreaterThanOrEqual(largest ?? Number.NaN);
    expect(limit).toBeGreaterThan(largest ?? Number.NaN);
  });

  test('count refusals by code, and a push from planning to its end', async () => {
    const app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 1500);
    expect(
      (await service.api.request('GET', '/1.1/users/x', { app: { ...app, appKey: 'x' } })).status,
    ).toBe(401);
    const { body } = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data: { alert: 'x' } },
    });
    await service.untilDone(app, body.objectId);
    const refusals = valuesIn(await scrapeApi(), 'carillon_http_refusals_total');
    expect(Object.values(refusals).reduce((sum, n) => sum + n, 0)).toBeGreaterThanOrEqual(1);
    const text = await scrapeDispatcher();
    expect(valuesIn(text, 'carillon_planned_recipients_total')['']).toBeGreaterThanOrEqual(1500);
    expect(valuesIn(text, 'carillon_planning_seconds_count')['']).toBeGreaterThanOrEqual(1);
    expect(valuesIn(text, 'carillon_worker_busy_seconds_total')['']).toBeGreaterThan(0);
    // If one outcome exists, all outcomes exist.
    const recipients = valuesIn(text, 'carillon_recipients_total');
    expect(Object.keys(recipients).filter((labels) => labels.includes(app.appId))).toHaveLength(6);
  });

  test('report when each background job last succeeded', async () => {
    const text = await scrapeDispatcher();
    const last = valuesIn(text, 'carillon_duty_last_success_timestamp_seconds');
    expect(Object.keys(last)).toEqual(Object.keys(valuesIn(text, 'carillon_duty_failures_total')));
    expect(Object.keys(last)).toContain('{duty="cleaner"}');
    for (const seconds of Object.values(last))
      expect(Date.now() / 1000 - seconds).toBeLessThan(600);
  });

  test('count failed statements by kind', async () => {
    const db = new Database({
      url: service.databaseUrl,
      applicationName: 'test',
      statementTimeoutMs: 10,
    });
    await expect(db.query('SELECT pg_sleep(5)')).rejects.toThrow();
    await expect(db.query('SELECT 1/0')).rejects.toThrow();
    expect(db.takeFailures()).toEqual({ timeout: 1 });
    expect(db.takeFailures()).toEqual({});
    await db.close();
    const removed = new Database({ url: 'postgresql://x@127.0.0.1:9/x', applicationName: 'test' });
    expect(failureKind(await removed.query('SELECT 1').catch((error: unknown) => error))).toBe(
      'unreachable',
    );
    await removed.close();
  });
});

describe('the gauges of shared state', () => {
  test('are read by one process at a time', async () => {
    const { queue } = dispatcher.deps;
    await service.db.query('DELETE FROM shared_reading');
    let reads = 0;
    const states = () => {
      reads += 1;
      return queue.states();
    };
    const counting = Object.assign(Object.create(queue), { states });
    const scrapes = Array.from({ length: 8 }, () => readSharedState(service.db, counting));
    await Promise.all(scrapes);
    expect(reads).toBeLessThan(4);
    await expect
      .poll(async () => (await readSharedState(service.db, counting))?.reading.queues)
      .toBeDefined();
  });

  test('are read again if the process that reserved the read did not finish it', async () => {
    await service.db.query(
      `UPDATE shared_reading SET read_at = now() - interval '1 hour',
        next_at = now() + interval '9 s'`,
    );
    const late = await readSharedState(service.db, dispatcher.deps.queue);
    expect(late?.ageSeconds).toBeGreaterThan(3500);
    await service.db.query(`UPDATE shared_reading SET next_at = now()`);
    const again = await readSharedState(service.db, dispatcher.deps.queue);
    expect(again?.ageSeconds).toBeLessThan(60);
  });

  test('add the age of the sample to the ages in it', async () => {
    const { queue } = dispatcher.deps;
    const metrics = createMetrics();
    await readSharedState(service.db, queue);
    const show = async (lateSeconds: number) => {
      const pushes = [{ state: 'sending', count: 1, oldestSeconds: 100 }];
      const parsed = { queues: [], pushes, scheduled: { count: 3, lateSeconds } };
      await service.db.query(
        `UPDATE shared_reading SET reading = $1, read_at = now() - interval '1 hour',
          next_at = now() + interval '9 s'`,
        [JSON.stringify(parsed)],
      );
      await reportQueues(service.db, queue, metrics);
      return (await metrics.scheduledLag.get()).values[0]?.value;
    };
    expect(await show(5)).toBeGreaterThanOrEqual(3605);
    expect((await metrics.pushOldestOpen.get()).values[0]?.value).toBeGreaterThanOrEqual(3700);
    // A push that was late by this little has been sent since then, as when many pushes are due.
    expect(await show(0.2)).toBe(0.2);
    expect(await show(0)).toBe(0);
    await service.db.query('UPDATE shared_reading SET next_at = now()');
  });

  test('grow while a query hangs, which delays no scrape and is not repeated', async () => {
    const { queue } = dispatcher.deps;
    const metrics = createMetrics();
    let statements = 0;
    const db: Handle = {
      query(statement, values) {
        statements += 1;
        return service.db.query(statement, values);
      },
    };
    const ageAfter = async (waitMs?: number) => {
      await reportQueues(db, queue, metrics, waitMs);
      return (await metrics.sharedSampleAge.get()).values[0]?.value ?? Number.NaN;
    };
    await ageAfter();
    await service.db.transaction(async (tx) => {
      await tx.query('LOCK TABLE shared_reading IN ACCESS EXCLUSIVE MODE');
      const before = statements;
      const first = await ageAfter(20);
      expect(await ageAfter(20)).toBeGreaterThan(first);
      expect(statements - before).toBe(1);
    });
  });
});

describe('counters by app', () => {
  test('have series for the first 1,000 apps of a process; the others share one', async () => {
    const { recipients, registry } = createMetrics();
    const count = (app: number) =>
      recipients.inc({ app: `app${app}`, connector: 'apns', outcome: 'sent' }, 2);
    for (let app = 0; app < 1500; app += 1) count(app);
    count(0);
    const values = valuesIn(await registry.metrics(), 'carillon_recipients_total');
    const seriesOf = (app: string) => `{app="${app}",connector="apns",outcome="sent"}`;
    expect(Object.keys(values)).toHaveLength(1001);
    expect(values[seriesOf('app0')]).toBe(4);
    expect(values[seriesOf('app999')]).toBe(2);
    expect(values[seriesOf('other')]).toBe(1000);
  });

  test('are all of this kind', async () => {
    const metrics = createMetrics();
    const counters = Object.values(metrics).filter((metric) => metric instanceof Counter);
    const byApp = counters.filter(
      (one) => 'labelNames' in one && String(one.labelNames).includes('app'),
    );
    expect(byApp.length).toBeGreaterThan(5);
    for (const counter of byApp) {
      for (let app = 0; app < 1001; app += 1) counter.inc({ app: `app${app}` });
      const { name, values } = await counter.get();
      expect([name, values.at(-1)?.labels]).toEqual([name, { app: 'other' }]);
    }
  });
});
