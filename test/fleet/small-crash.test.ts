import { expect, test } from 'vitest';
import { beginPush } from '../support/gateways/app-gateway.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';
import { readDevices } from '../support/tables.ts';

const service = useTestService();
const dispatchers = useDispatcherProcesses(service);

const pushes = 120;

test('kill -9 of the dispatcher loses no single-device push, and repeats no finished one', {
  timeout: 120_000,
}, async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const tokens = await service.addIosInstallations(app, pushes);
  const first = await dispatchers.start();
  const devices = await readDevices(service.db, app);
  const started: Promise<string>[] = [];
  for (const { objectId } of devices)
    started.push(beginPush(service, app, { where: { objectId } }));
  await service.apns.waitFor(pushes / 4);
  const ended = new Promise((resolve) => first.once('exit', resolve));
  first.kill('SIGKILL');
  await ended;
  const seenBefore = new Map(tokens.map((token) => [token, service.apns.seen(token)]));
  const objectIds = await Promise.all(started);
  const { rows: done } = await service.db.query<{ object_id: string }>(
    `SELECT request -> 'target' -> 'where' ->> 'objectId' AS object_id
       FROM notification WHERE app_id = $1 AND state = 'done'`,
    [app.appId],
  );
  await dispatchers.start();
  for (const objectId of objectIds)
    expect(await service.untilDone(app, objectId, 90_000)).toMatchObject({
      devices: 1,
      successes: 1,
    });
  expect(tokens.filter((token) => service.apns.seen(token) === 0)).toEqual([]);
  // Only pushes in flight are repeated, and only once.
  const tokenOf = new Map(devices.map((device) => [device.objectId, device.deviceToken ?? '']));
  const endedTokens = new Set(done.map(({ object_id: id }) => tokenOf.get(id)));
  const repeated = tokens.filter((token) => service.apns.seen(token) > 1);
  expect(repeated.filter((token) => endedTokens.has(token))).toEqual([]);
  expect(repeated.filter((token) => seenBefore.get(token) === 0)).toEqual([]);
  expect(tokens.filter((token) => service.apns.seen(token) > 2)).toEqual([]);
});
