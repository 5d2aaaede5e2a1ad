import { expect, test } from 'vitest';
import { cleanOnce } from '../../../dispatcher/background/cleaner.ts';
import { systemClock } from '../../../shared/clock.ts';
import { enqueueMessage } from '../../../shared/db/tables/channel-enqueue.ts';
import {
  deleteOldPushes,
  deleteSurplusFailures,
  saveFailureCount,
} from '../../../shared/db/tables/pushes.ts';
import { createMetrics } from '../../../shared/metrics.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
const rows = 500;

/** Inserts a push that ended eight days ago, with failures. Returns its id. */
async function insertOldPush(appId: string, failures: number): Promise<number> {
  const { rows: pushes } = await api.db.query<{ id: number }>(
    `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time,
      expires_at, created_at, finished_at)
     SELECT $1, md5(random()::text), 'n', 'done', '{}', 'prod', at, at, at, at
       FROM (SELECT now() - interval '8 days' AS at) AS t
     RETURNING id`,
    [appId],
  );
  const id = pushes[0]?.id ?? 0;
  await api.db.query(
    `INSERT INTO push_failure (app_id, push_id, connector, installation, outcome, status, reason)
     SELECT $1, $2, 'apns', i, 'failed', 500, 'down' FROM generate_series(1, $3::int) AS i`,
    [appId, id, failures],
  );
  return id;
}

async function countOf(table: string, appId: string): Promise<number> {
  const { rows: counted } = await api.db.query<{ n: number }>(
    `SELECT count(*) AS n FROM ${table} WHERE app_id = $1`,
    [appId],
  );
  return counted[0]?.n ?? 0;
}

test('a push with many failures is deleted in passes of 10,000 rows, its record last', async () => {
  const { appId } = await api.createApp();
  await insertOldPush(appId, 25_000);
  const before = new Date(systemClock.now() - 7 * 86_400_000);
  const left: number[][] = [];
  for (let pass = 0; pass < 3; pass += 1) {
    const deleted = await deleteOldPushes(api.db, before, rows);
    left.push([
      deleted,
      await countOf('push_failure', appId),
      await countOf('notification', appId),
    ]);
  }
  expect(left).toEqual([
    [rows, 15_000, 1],
    [rows, 5000, 1],
    [1, 0, 0],
  ]);
});

test('two concurrent cleaners delete each push once', async () => {
  const { appId } = await api.createApp();
  for (let i = 0; i < 4; i += 1) await insertOldPush(appId, 10);
  const before = new Date(systemClock.now() - 7 * 86_400_000);
  const passes = await Promise.all([1, 2].map(() => deleteOldPushes(api.db, before, 3)));
  expect(passes.reduce((sum, n) => sum + n, 0)).toBeGreaterThanOrEqual(3);
  while ((await deleteOldPushes(api.db, before, 3)) > 0);
  expect([await countOf('push_failure', appId), await countOf('notification', appId)]).toEqual([
    0, 0,
  ]);
});

test('above the limit of an app, the failures of its oldest push are deleted first', async () => {
  const apps = [await api.createApp(), await api.createApp()];
  const left = () => Promise.all(apps.map(({ appId }) => countOf('push_failure', appId)));
  for (const [i, { appId }] of apps.entries())
    for (const n of [30, 20 - 15 * i])
      await saveFailureCount(api.db, { appId, id: await insertOldPush(appId, n) }, n);
  expect(await deleteSurplusFailures(api.db, { keptPerApp: 40, rows: 6 })).toBe(6);
  expect(await left()).toEqual([44, 35]);
  expect(await deleteSurplusFailures(api.db, { keptPerApp: 40, rows: 6 })).toBe(4);
  expect(await deleteSurplusFailures(api.db, { keptPerApp: 40, rows: 6 })).toBe(0);
  expect(await left()).toEqual([40, 35]);
  while ((await deleteOldPushes(api.db, new Date(systemClock.now() - 7 * 86_400_000), rows)) > 0);
  expect(await countOf('failure_count', apps[0]?.appId ?? '')).toBe(0);
});

test('after the failures of the oldest push, those of the next push are deleted', async () => {
  const { appId } = await api.createApp();
  for (const n of [5, 10, 35, 10])
    await saveFailureCount(api.db, { appId, id: await insertOldPush(appId, n) }, n);
  const passes: number[] = [];
  for (let i = 0; i < 4; i += 1)
    passes.push(await deleteSurplusFailures(api.db, { keptPerApp: 40 }));
  expect(passes).toEqual([5, 10, 5, 0]);
  expect(await countOf('push_failure', appId)).toBe(40);
});

test('a failed deletion is reported and delays no other deletion', async () => {
  const { appId } = await api.createApp();
  await insertOldPush(appId, 1);
  await api.db.query(
    'INSERT INTO request_ledger (app_id, req_id, object_id, accepted_at) VALUES ($1, $2, $3, $4)',
    [...[appId, 'old', 'x'], new Date(systemClock.now() - 86_400_000)],
  );
  await api.db.query('ALTER TABLE push_failure RENAME TO push_failure_away');
  try {
    await expect(
      cleanOnce({ db: api.db, clock: systemClock, metrics: createMetrics() }, rows),
    ).rejects.toThrow(/push_failure/);
    expect(await countOf('request_ledger', appId)).toBe(0);
    expect(await countOf('notification', appId)).toBe(1);
  } finally {
    await api.db.query('ALTER TABLE push_failure_away RENAME TO push_failure');
  }
  await cleanOnce({ db: api.db, clock: systemClock, metrics: createMetrics() }, rows);
  expect(await countOf('notification', appId)).toBe(0);
});

test('expired messages of the device channel are deleted and counted, one per device', async () => {
  const { appId } = await api.createApp();
  const expiresAt = new Date(systemClock.now() - 3_600_000);
  const message = { appId, pushId: 1, content: {}, expiresAt, installations: [1, 2, 3] };
  expect(await enqueueMessage(api.db, message)).toBe(3);
  const metrics = createMetrics();
  await cleanOnce({ db: api.db, clock: systemClock, metrics }, rows);
  const { values } = await metrics.channelMessages.get();
  expect(values.find(({ labels }) => labels.event === 'expired')?.value).toBe(3);
});
