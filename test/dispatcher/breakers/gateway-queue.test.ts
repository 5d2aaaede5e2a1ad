import { expect, test } from 'vitest';
import { GatewayQueue } from '../../../dispatcher/breakers/gateway-queue.ts';
import { InFlightBatches } from '../../../dispatcher/breakers/in-flight-batches.ts';
import { InFlightBatch } from '../../../dispatcher/sending/shared-memory.ts';
import { defaultBreakerTiming } from '../../../shared/breaker.ts';
import { systemClock } from '../../../shared/clock.ts';

const gateway = (onFirstAnswer = () => {}) =>
  new GatewayQueue(
    { connector: 'apns', appId: 'app', profile: '_default' },
    { clock: systemClock, timing: defaultBreakerTiming, onChange: () => undefined, onFirstAnswer },
  );

test('an untested gateway gets a second batch after its first reply', async () => {
  const queue = gateway();
  const batches = new InFlightBatches({ clock: systemClock, readOverrides: async () => new Map() });
  const batch = batches.track(queue.id, undefined);
  const hasAnswer = () => batches.hasAnswer(queue.id);
  expect(await queue.tryTrack(hasAnswer)).toBe(true);
  // Another thread counts the reply in the shared memory.
  const thread = new InFlightBatch(batch.progress.memory);
  thread.countAnswer(true);
  thread.countAnswer(null);
  expect(await queue.tryTrack(hasAnswer)).toBe(false);
  const waiting = queue.tryTrack(hasAnswer);
  thread.countAnswer(false);
  expect(await waiting).toBe(true);
  batches.close();
});

test('if a gateway was silent for the probe time, later batches do not wait', async () => {
  const queue = gateway();
  expect(await queue.tryTrack(() => false)).toBe(true);
  let looks = 0;
  const hasAnswer = () => {
    looks += 1;
    return false;
  };
  expect(await queue.tryTrack(hasAnswer)).toBe(false);
  // Otherwise, many batches would each occupy a concurrency slot for this time, and other apps
  // would have to wait.
  looks = 0;
  expect(await queue.tryTrack(hasAnswer)).toBe(false);
  expect(looks).toBeLessThanOrEqual(2);
  // The batch in flight ended without a reply. The next batch is a probe again.
  queue.untrack();
  expect(await queue.tryTrack(hasAnswer)).toBe(true);
  looks = 0;
  expect(await queue.tryTrack(hasAnswer)).toBe(false);
  expect(looks).toBeGreaterThan(2);
});

test('the first reply is reported once, to the batches that were returned before it', () => {
  let reports = 0;
  const queue = gateway(() => {
    reports += 1;
  });
  queue.markHealthy();
  queue.markHealthy();
  expect(reports).toBe(1);
});

test('of the batches that wait for a silent gateway, one is the next probe', async () => {
  const queue = gateway();
  const hasAnswer = () => false;
  expect(await queue.tryTrack(hasAnswer)).toBe(true);
  const waiting = Array.from({ length: 6 }, () => queue.tryTrack(hasAnswer));
  queue.untrack();
  const admitted = (await Promise.all(waiting)).filter(Boolean);
  expect(admitted).toHaveLength(1);
});
