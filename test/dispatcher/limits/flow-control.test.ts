import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { paceShare } from '../../../shared/db/tables/gateway-limits.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
beforeAll(async () => {
  await Promise.all([service.dispatch(), service.dispatch()]);
});
afterEach(() => service.apns.behave());

/** Allows for a busy machine. No test asserts a speed. */
const timeoutMs = 120_000;
vi.setConfig({ testTimeout: timeoutMs });

const appWithIos = (count: number) => createAppOn(service, null, count);
const begin = (app: App, flowControl: number) =>
  beginPush(service, app, { flow_control: flowControl });

interface StoredSlot {
  id: number;
  atMs: number;
  durationMs: number;
  size: number;
  attempt: number;
}

/** Returns the time slots of all batches of an app, ordered by time. */
async function slotsOf(app: App): Promise<StoredSlot[]> {
  const { rows } = await service.db.query<StoredSlot>(
    `SELECT id, (extract(epoch FROM slot_at) * 1000)::float8 AS "atMs", slot_ms AS "durationMs",
            cardinality(recipients) AS size, attempt
       FROM push_batch WHERE app_id = $1 AND slot_at IS NOT NULL ORDER BY slot_at`,
    [app.appId],
  );
  return rows;
}

/** Returns the length of the time slot of a full batch (1,000 recipients) at a rate. */
const slotMs = (rate: number): number => Math.ceil(1_000_000 / (rate * paceShare));

/** Time slots are stored in milliseconds. */
const roundingMs = 2;

/**
 * Checks that the length of each time slot matches the rate, and that each slot starts at or after
 * the end of the previous slot. On a slow machine a slot may cover only the rest of a batch.
 */
function expectPace(slots: StoredSlot[], rate: number): void {
  for (const [i, slot] of slots.entries()) {
    expect(slot.durationMs).toBeLessThanOrEqual(Math.ceil((slot.size * 1000) / (rate * paceShare)));
    const next = slots[i + 1];
    if (next) expect(next.atMs - slot.atMs).toBeGreaterThanOrEqual(slot.durationMs - roundingMs);
  }
}

/** Sends a push with a rate. Returns its record and the time since the call. */
async function timed(
  app: App,
  flowControl: number,
): Promise<{ record: Record<string, unknown>; ms: number }> {
  const startedAtMs = performance.now();
  const objectId = await begin(app, flowControl);
  const record = await service.untilDone(app, objectId, timeoutMs);
  return { record, ms: performance.now() - startedAtMs };
}

describe('flow_control', () => {
  test('assigns successive time slots to the batches of all dispatchers', async () => {
    const { app, tokens } = await appWithIos(4000);
    const { record, ms } = await timed(app, 2000);
    expect(record).toMatchObject({ status: 'done', devices: 4000, successes: 4000 });
    const slots = await slotsOf(app);
    expect(slots).toHaveLength(4);
    expectPace(slots, 2000);
    expect(ms).toBeGreaterThanOrEqual((4000 / 2000) * 1000 * 0.9);
    expect(tokens.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
  });

  test('spreads a batch over its time slot', async () => {
    const { app } = await appWithIos(1000);
    const already = service.apns.total;
    const calledAtMs = Date.now();
    const done = begin(app, 1000).then((id) => service.untilDone(app, id, timeoutMs));
    const arrivals: { n: number; atMs: number }[] = [];
    for (let n = 100; n <= 1000; n += 100) {
      await service.apns.waitFor(already + n);
      arrivals.push({ n, atMs: Date.now() });
    }
    await done;
    // No recipient is early, except by a millisecond and a group (40 ms). A busy machine delays
    // some.
    for (const { n, atMs } of arrivals) expect(atMs - calledAtMs).toBeGreaterThanOrEqual(n - 60);
  });

  test('below 1000 counts as 1000, also for a small push', async () => {
    const { app } = await appWithIos(500);
    const { record, ms } = await timed(app, 1);
    expect(record).toMatchObject({ devices: 500, successes: 500 });
    expectPace(await slotsOf(app), 1000);
    expect(ms).toBeGreaterThanOrEqual(350);
  });

  test('applies to retries too, which have their own time slots', async () => {
    const { app } = await appWithIos(1500);
    // The failures are spread over all requests, because consecutive failures would open the
    // breaker.
    service.apns.misbehave({
      kind: 'answer',
      status: 503,
      reason: 'ServiceUnavailable',
      fraction: 0.2,
    });
    const { record } = await timed(app, 1500);
    expect(record).toMatchObject({ devices: 1500, successes: 1500 });
    const slots = await slotsOf(app);
    expect(slots.some((slot) => slot.attempt > 0)).toBe(true);
    expectPace(slots, 1500);
  });

  test('reserves once for a batch, even if it is taken several times', async () => {
    const { app } = await appWithIos(3000);
    const objectId = await begin(app, 1000);
    await expect.poll(() => slotsOf(app), { timeout: timeoutMs }).toHaveLength(3);
    const reserved = await slotsOf(app);
    expect(await service.untilDone(app, objectId, timeoutMs)).toMatchObject({ successes: 3000 });
    // A time slot changes only if a busy machine missed it, and only to a later slot.
    for (const slot of await slotsOf(app)) {
      const before = reserved.find(({ id }) => id === slot.id);
      expect(slot.atMs).toBeGreaterThanOrEqual(before?.atMs ?? 0);
    }
  });

  test('changed by a call applies within a second to the remaining recipients', async () => {
    const { app, tokens } = await appWithIos(10_000);
    const already = service.apns.total;
    const objectId = await begin(app, 1000);
    await expect.poll(() => slotsOf(app), { timeout: timeoutMs }).toHaveLength(10);
    await service.apns.waitFor(already + 1);
    const path = `/console/api/apps/${app.appId}/notifications/${objectId}/pace`;
    const body = { flow_control: 10_000 };
    expect((await service.api.request('POST', path, { admin: true, body })).status).toBe(200);
    expect(await service.untilDone(app, objectId, timeoutMs)).toMatchObject({ successes: 10_000 });
    const changed = (await slotsOf(app)).filter((slot) => slot.durationMs <= slotMs(10_000));
    expect(changed.length).toBeGreaterThan(3);
    expectPace(changed, 10_000);
    expect(tokens.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
  });

  test('reserves no time slot for a push without it', async () => {
    const { app } = await appWithIos(10);
    await service.untilDone(app, await beginPush(service, app));
    expect(await slotsOf(app)).toEqual([]);
  });
});
