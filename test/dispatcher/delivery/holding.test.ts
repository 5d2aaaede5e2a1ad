import { expect, onTestFinished, test } from 'vitest';
import { Freezes } from '../../../dispatcher/delivery/freezes.ts';
import { endFreezes, holdBatch, holdPlanning } from '../../../dispatcher/delivery/holding.ts';
import type { DispatcherDeps } from '../../../dispatcher/deps.ts';
import { recordPostponed } from '../../../dispatcher/recording/unsent.ts';
import { systemClock } from '../../../shared/clock.ts';
import { insertFreeze, releaseFreeze } from '../../../shared/db/tables/apps.ts';
import { insertBatches } from '../../../shared/db/tables/batches.ts';
import { readBatchSnapshots } from '../../../shared/db/tables/push-progress.ts';
import { deliverJob, planJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { countJobs, readBatches, readPushes } from '../../support/tables.ts';

const service = useTestService();

async function open() {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const { db } = service;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  onTestFinished(() => queue.stop());
  const deps = {
    db,
    queue,
    clock: systemClock,
    freezes: new Freezes(db, systemClock),
  } as DispatcherDeps;
  return { app, db, queue, deps };
}

test('frozen pushes continue in steps, oldest first', async () => {
  const { app, db, queue, deps } = await open();
  const { appId } = app;
  await db.transaction((tx) => insertFreeze(tx, { appId, reason: '', by: 'test' }));
  for (let i = 0; i < 3; i += 1) await beginPush(service, app, {});
  const taken = await queue.fetch(planJob, 3);
  const ids = taken.map(({ data }) => data.pushId).sort((one, other) => one - other);
  for (const job of taken.toReversed()) expect(await holdPlanning(deps, job)).toBe('done');
  const [first] = taken;
  if (first) expect(await holdPlanning(deps, first)).toBe('again');
  expect(await countJobs(db, app)).toBe(0);
  expect(await endFreezes(deps, 2)).toBe(0);
  await db.transaction((tx) => releaseFreeze(tx, appId));
  const fetched = async () => (await queue.fetch(planJob, 3)).map(({ data }) => data.pushId).sort();
  expect(await endFreezes(deps, 2)).toBe(2);
  const [again] = await queue.fetch(planJob, 1);
  expect([again?.data.pushId, ...(await fetched())].sort()).toEqual(ids.slice(0, 2));
  expect(await endFreezes(deps, 2)).toBe(1);
  expect(await fetched()).toEqual(ids.slice(2));
  expect(await endFreezes(deps, 2)).toBe(0);
  expect((await db.query('SELECT FROM push_freeze')).rowCount).toBe(0);
  // The freeze has ended: a late dispatcher no longer freezes anything.
  if (again) expect(await holdPlanning(deps, again)).toBe('changed');
});

test('a batch of a small push that another process has taken over gets no second job', async () => {
  const { app, db, deps } = await open();
  const { appId } = app;
  await beginPush(service, app);
  const [push] = await readPushes(db, app);
  const pushId = push?.id ?? 0;
  const [batchId = 0] = await insertBatches(db, appId, pushId, [
    {
      connector: 'apns',
      profile: '_default',
      recipients: [1],
      badges: null,
      attempt: 0,
      hasJob: false,
    },
  ]);
  const [stored] = await readBatchSnapshots(db, [{ appId, batchId }]);
  if (!stored) throw new Error('no batch');
  const batch = { ids: { appId, pushId, batchId }, stored };
  const jobs = () => countJobs(db, app, { queue: deliverJob('apns').queue });
  await recordPostponed(deps, batch, { afterMs: 1000 });
  expect(await jobs()).toBe(1);
  await recordPostponed(deps, batch, { afterMs: 1000 });
  expect(await jobs()).toBe(1);
  await db.transaction((tx) => insertFreeze(tx, { appId, reason: '', by: 'test' }));
  expect(await holdBatch(deps, batch)).toBe('again');
  expect(await readBatches(db, app)).toMatchObject([{ isHeld: false, hasJob: true }]);
});
