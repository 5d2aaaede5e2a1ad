import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import {
  beginPush,
  createAppOn,
  startRestartableGateway,
} from '../../support/gateways/app-gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { readBatches } from '../../support/tables.ts';

/**
 * Poll intervals. Breaker states are short in this file. A scrape of the metrics is more expensive
 * than a hundred requests.
 */
const fastPoll = { interval: 20 };
const slowPoll = { interval: 100 };

/** Short cooldowns, so that a test sees several of them. */
const timing = { coolDownMs: 300, maxCooldownMs: 600 };

let service: TestService;
let dispatchers: RunningDispatcher[];

beforeAll(async () => {
  // Few streams, so that a push with slow replies takes a while.
  service = await startTestService({ gateway: { maxStreams: 10 } });
  const dispatch = () => service.dispatch({ breakers: timing });
  dispatchers = await Promise.all([dispatch(), dispatch()]);
});
afterAll(() => service?.close());
afterEach(() => service.apns.behave());

const appOn = (credentials: Record<string, unknown> | null, devices: number) =>
  createAppOn(service, credentials, devices);
const begin = (app: App, body: object = {}) => beginPush(service, app, body);

const force = (id: string, verb: 'open' | 'close' | 'release') =>
  service.api.request('POST', `/console/api/breakers/${id}/${verb}`, { admin: true });

async function stateOf(id: string): Promise<string> {
  const { body } = await service.api.request('GET', '/console/api/breakers', { admin: true });
  return body.results.find((breaker: { id: string }) => breaker.id === id).state;
}

