import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { changePush, countJobs, readBatches, readPushes } from '../../support/tables.ts';

let service: TestService;

beforeAll(async () => {
  // Few streams, so that a batch takes a while.
  service = await startTestService({ gateway: { maxStreams: 5 } });
  await service.dispatch();
  await service.dispatch();
});
afterAll(() => service?.close());
afterEach(() => service.apns.behave());

const admin = (method: string, path: string, body?: object) =>
  service.api.request(method, `/console/api${path}`, { admin: true, body });
const freeze = (path: string, reason = 'a wrong text') => admin('PUT', path, { reason });
const release = (path: string) => admin('DELETE', path);
const ofApp = ({ appId }: App) => `/apps/${appId}/freeze`;

const requestsTo = (tokens: string[]) =>
  tokens.reduce((n, token) => n + service.apns.seen(token), 0);
const notSentOnce = (tokens: string[]) => tokens.filter((token) => service.apns.seen(token) !== 1);
const outcomesOf = async (app: App, objectId: string) =>
  (await service.untilDone(app, objectId)).outcomes as Record<string, number>;

/** Counts an app's frozen plannings and batches, which have no job, and its running jobs. */
async function jobsOf(app: App): Promise<{ held: number; active: number }> {
  const [pushes, batches, active] = await Promise.all([
    readPushes(service.db, app),
    readBatches(service.db, app),
    countJobs(service.db, app, { state: 'active' }),
  ]);
  const frozenPlans = pushes.filter(({ isPlanHeld }) => isPlanHeld).length;
  const frozenBatches = batches.filter(({ isHeld, isSettled }) => isHeld && !isSettled).length;
  return { held: frozenPlans + frozenBatches, active };
}

/** Waits until no job of the app is running. Returns the number of frozen plannings and batches. */
async function untilFrozen(app: App): Promise<number> {
  await expect
    .poll(() => jobsOf(app), { interval: 20, timeout: 20_000 })
    .toMatchObject({ active: 0 });
  await expect.poll(async () => (await jobsOf(app)).held, { interval: 20 }).toBeGreaterThan(0);
  return (await jobsOf(app)).held;
}

test('freezing an app pauses its push; unfreezing continues where it stopped', async () => {
  const { app, tokens } = await createAppOn(service, null, 2500);
  service.apns.misbehave({ kind: 'slow', delayMs: 100 });
  const objectId = await beginPush(service, app, {});
  await expect.poll(() => requestsTo(tokens), { interval: 10 }).toBeGreaterThan(20);
  expect(await freeze(ofApp(app))).toMatchObject({
    status: 200,
    body: { appId: app.appId, reason: 'a wrong text', since: expect.any(String) },
  });
  await untilFrozen(app);
  service.apns.behave();
  const seen = requestsTo(tokens);
  expect(seen).toBeLessThan(2500);
  const other = await createAppOn(service, null, 300);
  expect(await outcomesOf(other.app, await beginPush(service, other.app, {}))).toMatchObject({
    sent: 300,
  });
  expect(requestsTo(tokens)).toBe(seen);
  expect((await release(ofApp(app))).status).toBe(200);
  expect(await outcomesOf(app, objectId)).toMatchObject({ sent: 2500 });
  expect(notSentOnce(tokens)).toEqual([]);
});

test('a frozen service accepts pushes, and sends them after unfreezing', async () => {
  const { app, tokens } = await createAppOn(service, null, 5);
  expect((await freeze('/freeze')).body).toMatchObject({ appId: null });
  const ids: string[] = [];
  for (const deviceToken of tokens)
    ids.push(await beginPush(service, app, { where: { deviceToken } }));
  await expect.poll(() => jobsOf(app), { interval: 20 }).toEqual({ held: 5, active: 0 });
  // One more push arrives and is frozen too.
  ids.push(await beginPush(service, app, {}));
  await expect.poll(() => jobsOf(app), { interval: 20 }).toEqual({ held: 6, active: 0 });
  expect(requestsTo(tokens)).toBe(0);
  expect((await release('/freeze')).body).toMatchObject({ appId: null });
  for (const [i, objectId] of ids.entries())
    expect(await outcomesOf(app, objectId)).toMatchObject({ sent: i < 5 ? 1 : 5 });
  await expect
    .poll(async () => (await service.db.query('SELECT FROM push_freeze')).rowCount, {
      interval: 50,
    })
    .toBe(0);
});

test('a frozen app stays frozen when the service is unfrozen', async () => {
  const { app } = await createAppOn(service, null, 1);
  await freeze('/freeze');
  await freeze(ofApp(app), 'its own');
  const objectId = await beginPush(service, app, {});
  await untilFrozen(app);
  const listed = (await admin('GET', '/freezes')).body.results;
  expect(listed).toMatchObject([{ appId: null }, { appId: app.appId, reason: 'its own' }]);
  await release('/freeze');
  const other = await createAppOn(service, null, 1);
  await outcomesOf(other.app, await beginPush(service, other.app, {}));
  expect(await jobsOf(app)).toEqual({ held: 1, active: 0 });
  await release(ofApp(app));
  expect(await outcomesOf(app, objectId)).toMatchObject({ sent: 1 });
});

test('recipients that expire during a freeze are counted and not sent to', async () => {
  const { app, tokens } = await createAppOn(service, null, 3);
  await freeze(ofApp(app));
  const objectId = await beginPush(service, app, {});
  await untilFrozen(app);
  await changePush(service.db, app, { expiresAt: new Date() }, objectId);
  await release(ofApp(app));
  expect(await outcomesOf(app, objectId)).toMatchObject({ expired: 3 });
  expect(requestsTo(tokens)).toBe(0);
});

test('ending a freeze twice is an error, and so is freezing an unknown app', async () => {
  const { app } = await createAppOn(service, null, 1);
  expect((await release(ofApp(app))).status).toBe(404);
  expect((await freeze('/apps/unknown/freeze')).status).toBe(404);
  expect((await freeze(ofApp(app), 'x'.repeat(201))).status).toBe(400);
  expect((await release('/freeze')).body).toMatchObject({ error: 'The service is not frozen.' });
});
