import { expect, test } from 'vitest';
import { type BackgroundJob, runBackgroundJob } from '../../../dispatcher/background/jobs.ts';
import type { DispatcherDeps } from '../../../dispatcher/deps.ts';
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
  const job: BackgroundJob = {
    name: 'shaky',
    pauseMs: 1,
    runOnce: () => {
      passes += 1;
      nowMs += 10_000;
      if (passes <= 5) return Promise.reject(new Error('the database is away'));
      if (passes === 8) stop.abort();
      return Promise.resolve(0);
    },
  };

  await runBackgroundJob(
    { clock, log, metrics: createMetrics() } as DispatcherDeps,
    job,
    stop.signal,
  );

  expect(lines.map(({ msg, failures }) => [msg, failures])).toEqual([
    ['a background job failed', 1],
    ['a background job failed', 4],
    ['a background job works again', 5],
  ]);
});