/** Returns the gauge of each dispatcher. Null if a dispatcher has none for this app. */
async function gauges(app: App): Promise<(number | null)[]> {
  const texts = await Promise.all(
    dispatchers.map(async ({ metricsPort }) =>
      (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(),
    ),
  );
  const line = new RegExp(`^carillon_breaker_state\\{[^}]*app="${app.appId}"[^}]*\\} (\\d)$`, 'm');
  return texts.map((text) => {
    const found = line.exec(text)?.[1];
    return found === undefined ? null : Number(found);
  });
}

/** Returns the maximum attempts and tries of an app's batches. */
async function attempts(app: App): Promise<{ highest: number; tries: number }> {
  const batches = await readBatches(service.db, app);
  return {
    highest: Math.max(0, ...batches.map(({ attempt }) => attempt)),
    tries: Math.max(0, ...batches.map((batch) => batch.tries)),
  };
}

describe('a gateway that is unavailable for a while', { timeout: 60_000 }, () => {
  test('delays only its own pushes, loses no recipient and uses up no attempts', async () => {
    const restartable = await startRestartableGateway();
    const dead = await appOn(restartable.own, 1500);
    const healthy = await appOn(null, 1100);
    await restartable.stop();
    const delayed = await begin(dead.app);
    await expect
      .poll(async () => Math.max(...(await gauges(dead.app)).map((n) => n ?? 0)), slowPoll)
      .toBe(2);
    await expect.poll(() => stateOf(dead.id), fastPoll).toBe('open');
    const unaffected = await service.untilDone(healthy.app, await begin(healthy.app), 20_000);
    expect(unaffected).toMatchObject({ status: 'done', devices: 1100, successes: 1100 });
    // The gateway is still unavailable: probes fail, and their tries do not count.
    await expect.poll(() => stateOf(dead.id), fastPoll).toBe('half-open');
    await expect.poll(() => stateOf(dead.id), fastPoll).toBe('open');
    expect(await attempts(dead.app)).toMatchObject({ tries: 0 });
    await restartable.restart();
    const record = await service.untilDone(dead.app, delayed);
    expect(record).toMatchObject({ devices: 1500, successes: 1500, outcomes: { sent: 1500 } });
    expect(dead.tokens.filter((token) => restartable.now().seen(token) !== 1)).toEqual([]);
    await expect.poll(() => stateOf(dead.id), fastPoll).toBe('closed');
    expect((await gauges(dead.app)).filter((n) => n === 2)).toEqual([]);
    await restartable.stop();
  });

  test('and answers 503 to all requests uses up no attempts', async () => {
    const { app, id } = await appOn(null, 200);
    service.apns.misbehave({ kind: 'answer', status: 503, reason: 'ServiceUnavailable' });
    const objectId = await begin(app);
    await expect.poll(() => stateOf(id), fastPoll).toBe('open');
    await expect.poll(() => stateOf(id), fastPoll).toBe('half-open');
    await expect.poll(() => stateOf(id), fastPoll).toBe('open');
    service.apns.behave();
    expect(await service.untilDone(app, objectId)).toMatchObject({
      devices: 200,
      outcomes: { sent: 200 },
    });
    expect(await attempts(app)).toMatchObject({ tries: 0 });
  });

  test('and answers 503 until the push expires: all recipients expire', async () => {
    const { app, tokens } = await appOn(null, 1500);
    service.apns.misbehave({ kind: 'answer', status: 503, reason: 'ServiceUnavailable' });
    const record = await service.untilDone(app, await begin(app, { expiration_interval: 8 }));
    expect(record).toMatchObject({ status: 'done', devices: 1500, outcomes: { expired: 1500 } });
    expect(record.errors).toMatch(/expired; the last try: ServiceUnavailable/);
    // After the first round, only the few recipients of each probe are sent to.
    expect(tokens.reduce((sum, token) => sum + service.apns.seen(token), 0)).toBeLessThan(2 * 1500);
  });

  test('a Retry-After in the reply to a probe is respected', async () => {
    const { app, tokens, id } = await appOn(null, 200);
    const [token = ''] = tokens;
    service.apns.misbehave({ kind: 'answer', status: 503, reason: 'ServiceUnavailable' });
    const objectId = await begin(app);
    await expect.poll(() => stateOf(id), fastPoll).toBe('open');
    service.apns.behave();
    const answer = { status: 429, reason: 'TooManyRequests', retryAfter: '3', count: 1, token };
    service.apns.misbehave({ kind: 'answer', ...answer });
    expect(await service.untilDone(app, objectId)).toMatchObject({
      devices: 200,
      outcomes: { sent: 200 },
    });
    const seen = service.apns.requests.filter((request) => request.token === token);
    const first429 = seen.findIndex(({ status }) => status === 429);
    expect(seen.slice(first429).map(({ status }) => status)).toEqual([429, 200]);
    expect((seen[first429 + 1]?.atMs ?? 0) - (seen[first429]?.atMs ?? 0)).toBeGreaterThanOrEqual(
      3000,
    );
  });

  test('a push that expires during the outage has the last reason', async () => {
    const restartable = await startRestartableGateway();
    const { app } = await appOn(restartable.own, 100);
    await restartable.stop();
    const objectId = await begin(app, { expiration_interval: 8 });
    const record = await service.untilDone(app, objectId);
    expect(record).toMatchObject({ devices: 100, successes: 0, outcomes: { expired: 100 } });
    expect(record.errors).toMatch(/expired; the last try: connect_failed/);
  });
});

describe('replies about single tokens', () => {
  test('(429, invalid tokens, rejected payloads) open no breaker', async () => {
    const { app, tokens, id } = await appOn(null, 60);
    for (const token of tokens.slice(0, 30)) service.apns.badTokens.add(token);
    for (const token of tokens.slice(30))
      service.apns.misbehave({
        kind: 'answer',
        status: 429,
        reason: 'TooManyRequests',
        count: 1,
        token,
      });
    const record = await service.untilDone(app, await begin(app));
    expect(record).toMatchObject({ devices: 60, successes: 30, invalidTokens: 30 });
    service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    await service.untilDone(app, await begin(app));
    expect(await stateOf(id)).toBe('closed');
    expect((await gauges(app)).every((n) => n === 0 || n === null)).toBe(true);
  });
});

describe('a breaker that is forced open', { timeout: 60_000 }, () => {
  test('stops sending on both dispatchers until it is released', async () => {
    const { app, tokens, id } = await appOn(null, 4000);
    service.apns.misbehave({ kind: 'slow', delayMs: 100 });
    const already = service.apns.total;
    const objectId = await begin(app);
    await service.apns.waitFor(already + 50);
    expect((await force(id, 'open')).body).toMatchObject({ state: 'open', forced: 'open' });
    await expect.poll(() => gauges(app), slowPoll).toEqual([2, 2]);
    // Waits until requests in flight are answered. Then no more requests may come.
    await new Promise((resolve) => setTimeout(resolve, 1200));
    const sent = service.apns.total;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(service.apns.total).toBe(sent);
    expect(sent - already).toBeLessThan(4000);
    service.apns.behave();
    expect((await force(id, 'release')).body).toMatchObject({ state: 'closed', forced: null });
    expect(await service.untilDone(app, objectId)).toMatchObject({
      devices: 4000,
      successes: 4000,
    });
    expect(tokens.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
  });

  test('can stop a gateway whose breaker never opened before', async () => {
    const { app, tokens, id } = await appOn(null, 5);
    await force(id, 'open');
    // The cache of every dispatcher has expired now.
    await expect.poll(() => gauges(app), slowPoll).toEqual([2, 2]);
    const objectId = await begin(app);
    await expect.poll(async () => (await postponed(app)).length, slowPoll).toBe(1);
    expect(tokens.map((token) => service.apns.seen(token))).toEqual([0, 0, 0, 0, 0]);
    await force(id, 'release');
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 5 });
  });

  test('sends the waiting batches as soon as it is released, even after a long time', async () => {
    // The push has batches of 1,000, 2,500 and 100.
    const { app, id } = await appOn(null, 3600);
    await force(id, 'open');
    // After an outage this long, batches are postponed by 15 s.
    await service.db.query(
      "UPDATE breaker SET since = now() - interval '1 hour' WHERE app_id = $1",
      [app.appId],
    );
    await expect.poll(() => gauges(app), slowPoll).toEqual([2, 2]);
    const objectId = await begin(app);
    const waiting = () => waitsOf(app);
    await expect
      .poll(async () => (await waiting()).filter((ms) => ms > 10_000), slowPoll)
      .toHaveLength(3);
    const { rows } = await service.db.query<{ due: Date }>(
      `SELECT min(start_after) AS due FROM pgboss.job
        WHERE data ->> 'appId' = $1 AND data ? 'batchId' AND state = 'created'`,
      [app.appId],
    );
    await force(id, 'release');
    expect(await service.untilDone(app, objectId)).toMatchObject({
      devices: 3600,
      successes: 3600,
    });
    const { rows: after } = await service.db.query<{ is_early: boolean }>(
      'SELECT now() < $1 AS is_early',
      [rows[0]?.due],
    );
    expect(after[0]?.is_early).toBe(true);
  });

  test('if forced closed instead, keeps sending to an unavailable gateway', async () => {
    const restartable = await startRestartableGateway();
    const { app, id } = await appOn(restartable.own, 100);
    await restartable.stop();
    await force(id, 'close');
    await expect.poll(() => gauges(app), slowPoll).toEqual([0, 0]);
    const objectId = await begin(app);
    await expect.poll(async () => (await attempts(app)).highest, slowPoll).toBeGreaterThan(2);
    expect(await gauges(app)).toEqual([0, 0]);
    await restartable.restart();
    expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 100, successes: 100 });
    await restartable.stop();
  });
});

/** Returns the waiting time of each waiting batch of an app, in ms. */
async function waitsOf(app: App): Promise<number[]> {
  const { rows } = await service.db.query<{ ms: number }>(
    `SELECT (extract(epoch FROM start_after - now()) * 1000)::float8 AS ms FROM pgboss.job
      WHERE data ->> 'appId' = $1 AND data ? 'batchId' AND state = 'created'`,
    [app.appId],
  );
  return rows.map((row) => row.ms);
}

/** Returns the batches of an app whose job is scheduled for later. */
async function postponed(app: App): Promise<unknown[]> {
  const batches = await readBatches(service.db, app);
  return batches.filter(({ hasJob, isSettled }) => hasJob && !isSettled);
}
