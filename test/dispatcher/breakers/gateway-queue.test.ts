import { expect, test } from 'vitest';
import { GatewayQueue } from '../../../dispatcher/breakers/gateway-queue.ts';
import { InFlightBatches } from '../../../dispatcher/breakers/in-flight-batches.ts';
import { InFlightBatch } from '../../../dispatcher/sending/in-flight-batch.ts';
import { defaultBreakerTiming } from '../../../shared/breaker.ts';
import { systemClock } from '../../../shared/clock.ts';

const gateway = () =>
  new GatewayQueue(
    { connector: 'apns', appId: 'app', profile: '_default' },
    { clock: systemClock, timing: defaultBreakerTiming, onChange: () => undefined },
  );

test('an untested gateway gets a second batch once it answered a request of the first one', async () => {
  const queue = gateway();
  const batches = new InFlightBatches({ clock: systemClock, forcedOpen: async () => new Set() });
  const batch = batches.track(queue.id, undefined);
  const hasAnswer = () => batches.hasAnswer(queue.id);
  expect(await queue.canProbe(hasAnswer)).toBe(true);
  queue.track();
  // Another thread counts in the shared memory.
  const thread = new InFlightBatch(batch.progress.memory);
  thread.countAnswer(true);
  thread.countAnswer(null);
  expect(await queue.canProbe(hasAnswer)).toBe(false);
  const waiting = queue.canProbe(hasAnswer);
  thread.countAnswer(false);
  expect(await waiting).toBe(true);
  batches.close();
});
