import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { JobKeeper } from '../../dispatcher/background/job-keeper.ts';
import { openBackgroundJobs } from '../../dispatcher/background/jobs.ts';
import type { RunningDispatcher } from '../../dispatcher/start.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { JobQueue } from '../../shared/queue/queue.ts';
import { silentLog } from '../support/api.ts';
import { beginPush, createAppOn } from '../support/gateways/app-gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let queue: JobQueue;
let dispatcher: RunningDispatcher | undefined;

beforeAll(async () => {
  // Few streams, so that a batch takes a while.
  service = await startTestService({ gateway: { maxStreams: 5 } });
  queue = new JobQueue(service.db, silentLog, { supervise: false });
  await queue.start();
});
afterAll(async () => {
  await queue?.stop();
  await service?.close();
});
beforeEach(() => {
  jobKeeper = new JobKeeper();
});
afterEach(async () => {
  service.apns.behave();
  await stop();
});

const start = async () => {
  dispatcher = await service.dispatch();
};
const stop = async () => {
  await dispatcher?.stack.close();
  dispatcher = undefined;
};

let jobKeeper: JobKeeper;
let nowMs = 0;
const clock = { now: () => Date.now(), monotonicMs: () => nowMs };
/** Runs the background job once, `afterSeconds` after its last run. */
const runJob = (afterSeconds: number) => {
  nowMs += afterSeconds * 1000;
  return jobKeeper.run({ db: service.db, queue, clock, log: silentLog });
};
/** Runs the background job twice, far enough apart for it to find work without a job. */
const keep = async () => (await runJob(31)) + (await runJob(31));

interface Push {
  app: App;
  tokens: string[];
  objectId: string;
  id: number;
}

async function push(devices: number, body: object = {}): Promise<Push> {
  const { app, tokens } = await createAppOn(service, null, devices);
  const objectId = await beginPush(service, app, body);
  const find = 'SELECT id FROM notification WHERE object_id = $1';
  const { rows } = await service.db.query<{ id: number }>(find, [objectId]);
  return { app, tokens, objectId, id: rows[0]?.id ?? 0 };
}

const requestsTo = (tokens: string[]) =>
  tokens.reduce((n, token) => n + service.apns.seen(token), 0);
const notSentOnce = (tokens: string[]) => tokens.filter((token) => service.apns.seen(token) !== 1);

/** Starts a push and stops the dispatcher in the middle of it. */
async function stopped(devices: number): Promise<Push> {
  service.apns.misbehave({ kind: 'slow', delayMs: 100 });
  await start();
  const started = await push(devices);
  await expect
    .poll(() => requestsTo(started.tokens), { interval: 10, timeout: 20_000 })
    .toBeGreaterThan(20);
  await stop();
  service.apns.behave();
  return started;
}

const isLive = "state IN ('created', 'retry', 'active')";
/** Deletes jobs of a push, as if they had never been created. Returns their number. */
async function deleteJobs({ id }: Push, condition = 'true'): Promise<number> {
  const { rowCount } = await service.db.query(
    `DELETE FROM pgboss.job WHERE ${isLive} AND (data ->> 'pushId')::bigint = $1 AND ${condition}`,
    [id],
  );
  return rowCount ?? 0;
}
async function jobsOf({ id }: Push) {
  const { rows } = await service.db.query<{
    name: string;
    batch: number | null;
    priority: number;
    start: Date;
  }>(
    `SELECT name, (data ->> 'batchId')::bigint AS batch, priority, start_after AS start
       FROM pgboss.job
      WHERE ${isLive} AND (data ->> 'pushId')::bigint = $1`,
    [id],
  );
  return rows;
}
async function openBatchesOf({ id }: Push): Promise<number[]> {
  const open = 'SELECT id FROM push_batch WHERE push_id = $1 AND NOT is_settled ORDER BY id';
  return (await service.db.query<{ id: number }>(open, [id])).rows.map((row) => row.id);
}
async function reachesAll({ app, objectId, tokens }: Push): Promise<void> {
  if (!dispatcher) await start();
  const record = await service.untilDone(app, objectId);
  expect(record).toMatchObject({
    status: 'done',
    devices: tokens.length,
    successes: tokens.length,
  });
  expect(notSentOnce(tokens)).toEqual([]);
}
const control = (app: App, objectId: string, verb: string) =>
  service.api.request('POST', `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`, {
    admin: true,
  });

