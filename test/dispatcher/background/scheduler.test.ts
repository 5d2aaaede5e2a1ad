import { expect, test } from 'vitest';
import { Scheduler } from '../../../dispatcher/background/scheduler.ts';
import type { DispatcherDeps } from '../../../dispatcher/deps.ts';
import { systemClock } from '../../../shared/clock.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestService } from '../../support/service.ts';

/**
 * The api's clock is one hour behind, so that it accepts a time that is near by the database's
 * clock.
 */
const service = useTestService({ clock: movableClock(systemClock.now() - 3_600_000) });

test('the scheduler sleeps until the next push, 0.5 s at most', async () => {
  const app = await service.api.createApp();
  const scheduler = new Scheduler();
  const sent: unknown[] = [];
  const queue = { send: async (_: unknown, jobs: unknown[]) => void sent.push(...jobs) };
  /** Moves the only entry. Returns what a pass starts and the pause after the pass. */
  const passAt = async (offset: string) => {
    await service.db.query(
      'UPDATE scheduled_push SET push_time = clock_timestamp() + $2::interval WHERE app_id = $1',
      [app.appId, offset],
    );
    const fired = await scheduler.fireDue(
      { db: service.db, queue } as unknown as DispatcherDeps,
      10,
    );
    return { fired, restMs: scheduler.pauseMs };
  };
  expect(await passAt('0')).toEqual({ fired: 0, restMs: 500 });
  const body = {
    data: { alert: 'x' },
    push_time: new Date(systemClock.now() + 60_000).toISOString(),
  };
  const { objectId } = (await service.api.request('POST', '/1.1/push', { app, master: true, body }))
    .body;
  expect(objectId).toBeTruthy();
  expect(await passAt('1 minute')).toEqual({ fired: 0, restMs: 500 });
  // The clocks of two CPU cores differ by a fraction of a millisecond.
  const { fired, restMs } = await passAt('400 ms');
  expect(fired).toBe(0);
  expect(restMs).toBeGreaterThan(0);
  expect(restMs).toBeLessThan(450);
  expect(await passAt('-1 ms')).toEqual({ fired: 1, restMs: 100 });
  expect(sent).toEqual([{ appId: app.appId, pushId: expect.any(Number) }]);
  expect(await passAt('0')).toEqual({ fired: 0, restMs: 500 });
});
