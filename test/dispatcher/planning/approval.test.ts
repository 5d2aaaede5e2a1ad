import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type ConsoleCall, callerOf } from '../../api/console/callers.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let sender: ConsoleCall;
let second: ConsoleCall;

beforeAll(async () => {
  await service.dispatch();
  sender = await callerOf(service.api, 'operator');
  second = await callerOf(service.api, 'operator');
});

async function appWith(devices: number): Promise<{ app: App; tokens: string[] }> {
  const app = await service.api.createApp({ approvalAboveDevices: 3 });
  await service.addApnsProfile(app);
  return { app, tokens: await service.addIosInstallations(app, devices) };
}

const data = { alert: 'To many' };
const pathOf = ({ appId }: App, objectId: string, verb = '') =>
  `/apps/${appId}/notifications/${objectId}${verb && `/${verb}`}`;

const send = async ({ appId }: App, body: object = {}): Promise<string> =>
  (await sender('POST', `/apps/${appId}/push`, { body: { where: {}, data, ...body } })).body.objectId;

/** Waits until a push waits for its approval. */
async function untilWaiting(app: App, objectId: string): Promise<void> {
  const read = async () => (await sender('GET', pathOf(app, objectId))).body;
  await expect
    .poll(read, { interval: 20 })
    .toMatchObject({ status: 'paused', approval: { above: 3, givenBy: null, givenAt: null } });
}

const requestsTo = (tokens: string[]) => tokens.reduce((n, token) => n + service.apns.seen(token), 0);

describe('a push to more devices than the app allows without approval', () => {
  test('is sent only when a second person approves it', async () => {
    const { app, tokens } = await appWith(4);
    const objectId = await send(app);
    await untilWaiting(app, objectId);
    expect((await sender('POST', pathOf(app, objectId, 'approve'))).status).toBe(403);
    expect((await second('POST', pathOf(app, objectId, 'resume'))).status).toBe(409);
    expect(requestsTo(tokens)).toBe(0);
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(200);
    expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 4, successes: 4 });
    expect((await sender('GET', pathOf(app, objectId))).body.approval).toMatchObject({
      givenBy: expect.any(String),
    });
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(409);
  });

  test('waits too when the app sends it with its own keys, and any operator approves it', async () => {
    const { app } = await appWith(4);
    const call = { app, master: true, body: { where: {}, data } };
    const { objectId } = (await service.api.request('POST', '/1.1/push', call)).body;
    await untilWaiting(app, objectId);
    expect((await sender('POST', pathOf(app, objectId, 'approve'))).status).toBe(200);
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 4 });
  });

  test('can be approved before its time, and is cancelled while it waits', async () => {
    const { app, tokens } = await appWith(4);
    const later = await send(app, { push_time: new Date(Date.now() + 3_600_000).toISOString() });
    expect((await second('POST', pathOf(app, later, 'approve'))).status).toBe(200);
    await service.db.query('UPDATE scheduled_push SET push_time = now() WHERE app_id = $1', [app.appId]);
    expect(await service.untilDone(app, later)).toMatchObject({ successes: 4 });
    const waiting = await send(app);
    await untilWaiting(app, waiting);
    expect((await sender('POST', pathOf(app, waiting, 'cancel'))).status).toBe(200);
    expect((await second('POST', pathOf(app, waiting, 'approve'))).status).toBe(409);
    expect(requestsTo(tokens)).toBe(4);
  });

  test('is counted when it expires before', async () => {
    const { app, tokens } = await appWith(4);
    const objectId = await send(app);
    await untilWaiting(app, objectId);
    await service.db.query('UPDATE notification SET expires_at = now() WHERE object_id = $1', [objectId]);
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { expired: 4 } });
    expect(requestsTo(tokens)).toBe(0);
  });
});

test('a push to as many devices as allowed needs no approval', async () => {
  const { app } = await appWith(3);
  expect(await service.untilDone(app, await send(app))).toMatchObject({ successes: 3 });
});
