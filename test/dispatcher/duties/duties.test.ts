import { expect, test } from 'vitest';
import type { DispatcherDeps } from '../../../dispatcher/deps.ts';
import { type Duty, runDuty } from '../../../dispatcher/duties/duties.ts';
import { createMetrics } from '../../../shared/metrics.ts';
import { createLogger } from '../../../shared/process/logging.ts';

test('a failing background job is retried each time but logged only sometimes', async () => {
  const lines: { msg: string; failures: number }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: 'info', name: 'test', destination });
  let nowMs = 0;
  const clock = { now: () => nowMs, monotonicMs: () => nowMs };
  const stop = new AbortController();
  let passes = 0;
  const duty: Duty = {
    name: 'shaky',
    restMs: 1,
    runOnce: () => {
      passes += 1;
      nowMs += 10_000;
      if (passes <= 5) return Promise.reject(new Error('the database is away'));
      if (passes === 8) stop.abort();
      return Promise.resolve(0);
    },
  };

  await runDuty({ clock, log, metrics: createMetrics() } as DispatcherDeps, duty, stop.signal);

  expect(lines.map(({ msg, failures }) => [msg, failures])).toEqual([
    ['a background duty failed', 1],
    ['a background duty failed', 4],
    ['a background duty works again', 5],
  ]);
});
