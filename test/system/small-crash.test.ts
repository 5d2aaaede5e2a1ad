import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { testEnvironment } from '../support/api.ts';
import { beginPush } from '../support/gateways/app-gateway.ts';
import { useTestService } from '../support/service.ts';

const children: ChildProcess[] = [];

const service = useTestService();
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

const pushes = 120;

/** Starts a dispatcher in a separate process; resolves when it is ready. */
async function startProcess(): Promise<ChildProcess> {
  const file = fileURLToPath(new URL('../../dispatcher/main.ts', import.meta.url));
  const env = { ...process.env, ...testEnvironment(service.databaseUrl) };
  const child = spawn(process.execPath, [file], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  children.push(child);
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the dispatcher ended with ${code}`)));
  });
  return child;
}

test('kill -9 of the dispatcher among many pushes to one device: none is lost, those that had ended are not repeated', {
  timeout: 120_000,
}, async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const tokens = await service.addIosInstallations(app, pushes);
  const first = await startProcess();
  const { rows: devices } = await service.db.query<{ object_id: string; device_token: string }>(
    'SELECT object_id, device_token FROM installation WHERE app_id = $1',
    [app.appId],
  );
  const begun: Promise<string>[] = [];
  for (const { object_id: objectId } of devices) begun.push(beginPush(service, app, { where: { objectId } }));
  await service.apns.waitFor(pushes / 4);
  const ended = new Promise((resolve) => first.once('exit', resolve));
  first.kill('SIGKILL');
  await ended;
  const seenBefore = new Map(tokens.map((token) => [token, service.apns.seen(token)]));
  const objectIds = await Promise.all(begun);
  const { rows: done } = await service.db.query<{ object_id: string }>(
    `SELECT request -> 'target' -> 'where' ->> 'objectId' AS object_id
       FROM notification WHERE app_id = $1 AND state = 'done'`,
    [app.appId],
  );
  await startProcess();
  for (const objectId of objectIds)
    expect(await service.untilDone(app, objectId, 90_000)).toMatchObject({ devices: 1, successes: 1 });
  expect(tokens.filter((token) => service.apns.seen(token) === 0)).toEqual([]);
  // Only pushes in flight are repeated, and once.
  const tokenOf = new Map(devices.map((device) => [device.object_id, device.device_token]));
  const endedTokens = new Set(done.map(({ object_id: id }) => tokenOf.get(id)));
  const repeated = tokens.filter((token) => service.apns.seen(token) > 1);
  expect(repeated.filter((token) => endedTokens.has(token))).toEqual([]);
  expect(repeated.filter((token) => seenBefore.get(token) === 0)).toEqual([]);
  expect(tokens.filter((token) => service.apns.seen(token) > 2)).toEqual([]);
});
