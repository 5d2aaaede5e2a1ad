import { createServer } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { RunningDispatcher } from '../../dispatcher/start.ts';
import { warmUp, warmUpLimits } from '../../dispatcher/startup/warm-up.ts';
import { systemClock } from '../../shared/clock.ts';
import { findRecentProfiles } from '../../shared/db/tables/recipients.ts';
import {
  type AppOnGateway,
  beginPush,
  createAppOn,
  startRestartableGateway,
} from '../support/gateways/app-gateway.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
const neverAborts = new AbortController().signal;
let one: AppOnGateway;
const { totalMs } = warmUpLimits;
/** Timeout of the tests of a complete warm-up. A busy machine needs more than the default. */
const ampleMs = 60_000;
afterAll(() => {
  warmUpLimits.totalMs = totalMs;
});
beforeAll(async () => {
  warmUpLimits.totalMs = ampleMs;
  one = await createAppOn(service, null, 1);
  const first = await service.dispatch();
  await service.untilDone(one.app, await beginPush(service, one.app, {}));
  await first.stack.close();
});

const sinceMs = () => systemClock.now() - warmUpLimits.usedWithinMs;

test('a new dispatcher connects to recently used gateways before it is ready', async () => {
  const { connections, total } = service.apns;
  const dispatcher = await service.dispatch();
  const { rows } = await service.db.query<{ n: number }>(
    `SELECT count(*) AS n FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'carillon dispatcher thread'`,
  );
  // Each thread opens four connections. There is one thread for small pushes and at least one for
  // others.
  expect(rows[0]?.n).toBeGreaterThanOrEqual(8);
  expect(service.apns.connections).toBeGreaterThanOrEqual(connections + 2);
  expect(service.apns.total).toBe(total);
  const warm = service.apns.connections;
  await service.untilDone(one.app, await beginPush(service, one.app, {}));
  expect(service.apns.connections).toBe(warm);
  expect(service.apns.total).toBe(total + 1);
  await dispatcher.stack.close();
});

test('it does not connect for profiles unused in the last hour', async () => {
  const named = { appId: one.app.appId, connector: 'apns', profile: '_default', prod: 'prod' };
  const before = await findRecentProfiles(service.db, { sinceMs: sinceMs(), limit: 50 });
  expect(before).toEqual([named]);
  expect(
    await findRecentProfiles(service.db, { sinceMs: systemClock.now() + 1000, limit: 50 }),
  ).toEqual([]);
  await service.db.query(
    `INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, is_settled)
     SELECT n.app_id, n.id, 'apns', 'p' || i, '{}', true
       FROM notification n, generate_series(1, 15) AS i`,
  );
  expect(await findRecentProfiles(service.db, { sinceMs: sinceMs(), limit: 50 })).toHaveLength(16);
  expect(await findRecentProfiles(service.db, { sinceMs: sinceMs(), limit: 5 })).toHaveLength(5);
});

test('an unavailable or silent gateway does not prevent the start of a dispatcher', async () => {
  const gateway = await startRestartableGateway();
  const down = await createAppOn(service, gateway.own, 1);
  const first = await service.dispatch();
  await service.untilDone(down.app, await beginPush(service, down.app, {}));
  await first.stack.close();
  await gateway.stop();
  const { port } = new URL(String(gateway.own.endpoint));
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(Number(port), '127.0.0.1', resolve));
  warmUpLimits.totalMs = totalMs;
  onTestFinished(() => {
    warmUpLimits.totalMs = ampleMs;
  });
  // Neither gateway answers, so only the time limit lets the dispatcher start.
  const dispatcher = await service.dispatch();
  await service.untilDone(one.app, await beginPush(service, one.app, {}));
  await dispatcher.stack.close();
  silent.close();
});

test('a warm-up ends at its time limit, and when the dispatcher stops', async () => {
  const dispatcher: RunningDispatcher = await service.dispatch();
  const pool = { warmUp: () => new Promise<void>(() => undefined) };
  const deps = { ...dispatcher.deps, pool };
  await warmUp(deps, neverAborts, { ...warmUpLimits, totalMs: 50 });
  await warmUp(deps, AbortSignal.timeout(50));
  await dispatcher.stack.close();
});