describe('a lost job is created again', () => {
  test('for a queued push: once, after it was missing for half a minute', async () => {
    const started = await push(10);
    expect(await runJob(60)).toBe(0);
    expect(await deleteJobs(started)).toBe(1);
    expect(await runJob(60)).toBe(0);
    expect(await runJob(10)).toBe(0);
    expect(await runJob(21)).toBe(1);
    expect(await jobsOf(started)).toMatchObject([{ name: 'plan', priority: 0 }]);
    expect(await keep()).toBe(0);
    await reachesAll(started);
  });

  test('for batches: a batch with a job gets no second job', async () => {
    const started = await stopped(2500);
    const open = await openBatchesOf(started);
    expect(open.length).toBeGreaterThan(1);
    expect(await keep()).toBe(0);
    expect(await deleteJobs(started, `(data ->> 'batchId')::bigint = ${open[0]}`)).toBe(1);
    expect(await keep()).toBe(1);
    expect(await deleteJobs(started)).toBe(open.length);
    expect(await keep()).toBe(open.length);
    const jobs = await jobsOf(started);
    expect(jobs.map(({ batch }) => batch).sort()).toEqual(open);
    expect(new Set(jobs.map(({ name }) => name))).toEqual(new Set(['deliver-apns']));
    await reachesAll(started);
  });

  test('for a retry batch: not before its time', async () => {
    const started = await stopped(1500);
    const [first] = await openBatchesOf(started);
    const at = new Date(Date.now() + 3_600_000);
    await service.db.query('UPDATE push_batch SET not_before = $2 WHERE id = $1', [first, at]);
    await deleteJobs(started);
    expect(await keep()).toBeGreaterThan(0);
    expect((await jobsOf(started)).find(({ batch }) => batch === first)?.start).toEqual(at);
    await service.db.query('UPDATE push_batch SET not_before = NULL WHERE id = $1', [first]);
    await deleteJobs(started);
    await keep();
    await reachesAll(started);
  });

  test('for a small push that stopped in the middle', async () => {
    const started = await stopped(300);
    expect(await deleteJobs(started)).toBe(1);
    expect(await keep()).toBe(1);
    expect(await jobsOf(started)).toMatchObject([{ name: 'plan', priority: 0 }]);
    await reachesAll(started);
  });

  test('for a planning that stopped in the middle: it continues after its cursor', async () => {
    const started = await push(1200);
    const { rows } = await service.db.query<{ id: number }>(
      'SELECT id FROM installation WHERE app_id = $1 ORDER BY id OFFSET 699 LIMIT 1',
      [started.app.appId],
    );
    await service.db.query(
      `UPDATE notification SET state = 'sending', planned_through = $2, devices = 700
        WHERE id = $1`,
      [started.id, rows[0]?.id],
    );
    await deleteJobs(started);
    expect(await keep()).toBe(1);
    expect(await jobsOf(started)).toMatchObject([{ name: 'plan', priority: -1 }]);
    await start();
    const record = await service.untilDone(started.app, started.objectId);
    expect(record).toMatchObject({ devices: 1200, successes: 500 });
    expect(requestsTo(started.tokens)).toBe(500);
  });

  test('for a cancelled push: recipients that were not sent to are counted', async () => {
    for (const devices of [1500, 300]) {
      const started = await stopped(devices);
      await control(started.app, started.objectId, 'cancel');
      await deleteJobs(started);
      expect(await keep()).toBeGreaterThan(0);
      expect(await keep()).toBe(0);
      await start();
      await expect.poll(() => openBatchesOf(started), { timeout: 20_000 }).toEqual([]);
      const path = `/console/api/apps/${started.app.appId}/notifications/${started.objectId}/progress`;
      const sent = requestsTo(started.tokens);
      expect((await service.api.request('GET', path, { admin: true })).body).toMatchObject({
        status: 'cancelled',
        outcomes: { sent, dropped: devices - sent },
      });
      await stop();
    }
  });

  test('for a resumed push with paused work', async () => {
    const started = await push(1500);
    await control(started.app, started.objectId, 'pause');
    await start();
    const countJobs = async () => (await jobsOf(started)).length;
    await expect.poll(countJobs).toBe(0);
    await stop();
    expect(await keep()).toBe(0);
    await control(started.app, started.objectId, 'resume');
    expect(await deleteJobs(started)).toBe(1);
    expect(await keep()).toBe(1);
    expect(await jobsOf(started)).toMatchObject([{ name: 'plan' }]);
    await reachesAll(started);
  });

  test('for a push that continues while its work is still frozen', async () => {
    const started = await stopped(2500);
    const open = await openBatchesOf(started);
    await deleteJobs(started);
    await service.db.query(
      'UPDATE push_batch SET is_held = true WHERE push_id = $1 AND NOT is_settled',
      [started.id],
    );
    const freeze = `/console/api/apps/${started.app.appId}/freeze`;
    await service.api.request('PUT', freeze, { admin: true, body: { reason: 'a wrong text' } });
    expect(await keep()).toBe(0);
    await service.api.request('DELETE', freeze, { admin: true });
    expect(await keep()).toBe(open.length);
    expect((await jobsOf(started)).map(({ batch }) => batch).sort()).toEqual(open);
    await reachesAll(started);
  });

  test('by a background job of every dispatcher', async () => {
    const job = openBackgroundJobs().find(({ name }) => name === 'job keeper');
    const started = await push(5);
    await deleteJobs(started);
    await start();
    if (!job || !dispatcher) throw new Error('there is no such background job');
    const deps = { ...dispatcher.deps, clock };
    const passed = () => {
      nowMs += 31_000;
      return job.runOnce(deps);
    };
    await expect.poll(passed).toBe(1);
    await reachesAll(started);
  });

  test('for more pushes than one search covers', async () => {
    const { app } = await createAppOn(service, null, 1);
    const before = await service.db.query<{ id: number }>(
      'SELECT coalesce(max(id), 0) AS id FROM notification',
    );
    const id = await beginPush(service, app);
    const copies = await service.db.query(
      `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
        push_time, expires_at)
       SELECT app_id, 'copy' || i, 'copy' || i, state, request, prod, push_time, expires_at
         FROM notification, generate_series(1, 449) AS i WHERE object_id = $1`,
      [id],
    );
    expect(copies.rowCount).toBe(449);
    await service.db.query(`DELETE FROM pgboss.job WHERE data ->> 'appId' = $1`, [app.appId]);
    let given = 0;
    for (let i = 0; i < 6; i += 1) given += await runJob(31);
    expect(given).toBe(450);
    for (let i = 0; i < 6; i += 1) expect(await runJob(31)).toBe(0);
    await service.db.query('DELETE FROM notification WHERE id > $1', [before.rows[0]?.id]);
    await service.db.query(`DELETE FROM pgboss.job WHERE data ->> 'appId' = $1`, [app.appId]);
  });
});

