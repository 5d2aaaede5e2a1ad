import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { changePush, readBatches, readPush } from '../../support/tables.ts';

let service: TestService;

beforeAll(async () => {
  // Few streams, so that a batch takes a while.
  service = await startTestService({ gateway: { maxStreams: 5 } });
});
afterAll(() => service?.close());
afterEach(() => service.apns.behave());

const slow = () => service.apns.misbehave({ kind: 'slow', delayMs: 100 });

const appWithIos = (count: number) => createAppOn(service, null, count);
const begin = (app: App, body: object = {}) => beginPush(service, app, body);

const control = (app: App, objectId: string, verb: string, body?: object) =>
  service.api.request('POST', `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`, {
    admin: true,
    body,
  });

async function progress(app: App, objectId: string) {
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/progress`;
  return (await service.api.request('GET', path, { admin: true })).body;
}

const sum = (outcomes: Record<string, number>) =>
  Object.values(outcomes).reduce((a, b) => a + b, 0);

/** Returns the number of batches of an app that are neither settled nor waiting for a resume. */
async function openBatches(app: App): Promise<number> {
  const batches = await readBatches(service.db, app);
  return batches.filter(({ isSettled, isHeld }) => !isSettled && !isHeld).length;
}

const requestsTo = (tokens: string[]) =>
  tokens.reduce((n, token) => n + service.apns.seen(token), 0);
const notSentOnce = (tokens: string[]) => tokens.filter((token) => service.apns.seen(token) !== 1);

/** Starts a push and waits until a part of it was sent. */
async function startPush(app: App, tokens: string[], body: object = {}): Promise<string> {
  slow();
  const objectId = await begin(app, body);
  await expect.poll(() => requestsTo(tokens), { interval: 10 }).toBeGreaterThan(20);
  return objectId;
}

describe('a push that is paused', () => {
  test('before it is planned waits, and is planned when it is resumed', async () => {
    const { app, tokens } = await appWithIos(10);
    const objectId = await begin(app);
    expect(await control(app, objectId, 'pause')).toMatchObject({
      status: 200,
      body: { status: 'paused' },
    });
    await service.dispatch();
    await service.dispatch();
    const isPlanHeld = async () => (await readPush(service.db, app, objectId)).isPlanHeld;
    await expect.poll(isPlanHeld).toBe(true);
    expect(requestsTo(tokens)).toBe(0);
    expect((await control(app, objectId, 'resume')).body).toMatchObject({ status: 'in-queue' });
    expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 10, successes: 10 });
    expect(notSentOnce(tokens)).toEqual([]);
  });

  test('stops on all dispatchers, and continues where it stopped', async () => {
    const { app, tokens } = await appWithIos(2500);
    const objectId = await startPush(app, tokens);
    const reply = await control(app, objectId, 'pause');
    expect(reply).toMatchObject({ status: 200, body: { objectId, status: 'paused' } });
    // Checks no duration, because machines that run tests are busy. `npm run bench -- control`
    // measures it.
    await expect.poll(() => openBatches(app), { interval: 10 }).toBe(0);
    const seen = requestsTo(tokens);
    expect(seen).toBeLessThan(2500);
    const other = await appWithIos(300);
    await service.untilDone(other.app, await begin(other.app));
    expect(requestsTo(tokens)).toBe(seen);
    expect(await progress(app, objectId)).toMatchObject({ status: 'paused', devices: 2500 });
    const { body } = await service.api.request('GET', `/1.1/notifications/${objectId}`, { app });
    expect(body).toMatchObject({ status: 'in-queue' });
    service.apns.behave();
    await control(app, objectId, 'resume');
    expect(await service.untilDone(app, objectId)).toMatchObject({
      status: 'done',
      successes: 2500,
    });
    expect(notSentOnce(tokens)).toEqual([]);
  });

  test('and resumed repeatedly reaches every recipient once, small or large', async () => {
    for (const count of [300, 2500]) {
      const { app, tokens } = await appWithIos(count);
      const objectId = await startPush(app, tokens);
      for (let i = 0; i < 15; i += 1) {
        expect((await control(app, objectId, i % 2 === 0 ? 'pause' : 'resume')).status).toBe(200);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
      }
      service.apns.behave();
      expect((await control(app, objectId, 'resume')).status).toBe(200);
      expect(await service.untilDone(app, objectId)).toMatchObject({
        devices: count,
        successes: count,
      });
      expect(notSentOnce(tokens)).toEqual([]);
    }
  });

  test('still expires: its open recipients are counted without a resume', async () => {
    const { app, tokens } = await appWithIos(1500);
    const objectId = await startPush(app, tokens);
    await control(app, objectId, 'pause');
    await expect.poll(() => openBatches(app), { timeout: 20_000 }).toBe(0);
    await changePush(service.db, app, { expiresAt: new Date() }, objectId);
    const record = await service.untilDone(app, objectId);
    const { sent = 0, expired = 0 } = record.outcomes as Record<string, number>;
    expect(record).toMatchObject({ status: 'done', devices: 1500 });
    expect(expired).toBeGreaterThan(0);
    expect(sent + expired).toBe(1500);
    expect(requestsTo(tokens)).toBe(sent);
  });

  test('and then cancelled drops the remaining recipients', async () => {
    const { app, tokens } = await appWithIos(1500);
    const objectId = await startPush(app, tokens);
    await control(app, objectId, 'pause');
    await expect.poll(() => openBatches(app), { timeout: 20_000 }).toBe(0);
    expect((await control(app, objectId, 'cancel')).body).toMatchObject({ status: 'cancelled' });
    const counted = async () => sum((await progress(app, objectId)).outcomes);
    await expect.poll(counted, { timeout: 20_000 }).toBe(1500);
    const { outcomes } = await progress(app, objectId);
    expect(outcomes).toEqual({ sent: requestsTo(tokens), dropped: 1500 - requestsTo(tokens) });
  });
});

describe('a push that is cancelled while it is sent', () => {
  test('stops and counts every recipient; clients find no record', async () => {
    const { app, tokens } = await appWithIos(2500);
    const objectId = await startPush(app, tokens);
    const reply = await control(app, objectId, 'cancel');
    expect(reply).toMatchObject({
      status: 200,
      body: { objectId, status: 'cancelled', devices: 2500 },
    });
    const counted = async () => sum((await progress(app, objectId)).outcomes);
    await expect.poll(counted, { interval: 20 }).toBe(2500);
    const { outcomes, status } = await progress(app, objectId);
    expect(status).toBe('cancelled');
    expect(outcomes).toEqual({ sent: requestsTo(tokens), dropped: 2500 - requestsTo(tokens) });
    expect(outcomes.dropped).toBeGreaterThan(0);
    const path = `/1.1/notifications/${objectId}`;
    expect((await service.api.request('GET', path, { app })).status).toBe(404);
    expect((await control(app, objectId, 'resume')).status).toBe(409);
  });

  test('by DELETE drops the recipients that are not sent to yet, even if it is small', async () => {
    const { app, tokens } = await appWithIos(900);
    const objectId = await startPush(app, tokens);
    const path = `/1.1/notifications/${objectId}`;
    expect((await service.api.request('DELETE', path, { app, master: true })).status).toBe(200);
    const counted = async () => sum((await progress(app, objectId)).outcomes);
    await expect.poll(counted, { timeout: 20_000 }).toBe(900);
    expect((await progress(app, objectId)).outcomes.sent).toBe(requestsTo(tokens));
    expect(tokens.filter((token) => service.apns.seen(token) > 1)).toEqual([]);
  });
});

describe('a push whose pace is changed while it is sent', () => {
  test('keeps the new pace, and reaches every recipient once', async () => {
    const { app, tokens } = await appWithIos(1500);
    const objectId = await startPush(app, tokens);
    const reply = await control(app, objectId, 'pace', { flow_control: 1000 });
    expect(reply).toMatchObject({ status: 200, body: { objectId, status: 'in-queue' } });
    const [repliedAtMs, left] = [performance.now(), 1500 - requestsTo(tokens)];
    service.apns.behave();
    expect(await service.untilDone(app, objectId)).toMatchObject({
      status: 'done',
      successes: 1500,
    });
    // Requests that were open at the time of the reply count for the rest. A slower machine takes
    // longer.
    expect(performance.now() - repliedAtMs).toBeGreaterThan(left * 0.9 - 100);
    expect(notSentOnce(tokens)).toEqual([]);
  });

  test('stays paused or scheduled', async () => {
    const { app } = await appWithIos(1);
    const objectId = await begin(app, {
      push_time: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const body = { flow_control: 2000 };
    expect((await control(app, objectId, 'pace', body)).body).toMatchObject({
      status: 'scheduled',
    });
    expect((await control(app, objectId, 'pace', {})).status).toBe(400);
    expect((await control(app, 'nothing', 'pace', body)).status).toBe(404);
  });
});

describe('cancel, pause, resume and pace are refused', () => {
  test('for a push that is done, with a message', async () => {
    const { app } = await appWithIos(1);
    const objectId = await begin(app);
    await service.untilDone(app, objectId);
    for (const verb of ['cancel', 'pause', 'resume', 'pace']) {
      const reply = await control(
        app,
        objectId,
        verb,
        verb === 'pace' ? { flow_control: 2000 } : undefined,
      );
      expect(reply).toMatchObject({ status: 409, body: { code: 409 } });
      expect(reply.body.error).toMatch(/done/);
    }
    const path = `/1.1/notifications/${objectId}`;
    expect((await service.api.request('DELETE', path, { app, master: true })).status).toBe(409);
  });

  test('to pause or resume a push that is scheduled for later', async () => {
    const { app } = await appWithIos(1);
    const objectId = await begin(app, {
      push_time: new Date(Date.now() + 3_600_000).toISOString(),
    });
    for (const verb of ['pause', 'resume'])
      expect((await control(app, objectId, verb)).status).toBe(409);
    expect((await control(app, objectId, 'cancel')).body).toMatchObject({
      status: 'cancelled',
      devices: 0,
    });
  });

  test("for unknown and other apps' pushes, invalid members, and without a token", async () => {
    const { app } = await appWithIos(1);
    const other = await appWithIos(1);
    const objectId = await begin(app, {
      push_time: new Date(Date.now() + 3_600_000).toISOString(),
    });
    expect((await control(app, 'nothing', 'pause')).status).toBe(404);
    expect((await control(other.app, objectId, 'cancel')).status).toBe(404);
    expect((await control(app, objectId, 'resume', { flow_control: 'fast' })).status).toBe(400);
    expect((await control(app, objectId, 'resume', { pace: 5 })).status).toBe(400);
    const path = `/console/api/apps/${app.appId}/notifications/${objectId}/cancel`;
    expect((await service.api.request('POST', path, { app, master: true })).status).toBe(401);
  });
});

test('resume changes flow_control: at least 1000, null removes it, absent keeps it', async () => {
  const { app, tokens } = await appWithIos(1500);
  const objectId = await startPush(app, tokens);
  await control(app, objectId, 'pause');
  const paceAfter = async (body?: object) => {
    await control(app, objectId, 'resume', body);
    const { rows } = await service.db.query<{ pace: number | null }>(
      `SELECT (request ->> 'flowControl')::float8 AS pace FROM notification WHERE object_id = $1`,
      [objectId],
    );
    return rows[0]?.pace;
  };
  expect(await paceAfter({ flow_control: 5 })).toBe(1000);
  expect(await paceAfter({ flow_control: 20_000 })).toBe(20_000);
  expect(await paceAfter()).toBe(20_000);
  expect(await paceAfter({ flow_control: null })).toBe(null);
  service.apns.behave();
  expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 1500 });
});
