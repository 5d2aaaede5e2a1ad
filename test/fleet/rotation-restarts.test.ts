import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { CanaryBatches } from '../../dispatcher/sending/canary.ts';
import { createApnsCredentials } from '../../ops/sandbox/apns/server.ts';
import { systemClock } from '../../shared/clock.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { startTestApi } from '../support/api.ts';
import { keyIdOf } from '../support/gateways/key-id.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';
import { insertDevices } from '../support/tables.ts';

const [first, second, unknown] = [
  createApnsCredentials(),
  createApnsCredentials(),
  createApnsCredentials(),
];
/** Another key of the first team. */
const third = { ...createApnsCredentials(), teamId: first.teamId };
const service = useTestService({ gateway: { keys: [first, second, third], keptRequests: 10_000 } });
const dispatchers = useDispatcherProcesses(service);

const pathOf = ({ appId }: App, profile = '_default') =>
  `/console/api/apps/${appId}/profiles/apns/${profile}`;
const using = ({ publicKey: _, ...key }: typeof first) => ({
  auth: 'token',
  endpoint: service.apns.url,
  ca: service.apns.ca,
  ...key,
});
const put = async (path: string, key: typeof first) =>
  (await service.api.request('PUT', path, { admin: true, body: using(key) })).body;
const candidate = async (
  app: App,
  profile?: string,
  api: Pick<typeof service.api, 'request'> = service.api,
) => (await api.request('GET', `${pathOf(app, profile)}/candidate`, { admin: true })).body;

/** Creates an app with a profile that uses a key. */
async function appUsing(key: typeof first): Promise<App> {
  const app = await service.api.createApp({ pushCallsPerMinute: 9600 });
  await put(pathOf(app), key);
  return app;
}

async function push(
  app: App,
  where: object,
  api: Pick<typeof service.api, 'request'> = service.api,
) {
  const body = { where, data: { alert: 'x' } };
  const { objectId } = (await api.request('POST', '/1.1/push', { app, master: true, body })).body;
  return service.untilDone(app, objectId);
}

/**
 * Pushes to a device until a dispatcher has tried the candidate. A dispatcher learns of it within
 * half a second.
 */
async function untilTried(app: App, deviceToken: string): Promise<void> {
  do expect(await push(app, { deviceToken })).toMatchObject({ successes: 1 });
  while ((await candidate(app)).asked === 0);
}

test('a canary continues after all dispatchers are killed and the api restarts', async () => {
  const app = await appUsing(first);
  const [one = ''] = await service.addIosInstallations(app, 1);
  const many = await service.addIosInstallations(app, 1200, { tag: 'many' });
  const killed = await dispatchers.start();
  expect(await put(`${pathOf(app)}/candidate`, second)).toMatchObject({ state: 'canary' });
  await untilTried(app, one);
  const ended = once(killed, 'exit');
  killed.kill('SIGKILL');
  await ended;
  const api = await startTestApi({ databaseUrl: service.databaseUrl });
  const before = await candidate(app, undefined, api);
  expect(before).toMatchObject({ state: 'canary', asked: 1, accepted: 1, batches: 1 });
  await dispatchers.start();
  // The next batch of the candidate is the hundredth after its first. Then follows a batch with the
  // missing recipients.
  while ((await candidate(app, undefined, api)).batchesSeen < 100)
    await Promise.all(Array.from({ length: 10 }, () => push(app, { deviceToken: one }, api)));
  while ((await candidate(app, undefined, api)).state === 'canary') {
    expect(await push(app, { tag: 'many' }, api)).toMatchObject({ successes: many.length });
    expect((await candidate(app, undefined, api)).batchesSeen).toBeLessThan(1000);
  }
  expect(await candidate(app, undefined, api)).toMatchObject({
    state: 'promoted',
    refused: 0,
    worse: 0,
  });
  await api.close();
});

test('of two candidates that are staged at the same time one stays, which decides', async () => {
  const app = await appUsing(first);
  const [one = ''] = await service.addIosInstallations(app, 1);
  const path = `${pathOf(app)}/candidate`;
  await Promise.all([second, unknown, second, unknown].map((key) => put(path, key)));
  const { stagedAt } = await candidate(app);
  await untilTried(app, one);
  const rotation = await candidate(app);
  expect(rotation).toMatchObject({ stagedAt, asked: 1 });
  const isKnown = service.apns.requests.some(({ headers }) => keyIdOf(headers) === second.keyId);
  expect([rotation.state, rotation.reason]).toEqual(
    rotation.accepted === 1 && isKnown ? ['canary', null] : ['rolled_back', 'refused'],
  );
});

test('two profiles of an app rotate at once, each with its own decision', async () => {
  const app = await appUsing(first);
  await put(pathOf(app, 'other_team'), second);
  const ofTeam = ({ teamId }: typeof first, mark: string) =>
    insertDevices(
      service.db,
      app,
      Array.from({ length: 1000 }, () => ({
        deviceType: 'ios',
        deviceToken: mark + randomBytes(32).toString('hex'),
        topic: 'com.example.app',
        teamId,
        fields: { tag: 'two' },
      })),
    );
  await Promise.all([ofTeam(first, 'a'), ofTeam(second, 'b')]);
  const wrong = { ...unknown, teamId: second.teamId };
  await Promise.all([
    put(`${pathOf(app)}/candidate`, third),
    put(`${pathOf(app, 'other_team')}/candidate`, wrong),
  ]);
  const states = async () => [
    (await candidate(app)).state,
    (await candidate(app, 'other_team')).state,
  ];
  do {
    const { outcomes } = await push(app, { tag: 'two' });
    expect(outcomes).toEqual({ sent: 2000 });
  } while ((await states()).includes('canary'));
  expect(await states()).toEqual(['promoted', 'rolled_back']);
});

test('a batch interrupted before its first request leaves its place', async () => {
  const app = await appUsing(first);
  const { appId } = app;
  const { stagedAt } = await put(`${pathOf(app)}/candidate`, second);
  const batches = new CanaryBatches(service.db, systemClock);
  const canary = { appId, connector: 'apns', name: '_default', stagedAt: new Date(stagedAt) };
  const none = { asked: 0, accepted: 0, refused: 0, worse: 0, detail: null };
  expect(await batches.takesNext(canary)).toBe(true);
  await batches.record(canary, none);
  expect(await batches.takesNext(canary)).toBe(true);
  await batches.record(canary, { ...none, asked: 1, accepted: 1 });
  expect(await batches.takesNext(canary)).toBe(false);
});
