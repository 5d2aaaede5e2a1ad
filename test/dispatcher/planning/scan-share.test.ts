import { beforeAll, expect, test } from 'vitest';
import { ScanShare } from '../../../dispatcher/planning/scan-share.ts';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { systemClock } from '../../../shared/clock.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { startTestService, useTestService } from '../../support/service.ts';
import { countJobs } from '../../support/tables.ts';

let dispatcher: RunningDispatcher;

const service = useTestService();
beforeAll(async () => {
  dispatcher = await service.dispatch();
});

/** Starts scans of an app that last until the test ends them. */
function occupyScans(scans: ScanShare, appId: string, count: number): () => Promise<unknown> {
  const end = Promise.withResolvers<void>();
  const scansInProgress = Array.from({ length: count }, () => scans.run(appId, () => end.promise));
  return () => {
    end.resolve();
    return Promise.all(scansInProgress);
  };
}

test('an app that uses its whole share of scans does not delay other apps', async () => {
  const scans = new ScanShare({ atOnce: 5, perApp: 3 }, systemClock);
  const release = occupyScans(scans, 'greedy', 3);
  expect(await scans.run('other', async () => 'scanned')).toEqual({ value: 'scanned' });
  const postponed = await Promise.all(
    [1, 2, 3].map(() => scans.run('greedy', async () => 'scanned')),
  );
  const delays = postponed.map((one) => ('retryAfterMs' in one ? one.retryAfterMs : 0));
  expect(Math.min(...delays)).toBeGreaterThan(0);
  // The jobs return one after the other.
  expect(new Set(delays).size).toBe(3);
  await release();
  expect(await scans.run('greedy', async () => 'scanned')).toEqual({ value: 'scanned' });
});

test('the delay of a postponed scan is limited', async () => {
  const scans = new ScanShare({ atOnce: 1, perApp: 1 }, { now: () => 0, monotonicMs: () => 0 });
  const release = occupyScans(scans, 'greedy', 1);
  // A job that finds the queue full is postponed immediately.
  const answers = await Promise.all(
    Array.from({ length: 700 }, () => scans.run('greedy', async () => {})),
  );
  const delays = answers.map((one) => ('retryAfterMs' in one ? one.retryAfterMs : 0));
  expect(Math.max(...delays)).toBe(30_000);
  await release();
});

test('a postponed push returns by the clock of the database, not of the dispatcher', async () => {
  const ahead = { ...systemClock, now: () => systemClock.now() + 86_400_000 };
  const other = await startTestService();
  const { deps } = await other.dispatch({ clock: ahead });
  const { app: late } = await createAppOn(other, null, 2);
  const release = occupyScans(deps.scans, late.appId, 3);
  const waiting = await beginPush(other, late);
  const startsIn = async () =>
    (
      await other.db.query<{ seconds: number }>(
        `SELECT extract(epoch FROM start_after - now())::float8 AS seconds FROM pgboss.job
          WHERE name = 'plan' AND state = 'created' AND created_on > now() - interval '1 minute'
            AND start_after > created_on`,
      )
    ).rows[0]?.seconds;
  await expect.poll(startsIn).toBeLessThan(60);
  await release();
  expect(await other.untilDone(late, waiting)).toMatchObject({ successes: 2 });
  await other.close();
});

test('a push without a free scan waits until a scan is free', async () => {
  const [{ app: greedy }, { app: other }] = [
    await createAppOn(service, null, 2),
    await createAppOn(service, null, 2),
  ];
  const release = occupyScans(dispatcher.deps.scans, greedy.appId, 3);
  const waiting = await beginPush(service, greedy);
  expect(await service.untilDone(other, await beginPush(service, other))).toMatchObject({
    successes: 2,
  });
  const jobs = () => countJobs(service.db, greedy, { queue: 'plan', state: 'created' });
  await expect.poll(jobs).toBe(1);
  await release();
  expect(await service.untilDone(greedy, waiting)).toMatchObject({ devices: 2, successes: 2 });
});
