import { beforeAll, expect, test } from 'vitest';
import { TransportLog, TransportReadings } from '../../../dispatcher/sending/threads/transports.ts';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { createMetrics } from '../../../shared/metrics.ts';
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
  // A thread posts its load every second: the push may have been in flight.
  await expect.poll(() => metric('carillon_http2_streams{connector="apns"}'), poll).toBe(0);
  await expect
    .poll(() => metric('carillon_http2_events_total{connector="apns",event="connected"}'), poll)
    .toBe(1);
  await expect.poll(() => metric('carillon_http2_round_trip_seconds_count{connector="apns"}'), poll).toBe(1);
  service.apns.goaway('IdleTimeout');
  await expect
    .poll(() => metric('carillon_http2_events_total{connector="apns",event="goaway"}'), poll)
    .toBe(1);
  await expect.poll(() => metric('carillon_http2_connections{connector="apns"}'), poll).toBe(0);
});

test('readings of threads are summed, and those of a silent thread are dropped', async () => {
  const metrics = createMetrics();
  let nowMs = 0;
  const readings = new TransportReadings(() => nowMs);
  const log = new TransportLog();
  log.add('fcm', { event: 'reset', detail: '', connections: 1 });
  log.add('fcm', { event: 'round_trip', detail: '', connections: 1, seconds: 0.02 });
  const connector: ConnectorId = 'fcm';
  const load = (connections: number, streams: number) => [{ connector, load: { connections, streams } }];
  readings.take({ thread: 1, http2: log.drain(load(2, 30)) });
  readings.take({ thread: 2, http2: log.drain(load(1, 5)) });
  readings.take({ thread: 3, http2: 'noise' });
  const values = async () => {
    readings.reportTo(metrics);
    const text = await metrics.registry.metrics();
    return ['connections', 'streams', 'events_total', 'round_trip_seconds_sum'].map((name) =>
      Number(new RegExp(`^carillon_http2_${name}\\{[^}]*\\} (.*)$`, 'm').exec(text)?.[1] ?? Number.NaN),
    );
  };
  expect(await values()).toEqual([3, 35, 1, 0.02]);
  nowMs = 4000;
  readings.take({ thread: 2, http2: log.drain(load(4, 0)) });
  nowMs = 6000;
  expect(await values()).toEqual([4, 0, 1, 0.02]);
});