describe('no job is created', () => {
  test('for a paused push, with or without paused batches', async () => {
    const started = await stopped(2500);
    await control(started.app, started.objectId, 'pause');
    await deleteJobs(started);
    for (let i = 0; i < 3; i += 1) expect(await runJob(31)).toBe(0);
    expect(await jobsOf(started)).toEqual([]);
    await control(started.app, started.objectId, 'resume');
    expect(await keep()).toBe((await openBatchesOf(started)).length);
    await reachesAll(started);
  });

  test('for a push that is scheduled, cancelled before it started, or done', async () => {
    const later = await push(3, { push_time: new Date(Date.now() + 3_600_000).toISOString() });
    const cancelled = await push(3);
    await control(cancelled.app, cancelled.objectId, 'cancel');
    await deleteJobs(cancelled);
    const done = await push(3);
    await reachesAll(done);
    for (let i = 0; i < 3; i += 1) expect(await runJob(31)).toBe(0);
    for (const none of [later, cancelled, done]) expect(await jobsOf(none)).toEqual([]);
  });

  test('while dispatchers work, even if the background job runs often', async () => {
    await start();
    const pushes = [await push(4000), await push(900), await push(1)];
    const ends = pushes.map(({ app, objectId }) => service.untilDone(app, objectId));
    let isDone = false;
    const all = Promise.all(ends).then(() => {
      isDone = true;
    });
    let given = 0;
    while (!isDone) given += await runJob(31);
    await all;
    expect(given).toBe(0);
    for (const each of pushes) await reachesAll(each);
  });

  test('for a batch without a job that a dispatcher is still sending', async () => {
    service.apns.misbehave({ kind: 'slow', delayMs: 100 });
    await start();
    const started = await push(200);
    const path = `/console/api/apps/${started.app.appId}/notifications/${started.objectId}/progress`;
    const sent = async (): Promise<number> =>
      (await service.api.request('GET', path, { admin: true })).body.outcomes.sent ?? 0;
    let last = 0;
    for (let i = 0; i < 3; i += 1) {
      await expect.poll(sent, { interval: 10, timeout: 20_000 }).toBeGreaterThan(last);
      await deleteJobs(started);
      expect(await runJob(31)).toBe(0);
      // Counted after the background job, so that the job saw at most this number.
      last = await sent();
    }
    service.apns.behave();
    await reachesAll(started);
  });

  test('twice by two dispatchers that search at the same time', async () => {
    const started = await push(5);
    await deleteJobs(started);
    const [one, other] = [new JobKeeper(), new JobKeeper()];
    const deps = { db: service.db, queue, clock, log: silentLog };
    for (const each of [one, other]) expect(await each.run(deps)).toBe(0);
    nowMs += 31_000;
    const given = await Promise.all([one.run(deps), other.run(deps)]);
    expect(given.reduce((a, b) => a + b)).toBe(1);
    expect(await jobsOf(started)).toHaveLength(1);
    await reachesAll(started);
  });
});
