import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertBatches } from '../../../shared/db/tables/batches.ts';
import { readProgress, readTotals } from '../../../shared/db/tables/push-progress.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { outcomeCode, retriedCode } from '../../../shared/domain/outcome.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { readPush } from '../../support/tables.ts';

let service: TestService;
beforeAll(async () => {
  // Few streams, so that a batch takes a while.
  service = await startTestService({ gateway: { maxStreams: 5 } });
});
afterAll(() => service?.close());

async function progress(app: App, objectId: string) {
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/progress`;
  return (await service.api.request('GET', path, { admin: true })).body;
}

test('progress moves during the only batch, and its end equals the record', async () => {
  await service.dispatch();
  service.apns.misbehave({ kind: 'slow', delayMs: 100 });
  const { app } = await createAppOn(service, null, 200);
  const objectId = await beginPush(service, app);
  const seen: { sent: number; perSecond: number; secondsLeft: number | null }[] = [];
  const check = async () => {
    const { outcomes, connectors, perSecond, secondsLeft } = await progress(app, objectId);
    const { sent = 0 } = outcomes;
    expect(connectors.apns?.sent ?? 0).toBe(sent);
    if (sent > (seen.at(-1)?.sent ?? 0)) seen.push({ sent, perSecond, secondsLeft });
    return sent;
  };
  const { id } = await readPush(service.db, app, objectId);
  await expect.poll(check, { interval: 20, timeout: 20_000 }).toBeGreaterThan(60);
  // The whole batch is in flight. No batch is settled yet.
  expect(await readTotals(service.db, { appId: app.appId, id })).toEqual({
    totals: {},
    repeats: 0,
  });
  expect(seen.length).toBeGreaterThan(2);
  expect(seen.at(-1)?.perSecond).toBeGreaterThan(0);
  expect(seen.at(-1)?.secondsLeft).toBeGreaterThan(0);
  service.apns.behave();
  const record = await service.untilDone(app, objectId);
  expect(await progress(app, objectId)).toMatchObject({ outcomes: { sent: 200 }, secondsLeft: 0 });
  expect(record).toMatchObject({ successes: 200 });
});

test('recipients in a retry batch are counted only there', async () => {
  const app = await service.api.createApp();
  const pushId = 77;
  const [sent, failed] = [outcomeCode('sent'), outcomeCode('failed')];
  const batch = (codes: number[]) => ({
    connector: 'apns' as const,
    profile: '_default',
    recipients: codes.map((_, i) => i + 1),
    badges: null,
    attempt: 0,
    hasJob: true,
    settled: { codes: Uint8Array.from(codes), totals: {} },
  });
  const write = async (codes: number[], moved: number[] | null = null) => {
    const [id] = await insertBatches(service.db, app.appId, pushId, [batch(codes)]);
    const change =
      'UPDATE push_batch SET is_settled = false, totals = NULL, moved = $2 WHERE id = $1';
    await service.db.query(change, [id, moved]);
  };
  await write([sent, sent, 0, retriedCode, failed], [0, 3]);
  await insertBatches(service.db, app.appId, pushId, [
    {
      ...batch([sent]),
      connector: 'fcm',
      settled: { codes: Uint8Array.of(sent), totals: { sent: 1 } },
    },
  ]);
  const readAll = () => readProgress(service.db, app.appId, pushId);
  const read = async () => (await readAll()).totals;
  expect((await readAll()).open).toEqual({ apns: 1 });
  expect(await read()).toEqual({ apns: { sent: 1, failed: 1 }, fcm: { sent: 1 } });
  for (let i = 0; i < 300; i += 1) await write([failed]);
  expect(await read()).toEqual({ apns: { sent: 1, failed: 256 }, fcm: { sent: 1 } });
});
