import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import {
  type AppOnGateway,
  beginPush,
  createAppOn,
  startRestartableGateway,
} from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { countJobs } from '../../support/tables.ts';

/** With one thread, at most four batches of a connector may run at once. */

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});
afterEach(() => service.apns.behave());

/**
 * Creates an app whose gateway has just answered its thread. From then on the gateway accepts
 * requests but does not answer them.
 */
async function appOnSilentGateway(devices: number) {
  const gateway = await startRestartableGateway();
  // Bulk threads send all but the first thousand recipients of a push. The express thread sends
  // those.
  const silent = await createAppOn(service, gateway.own, Math.min(devices, 2000));
  const successes = silent.tokens.length;
  const first = await beginPush(service, silent.app);
  expect(await service.untilDone(silent.app, first)).toMatchObject({ successes });
  await service.addIosInstallations(silent.app, devices - successes);
  gateway.now().misbehave({ kind: 'hang' });
  const before = gateway.now().total;
  return { ...silent, gateway, hanging: () => gateway.now().total - before };
}

/** Returns the record of a push and the state of its gateway's breaker. */
async function statusOf({ app, id }: AppOnGateway, objectId: string) {
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/progress`;
  const { body } = await service.api.request('GET', path, { admin: true });
  const breakers = await service.api.request('GET', '/console/api/breakers', { admin: true });
  const { state } = breakers.body.results.find((breaker: { id: string }) => breaker.id === id);
  return { outcomes: body.outcomes, state };
}

const cancel = (app: App, objectId: string) =>
  service.api.request('DELETE', `/1.1/notifications/${objectId}`, { app, master: true });

describe('a gateway that stops answering', { timeout: 120_000 }, () => {
  test('does not delay pushes of other apps through the same connector', async () => {
    // The push has batches of 1,000, 5,000, 5,000 and 100.
    const silent = await appOnSilentGateway(11_100);
    const [many, few, one] = [
      await createAppOn(service, null, 1100),
      await createAppOn(service, null, 300),
      await createAppOn(service, null, 1),
    ];
    const hanging = await beginPush(service, silent.app);
    // Unanswered batches occupy every concurrency slot of the connector.
    await expect.poll(() => activeBatches(silent.app), { timeout: 20_000, interval: 10 }).toBe(4);
    // A connection starts with 100 streams and gets more as its gateway answers. At least two
    // connections are full.
    await expect
      .poll(silent.hanging, { timeout: 20_000, interval: 10 })
      .toBeGreaterThanOrEqual(200);
    const sent = await Promise.all(
      [many, few, one].map(async ({ app }) =>
        service.untilDone(app, await beginPush(service, app)),
      ),
    );
    expect(sent.map(({ successes }) => successes)).toEqual([1100, 300, 1]);
    // No timeout has passed and no breaker has opened. Only the bulkhead lets the other pushes
    // through.
    expect(await statusOf(silent, hanging)).toEqual({ outcomes: {}, state: 'closed' });
    await cancel(silent.app, hanging);
    await silent.gateway.stop();
  });

  test('does not delay new pushes, even if many of its small pushes hang', async () => {
    const silent = await appOnSilentGateway(1);
    const other = await createAppOn(service, null, 1);
    const hanging: string[] = [];
    for (let i = 0; i < 40; i += 1) hanging.push(await beginPush(service, silent.app));
    // All of these batches are in the queue before the other app's batch. At least four are in
    // flight.
    await expect.poll(silent.hanging, { timeout: 20_000, interval: 10 }).toBeGreaterThanOrEqual(4);
    const record = await service.untilDone(other.app, await beginPush(service, other.app));
    expect(record).toMatchObject({ devices: 1, successes: 1 });
    expect(await statusOf(silent, hanging[0] ?? '')).toEqual({ outcomes: {}, state: 'closed' });
    await Promise.all(hanging.map((objectId) => cancel(silent.app, objectId)));
    await silent.gateway.stop();
  });

  test('has a limited number of batches in flight, and loses no recipient in the end', async () => {
    const silent = await appOnSilentGateway(2000);
    // Each push has two batches. More devices would give halves, or a small first batch and larger
    // batches (architecture.md#batches).
    const hanging: string[] = [];
    for (let i = 0; i < 6; i += 1) hanging.push(await beginPush(service, silent.app));
    // Four batches are slow, and at most three were taken before the fourth. So at least two of the
    // twelve are postponed.
    await expect
      .poll(() => postponed(silent.app), { timeout: 20_000, interval: 20 })
      .toBeGreaterThanOrEqual(2);
    silent.gateway.now().behave();
    await silent.gateway.stop();
    await silent.gateway.restart();
    const records = await Promise.all(
      hanging.map((objectId) => service.untilDone(silent.app, objectId)),
    );
    // Requests in flight when the connection broke may have arrived. They are repeated, and the
    // device shows one message.
    expect(records.map(({ outcomes }) => outcomes)).toEqual(hanging.map(() => ({ sent: 2000 })));
    expect(records.some(({ repeats }) => Number(repeats) > 0)).toBe(true);
    await silent.gateway.stop();
  });
});

/** Returns the number of running batches of an app. */
const activeBatches = (app: App): Promise<number> =>
  countJobs(service.db, app, { queue: 'deliver-apns', state: 'active' });

/** Returns the number of batches that were postponed without using up a try. */
async function postponed(app: App): Promise<number> {
  const { rows } = await service.db.query<{ n: number }>(
    `SELECT count(*) AS n FROM push_batch b
       JOIN pgboss.job j ON j.data ->> 'batchId' = b.id::text AND j.data ->> 'appId' = b.app_id
      WHERE b.app_id = $1 AND b.attempt = 0 AND NOT b.is_settled AND j.state = 'created'
        AND j.start_after > now()`,
    [app.appId],
  );
  return rows[0]?.n ?? 0;
}
