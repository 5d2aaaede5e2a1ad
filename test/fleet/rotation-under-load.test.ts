import { expect, test } from 'vitest';
import { type ApnsCredentials, createApnsCredentials } from '../../ops/sandbox/apns/server.ts';
import { keyIdOf } from '../support/gateways/key-id.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';
import { readBatches } from '../support/tables.ts';

/** Number of recipients of the push during which the rotations happen. */
const devices = Number(process.env.ROTATION_DEVICES ?? 200_000);
const maxMs = 300_000;

const [first, second, wrong] = [
  createApnsCredentials(),
  createApnsCredentials(),
  createApnsCredentials(),
];
const accepted = new Map<string, number>();
const byKey = new Map<string, number>();
const refused: string[] = [];
const add = (counts: Map<string, number>, name: string) =>
  counts.set(name, (counts.get(name) ?? 0) + 1);

const service = useTestService({
  gateway: {
    keys: [first, second],
    onRequest: (request) => {
      if (request.status !== 200) refused.push(request.reason);
      else {
        add(accepted, request.token);
        add(byKey, keyIdOf(request.headers));
      }
    },
  },
});
const dispatchers = useDispatcherProcesses(service);

test('a push to 200,000 devices with three rotations reaches each once, without a failure', {
  timeout: maxMs,
}, async () => {
  const app = await service.api.createApp();
  const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
  const using = ({ publicKey: _, ...key }: ApnsCredentials) => ({
    auth: 'token',
    endpoint: service.apns.url,
    ca: service.apns.ca,
    ...key,
  });
  const put = (rest: string, key: ApnsCredentials) =>
    service.api.request('PUT', path + rest, { admin: true, body: using(key) });
  const candidate = async () =>
    (await service.api.request('GET', `${path}/candidate`, { admin: true })).body;
  /** Stages a key and waits until the canary has decided about it. Returns the decision. */
  const rotateTo = async (key: ApnsCredentials) => {
    expect((await put('/candidate', key)).body).toMatchObject({ state: 'canary' });
    await expect
      .poll(async () => (await candidate()).state, { interval: 50, timeout: maxMs })
      .not.toBe('canary');
    return candidate();
  };

  expect((await put('', first)).status).toBe(200);
  await dispatchers.start();
  await dispatchers.start();
  const tokens = await service.addIosInstallations(app, devices);
  // A slow machine takes 5 seconds per decision, and the push must not end before the third
  // decision.
  const body = { data: { alert: 'Hello' }, flow_control: 2000 };
  const { objectId } = (await service.api.request('POST', '/1.1/push', { app, master: true, body }))
    .body;
  await service.apns.waitFor(1000);
  const promoted = { state: 'promoted', refused: 0, worse: 0 };
  expect(await rotateTo(second)).toMatchObject(promoted);
  // The gateway does not know this key. These are the only refusals of the push.
  expect(await rotateTo(wrong)).toMatchObject({
    state: 'rolled_back',
    reason: 'refused',
    accepted: 0,
  });
  expect(await rotateTo(first)).toMatchObject(promoted);
  // All rotations happened during the push.
  expect(service.apns.accepted).toBeLessThan(devices);
  const pace = { flow_control: 8000 };
  const pathOfPace = `/console/api/apps/${app.appId}/notifications/${objectId}/pace`;
  expect((await service.api.request('POST', pathOfPace, { admin: true, body: pace })).status).toBe(
    200,
  );
  const record = await service.untilDone(app, objectId, maxMs);
  expect(record).toMatchObject({ status: 'done', devices, outcomes: { sent: devices } });
  expect(tokens.filter((token) => accepted.get(token) !== 1)).toEqual([]);
  expect([...byKey.keys()].toSorted()).toEqual([first.keyId, second.keyId].toSorted());
  expect(new Set(refused)).toEqual(new Set(['InvalidProviderToken']));
  expect((await readBatches(service.db, app)).filter(({ attempt }) => attempt > 0)).toEqual([]);
});
