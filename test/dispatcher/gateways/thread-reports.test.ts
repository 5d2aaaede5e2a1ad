import { beforeAll, expect, test } from 'vitest';
import { ThreadReports } from '../../../dispatcher/sending/pool.ts';
import type { ThreadReport } from '../../../dispatcher/sending/task.ts';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { createMetrics, createThreadMetrics, textOfMetrics } from '../../../shared/metrics.ts';
import { noDurations } from '../../../shared/process/operation-metrics.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

let dispatcher: RunningDispatcher;
const service = useTestService();
beforeAll(async () => {
  dispatcher = await service.dispatch();
});

const poll = { interval: 200 };

async function metric(name: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${dispatcher.metricsPort}/metrics`);
  const line = (await response.text()).split('\n').find((text) => text.startsWith(name));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

test('the metrics contain the HTTP/2 connections of the threads', async () => {
  const { app } = await createAppOn(service, null, 50);
  await service.untilDone(app, await beginPush(service, app, {}));
  await expect.poll(() => metric('carillon_http2_connections{connector="apns"}'), poll).toBe(1);
  await expect.poll(() => metric('carillon_http2_streams{connector="apns"}'), poll).toBe(0);
  await expect
    .poll(() => metric('carillon_http2_events_total{connector="apns",event="connected"}'), poll)
    .toBe(1);
  await expect
    .poll(() => metric('carillon_http2_round_trip_seconds_count{connector="apns"}'), poll)
    .toBe(1);
  service.apns.goaway('IdleTimeout');
  await expect
    .poll(() => metric('carillon_http2_events_total{connector="apns",event="goaway"}'), poll)
    .toBe(1);
  await expect.poll(() => metric('carillon_http2_connections{connector="apns"}'), poll).toBe(0);
});

test('reports of threads are summed; an ended thread keeps only its counters', async () => {
  const metrics = createMetrics();
  metrics.poolWaitSeconds.add('dispatcher', { ...noDurations(), sumSeconds: 2 });
  const reports = new ThreadReports();
  const report = async (
    thread: number,
    connections: number,
    resets: number,
  ): Promise<ThreadReport> => {
    const own = createThreadMetrics();
    own.http2Connections.set({ connector: 'fcm' }, connections);
    own.http2Events.inc({ connector: 'fcm', event: 'reset' }, resets);
    own.http2RoundTripSeconds.observe({ connector: 'fcm' }, 0.02);
    own.poolWaitSeconds.add('dispatcher thread', { ...noDurations(), sumSeconds: 1 });
    const values = structuredClone(await own.registry.getMetricsAsJSON());
    return { thread, values, heap: { used: 10 * connections, limit: 100 } };
  };
  const numbers = async () => {
    reports.reportHeaps(metrics);
    const text = await textOfMetrics(metrics.registry, reports.values);
    return [
      'http2_connections{connector="fcm"}',
      'http2_events_total{connector="fcm",event="reset"}',
      'http2_round_trip_seconds_count{connector="fcm"}',
      'db_pool_wait_seconds_sum{pool="dispatcher thread"}',
      'db_pool_wait_seconds_sum{pool="dispatcher"}',
      'worker_heap_bytes{kind="used"}',
    ].map((name) => {
      const lines = text.split('\n').filter((line) => line.startsWith(`carillon_${name} `));
      expect(lines).toHaveLength(1);
      return Number(lines[0]?.split(' ').at(-1));
    });
  };
  reports.set(await report(1, 2, 1));
  reports.set(await report(2, 3, 5));
  expect(await numbers()).toEqual([5, 6, 2, 2, 2, 50]);
  expect(reports.connections).toBe(5);
  await reports.keepEnded(new Set([2]));
  reports.set(await report(3, 1, 0));
  expect(await numbers()).toEqual([4, 6, 3, 3, 2, 40]);
  expect(reports.connections).toBe(4);
});
