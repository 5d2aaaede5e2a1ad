import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../shared/db/pool.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { deliverJob } from '../../../shared/queue/jobs.ts';
import { FairPriorities } from '../../../shared/queue/push-jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { changeDevices, readPush } from '../../support/tables.ts';

let service: TestService;

beforeAll(async () => {
  // Few streams, so that a large push takes a while.
  service = await startTestService({ gateway: { maxStreams: 10 } });
  await service.dispatch();
});
afterAll(() => service?.close());
afterEach(() => service.apns.behave());

const appWithIos = (count: number) => createAppOn(service, null, count);
const begin = (app: App, body?: object) => beginPush(service, app, body);

async function untilPlanned(app: App, objectId: string): Promise<void> {
  const isPlanned = async () => (await readPush(service.db, app, objectId)).isPlanned;
  await expect.poll(isPlanned, { timeout: 20_000 }).toBe(true);
}

const statusOf = async (app: App, objectId: string) =>
  (await service.api.request('GET', `/1.1/notifications/${objectId}`, { app })).body.status;

describe('while a large push is being sent', { timeout: 120_000 }, () => {
  test('a smaller push of another app gets its share and is done first', async () => {
    const large = await appWithIos(6000);
    const small = await appWithIos(1100);
    service.apns.misbehave({ kind: 'slow', delayMs: 50 });
    const first = await begin(large.app);
    await untilPlanned(large.app, first);
    const second = await begin(small.app);
    await service.untilDone(small.app, second);
    expect(await statusOf(large.app, first)).toBe('in-queue');
    service.apns.behave();
    await service.untilDone(large.app, first);
  });

  test('a push to a single device of the same app is sent immediately', async () => {
    const { app, tokens } = await appWithIos(3000);
    service.apns.misbehave({ kind: 'slow', delayMs: 60 });
    await changeDevices(service.db, app, { channels: ['vip'] }, tokens.slice(0, 1));
    const first = await begin(app);
    await untilPlanned(app, first);
    await service.untilDone(app, await begin(app, { where: { channels: 'vip' } }));
    expect(await statusOf(app, first)).toBe('in-queue');
    service.apns.behave();
    await service.untilDone(app, first);
  });
});

describe('priorities on a delivery queue', () => {
  test('batches of two apps alternate, and pushes of one app share its part', async () => {
    // No dispatcher works on this database.
    const database = await createTestDatabase();
    const db = new Database({ url: database.url, applicationName: 'turns' });
    const queue = new JobQueue(db, silentLog, { supervise: false });
    await queue.start();
    const kind = deliverJob('vendor_f');
    const put = (appId: string, pushId: number, count: number) =>
      db.transaction(async (tx) => {
        const priority = await new FairPriorities(appId).next(tx, kind, count);
        const jobs = Array.from({ length: count }, (_, batchId) => ({ appId, pushId, batchId }));
        await queue.send(kind, jobs, { tx, priority });
      });
    await put('a', 1, 6);
    const taken = (await queue.fetch(kind, 2)).map((job) => job.data.appId);
    await put('b', 2, 3);
    for (let left = 7; left > 0; left -= 1)
      taken.push(...(await queue.fetch(kind, 1)).map((job) => job.data.appId));
    expect(taken.join('')).toBe('aaabababa');
    await queue.stop();
    await db.close();
    await database.drop();
  });
});
