import { expect, onTestFinished, test } from 'vitest';
import { insertFreeze, releaseFreeze } from '../../../shared/db/tables/apps/freezes.ts';
import { giveBackHeldJobs, holdJob } from '../../../shared/queue/held-jobs.ts';
import { type PlanJob, planJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

test('held jobs are given back in steps, the oldest first', async () => {
  const { appId } = await api.createApp();
  const { db } = api;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  onTestFinished(() => queue.stop());
  await db.transaction((tx) => insertFreeze(tx, { appId, reason: '', by: 'test' }));
  for (const pushId of [1, 2, 3])
    await db.transaction((tx) => queue.send(planJob, [{ appId, pushId }], { tx }));
  const taken = await queue.fetch(planJob, 3);
  for (const job of taken.toReversed()) expect(await holdJob(db, planJob, job)).toBe(true);
  expect(await queue.fetch(planJob, 3)).toEqual([]);
  expect(await db.transaction((tx) => giveBackHeldJobs(tx, 2))).toBe(0);
  await db.transaction((tx) => releaseFreeze(tx, appId));
  const pushesOf = (jobs: { data: PlanJob }[]) => jobs.map(({ data }) => data.pushId).sort();
  expect(await db.transaction((tx) => giveBackHeldJobs(tx, 2))).toBe(2);
  const again = await queue.fetch(planJob, 3);
  expect(pushesOf(again)).toEqual([1, 2]);
  expect(await db.transaction((tx) => giveBackHeldJobs(tx, 2))).toBe(1);
  expect(pushesOf(await queue.fetch(planJob, 3))).toEqual([3]);
  // The freeze has ended: a late dispatcher holds nothing any more.
  for (const job of again) expect(await holdJob(db, planJob, job)).toBe(false);
});
