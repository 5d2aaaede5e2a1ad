/** A person is erased while a push is sent to the person's devices. */
import { expect, test } from 'vitest';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
const count = 600;

test('a push continues, and each device ends in one outcome', { timeout: 120_000 }, async () => {
  await service.dispatch();
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const user = await service.api.request('POST', '/1.1/users', {
    app,
    body: { username: 'ada', password: 'secret' },
  });
  const objectId = String(user.body.objectId);
  const pointer = { __type: 'Pointer', className: '_User', objectId };
  await service.addIosInstallations(app, count, { user: pointer });
  await service.addIosInstallations(app, count);
  service.apns.misbehave({ kind: 'hang' });
  const push = await beginPush(service, app, { where: {}, data: { alert: 'Hello' } });
  await expect.poll(() => service.apns.total, { timeout: 30_000 }).toBeGreaterThan(0);
  const path = `/console/api/apps/${app.appId}/users/${objectId}?everything=true`;
  const erased = await service.api.request('DELETE', path, { admin: true });
  expect(erased).toMatchObject({ status: 200, body: { erased: { installations: count } } });
  service.apns.behave();
  const record = await service.untilDone(app, push, 90_000);
  expect(record).toMatchObject({ status: 'done', devices: 2 * count });
  const outcomes = Object.values(record.outcomes as Record<string, number>);
  expect(outcomes.reduce((sum, n) => sum + n, 0)).toBe(2 * count);
  // Failures that are recorded after the erasure name no device.
  const named = await service.db.query(
    `SELECT f.object_id FROM push_failure f WHERE f.app_id = $1 AND f.object_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM installation i WHERE i.app_id = $1 AND i.id = f.installation)`,
    [app.appId],
  );
  expect(named.rows).toEqual([]);
});
