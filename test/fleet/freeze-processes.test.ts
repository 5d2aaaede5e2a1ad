import { beforeAll, expect, test } from 'vitest';
import type { App } from '../../shared/domain/apps/app.ts';
import { beginPush, createAppOn } from '../support/gateways/app-gateway.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';
import {
  type Batch,
  countJobs,
  readBatches,
  readPushes,
  startScheduledPushes,
} from '../support/tables.ts';

const service = useTestService({ gateway: { maxStreams: 20 } });
/** Each process has two worker threads. */
const threads = { DISPATCHER_THREADS: '2' };
const dispatchers = useDispatcherProcesses(service);

beforeAll(async () => {
  await dispatchers.start(threads);
  await dispatchers.start(threads);
});

const admin = (method: string, path: string, body?: object) =>
  service.api.request(method, `/console/api${path}`, { admin: true, body });
const requestsTo = (tokens: string[]) =>
  tokens.reduce((n, token) => n + service.apns.seen(token), 0);
const notSentOnce = (tokens: string[]) => tokens.filter((token) => service.apns.seen(token) !== 1);

/**
 * True for unfinished work of the app that is frozen. A test waits until there is such work and no
 * job is running.
 */
const isOpenFrozen = ({ isHeld, isSettled }: Batch) => isHeld && !isSettled;

async function untilFrozen(app: App): Promise<void> {
  const jobs = async () => {
    const pushes = await readPushes(service.db, app);
    const batches = await readBatches(service.db, app);
    return {
      isHeld: pushes.some(({ isPlanHeld }) => isPlanHeld) || batches.some(isOpenFrozen),
      active: await countJobs(service.db, app, { state: 'active' }),
    };
  };
  await expect.poll(jobs, { interval: 20, timeout: 60_000 }).toEqual({ isHeld: true, active: 0 });
}

/** Sends a push that the gateway refuses for its device. Returns its id. */
async function failedPush(app: App, token: string): Promise<string> {
  service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge', token });
  const objectId = await beginPush(service, app);
  expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { failed: 1 } });
  service.apns.behave();
  return objectId;
}

/** Returns the id of the only push of an app. */
const pushOf = async (app: App): Promise<string> =>
  (await readPushes(service.db, app))[0]?.objectId ?? '';

test('a frozen service sends nothing more, neither of a running nor of a due push', async () => {
  const large = await createAppOn(service, null, 8000);
  const [planned, repeated, again, small] = await Promise.all(
    [1, 1, 1, 1].map((devices) => createAppOn(service, null, devices)),
  );
  if (!planned || !repeated || !again || !small) throw new Error('an app is missing');
  const failed = await failedPush(again.app, again.tokens[0] ?? '');
  await beginPush(service, planned.app, {
    push_time: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const definition = { name: 'daily', expression: '0 0 29 2 *', timeZone: 'UTC' };
  const recurring = { ...definition, body: { where: {}, data: { alert: 'x' } } };
  const created = await admin('POST', `/apps/${repeated.app.appId}/recurring-pushes`, recurring);
  expect(created.status).toBe(201);

  const before = service.apns.total;
  const largeId = await beginPush(service, large.app);
  await service.apns.waitFor(before + 1500);
  expect((await admin('PUT', '/freeze', { reason: 'a wrong text' })).status).toBe(200);
  await untilFrozen(large.app);
  const settled = service.apns.total;
  expect(requestsTo(large.tokens)).toBeLessThan(8000);

  // A scheduled and a recurring push become due, a redrive and a push arrive, a process dies and
  // another starts.
  await startScheduledPushes(service.db, planned.app);
  await service.db.query('UPDATE recurring_push SET next_at = now() WHERE app_id = $1', [
    repeated.app.appId,
  ]);
  const redrive = await admin(
    'POST',
    `/apps/${again.app.appId}/notifications/${failed}/redrive`,
    {},
  );
  expect(redrive.status).toBe(201);
  const smallId = await beginPush(service, small.app);
  dispatchers.latest()?.kill('SIGKILL');
  await dispatchers.start(threads);
  for (const { app } of [planned, repeated, again, small]) await untilFrozen(app);
  expect(service.apns.total).toBe(settled);

  expect((await admin('DELETE', '/freeze')).status).toBe(200);
  const sent = { outcomes: { sent: 1 } };
  expect(await service.untilDone(small.app, smallId)).toMatchObject(sent);
  expect(await service.untilDone(again.app, redrive.body.objectId)).toMatchObject(sent);
  expect(await service.untilDone(planned.app, await pushOf(planned.app))).toMatchObject(sent);
  expect(await service.untilDone(repeated.app, await pushOf(repeated.app))).toMatchObject(sent);
  expect(await service.untilDone(large.app, largeId, 18000)).toMatchObject({
    outcomes: { sent: 8000 },
  });
  const once = [large, planned, repeated, small].flatMap(({ tokens }) => tokens);
  expect(notSentOnce(once)).toEqual([]);
  // The failed push and its redrive.
  expect(requestsTo(again.tokens)).toBe(2);
});
