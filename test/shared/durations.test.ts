import { Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import {
  addDuration,
  DurationHistogram,
  gatewayBuckets,
  noDurations,
} from '../../shared/process/operation-metrics.ts';

const help = 'Time from a request to a gateway to its answer';
const name = 'carillon_gateway_request_seconds';

test('durations counted by bucket result in the same metric as single observations', async () => {
  const [counted, observed] = [new Registry(), new Registry()];
  const ours = new DurationHistogram({ name, help, label: 'connector', registers: [counted] });
  const theirs = new Histogram({
    name,
    help,
    labelNames: ['connector'],
    buckets: gatewayBuckets,
    registers: [observed],
  });
  // A value on a bound belongs to the bucket below. Powers of two add up without rounding.
  for (const [connector, seconds] of [
    ['apns', [0, 0.25, 0.5, 2 ** -9, 64, 4]],
    ['fcm', [0.125, 0.125]],
    ['apns', [0.03125]],
  ] as const) {
    const durations = noDurations();
    for (const each of seconds) {
      addDuration(durations, each);
      theirs.observe({ connector }, each);
    }
    ours.add(connector, durations);
  }
  expect(await counted.metrics()).toBe(await observed.metrics());
});
