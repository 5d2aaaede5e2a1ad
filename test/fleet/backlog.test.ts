import { describe, expect, test } from 'vitest';
import { systemClock } from '../../shared/clock.ts';
import { movableClock } from '../support/gateways/apns.ts';
import { type AppOnGateway, beginPush, createAppOn } from '../support/gateways/app-gateway.ts';
import { type TestService, useTestService } from '../support/service.ts';

/** `npm run bench -- backlog` sends a thousand times as many pushes. */
const apps = 20;
/** More than one batch per app. */
const devicesPerApp = 1100;
const scheduledPerApp = 10;

const busy = useTestService();
/**
 * The api's clock is one hour behind, so that a time in the past is far enough ahead to be
 * scheduled.
 */
const late = useTestService({ clock: movableClock(systemClock.now() - 3_600_000) });

const createApps = (service: TestService, devices: number): Promise<AppOnGateway[]> =>
  Promise.all(Array.from({ length: apps }, () => createAppOn(service, null, devices)));

/** Returns a gauge of the state that all processes share. */
async function gauge(service: TestService, name: string): Promise<number> {
  const { body } = await service.api.request('GET', '/metrics');
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(body)?.[1]);
}

async function numberOf(service: TestService, sql: string): Promise<number> {
  const { rows } = await service.db.query<{ n: number }>(`SELECT (${sql})::float8 AS n`);
  return rows[0]?.n ?? Number.NaN;
}

/** Checks that the age in a gauge is between the ages in the table before and after reading it. */
async function expectTrueAge(service: TestService, name: string, since: string): Promise<void> {
  const age = `SELECT extract(epoch FROM clock_timestamp() - (${since}))`;
  const least = await numberOf(service, age);
  const gaugeValue = await gauge(service, name);
  expect(gaugeValue).toBeGreaterThanOrEqual(least - 0.001);
  expect(gaugeValue).toBeLessThanOrEqual((await numberOf(service, age)) + 0.001);
}

function expectOnce({ apns }: TestService, crowd: readonly AppOnGateway[], each: number): void {
  for (const { tokens } of crowd)
    expect(tokens.filter((token) => apns.seen(token) === 1)).toHaveLength(each);
}

const open = `state IN ('queued', 'sending')`;

test('pushes of many apps at once all start, do not block a single push, and reach each once', {
  timeout: 120_000,
}, async () => {
  const crowd = await createApps(busy, devicesPerApp);
  const { app: single } = await createAppOn(busy, null, 1);
  const ids = await Promise.all(crowd.map(({ app }) => beginPush(busy, app)));
  const oldest = `SELECT min(created_at) FROM notification WHERE ${open}`;
  await expectTrueAge(busy, 'carillon_push_oldest_open_seconds', oldest);
  busy.apns.misbehave({ kind: 'slow', delayMs: 300 });
  await busy.dispatch();
  await busy.dispatch();
  const started = () =>
    numberOf(busy, 'SELECT count(*) FROM notification WHERE first_sent_at IS NOT NULL');
  await expect.poll(started, { timeout: 60_000 }).toBe(apps);
  expect(await busy.untilDone(single, await beginPush(busy, single))).toMatchObject({
    successes: 1,
  });
  expect(await numberOf(busy, `SELECT count(*) FROM notification WHERE ${open}`)).toBeGreaterThan(
    0,
  );
  busy.apns.behave();
  const records = await Promise.all(
    crowd.map(({ app }, i) => busy.untilDone(app, ids[i] ?? '', 100_000)),
  );
  for (const record of records)
    expect(record).toMatchObject({ devices: devicesPerApp, successes: devicesPerApp });
  expectOnce(busy, crowd, devicesPerApp);
  await expect.poll(() => gauge(busy, 'carillon_push_oldest_open_seconds')).toBe(0);
});

describe('scheduled pushes that are due at the same time', () => {
  test('report their delay, and are each sent once', { timeout: 120_000 }, async () => {
    const crowd = await createApps(late, scheduledPerApp);
    const dueMs = systemClock.now() - 1000;
    const timeOf = (place: number) =>
      new Date(dueMs + (place * 1000) / scheduledPerApp).toISOString();
    await Promise.all(
      crowd.flatMap(({ app, tokens }) =>
        tokens.map((deviceToken, i) =>
          beginPush(late, app, {
            where: { deviceToken },
            push_time: timeOf(i),
            expiration_interval: 86_400,
          }),
        ),
      ),
    );
    const next = 'SELECT min(push_time) FROM scheduled_push';
    await expectTrueAge(late, 'carillon_scheduled_lag_seconds', next);
    expect(await gauge(late, 'carillon_scheduled_pushes')).toBe(apps * scheduledPerApp);
    await late.dispatch();
    await late.dispatch();
    const done = () =>
      numberOf(late, `SELECT count(*) FROM notification WHERE state = 'done' AND devices = 1`);
    await expect.poll(done, { timeout: 60_000 }).toBe(apps * scheduledPerApp);
    expectOnce(late, crowd, scheduledPerApp);
    const early = 'SELECT count(*) FROM notification WHERE first_sent_at < push_time';
    expect(await numberOf(late, early)).toBe(0);
    await expect.poll(() => gauge(late, 'carillon_scheduled_lag_seconds')).toBe(0);
    expect(await gauge(late, 'carillon_scheduled_pushes')).toBe(0);
  });
});
