import { readdir, readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { FailureService } from '../../../api/services/operator/pushes/push-list.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { insertGatewayMessages } from '../../../shared/db/tables/receipts.ts';
import { remedyOf } from '../../../shared/domain/admin/remedies.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices, readBatches } from '../../support/tables.ts';
import { type ConsoleCall, callerOf } from './callers.ts';

const service = useTestService();
let app: App;
let viewer: ConsoleCall;
let objectId: string;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  viewer = await callerOf(service.api, 'viewer');
  const tokens = await service.addIosInstallations(app, 4);
  await changeDevices(service.db, app, { topic: 'com.example.other' }, tokens.slice(0, 2));
  await service.dispatch();
  const body = { data: { alert: 'x' } };
  objectId = (await service.api.request('POST', '/1.1/push', { app, master: true, body })).body
    .objectId;
  await service.untilDone(app, objectId);
});

const get = async (path: string) => {
  const { status, body } = await viewer(
    'GET',
    `/apps/${app.appId}/notifications/${objectId}${path}`,
  );
  expect([status, body]).toEqual([200, expect.any(Object)]);
  return body;
};

describe('the failures of a push', () => {
  test('have an entry for each device, in pages', async () => {
    const { results, next } = await get('/failures?limit=1');
    expect(results).toMatchObject([
      {
        objectId: expect.any(String),
        connector: 'apns',
        outcome: 'failed',
        reason: expect.any(String),
      },
    ]);
    expect(Object.keys(results[0])).not.toContain('installation');
    const rest = await get(`/failures?cursor=${next}`);
    expect(rest).toMatchObject({ results: [{ outcome: 'failed' }], next: null });
    expect((await get('/failures?connector=fcm')).results).toEqual([]);
    expect((await get('/failures?outcome=failed')).results).toHaveLength(2);
    const { reason } = results[0];
    expect((await get(`/failures?reason=${encodeURIComponent(reason)}`)).results).toHaveLength(2);
  });

  test('are counted by cause, with the code of a remedy', async () => {
    const { results } = await get('/failures/summary');
    expect(results).toMatchObject([
      {
        connector: 'apns',
        outcome: 'failed',
        n: 2,
        remedy: { code: 'noProfile' },
      },
    ]);
  });

  test('are refused for an unknown push or a wrong filter', async () => {
    const path = `/apps/${app.appId}/notifications`;
    for (const end of ['failures', 'failures/summary', 'timeline', 'messages'])
      expect((await viewer('GET', `${path}/nothing/${end}`)).body.code).toBe(101);
    for (const end of [
      'failures?outcome=lost',
      'failures?connector=x',
      'timeline?step=0',
      'failures?limit=201',
      'messages?limit=201',
    ])
      expect((await viewer('GET', `${path}/${objectId}/${end}`)).status).toBe(400);
  });
});

test('the message ids of gateways are listed in pages, oldest first', async () => {
  const sent = (await readBatches(service.db, app)).at(-1);
  const batch = {
    appId: app.appId,
    pushId: sent?.pushId ?? 0,
    batchId: sent?.id ?? 0,
    connector: 'fcm',
  };
  const ids = ['0:1', '0:2', '0:3'];
  const messages = ids.map((messageId) => ({ messageId, devices: 1 }));
  await insertGatewayMessages(service.db, [{ batch, messages }]);
  const { results, next } = await get('/messages?limit=2');
  expect(results).toMatchObject([
    { connector: 'fcm', messageId: '0:1', devices: 1 },
    { connector: 'fcm', messageId: '0:2', devices: 1 },
  ]);
  expect(await get(`/messages?limit=2&cursor=${next}`)).toMatchObject({
    results: [{ messageId: '0:3' }],
    next: null,
  });
});

test('the timeline adds up to the outcomes, with at most 600 steps', async () => {
  const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);
  const { connectors, stepMs } = await get('/timeline');
  expect(stepMs).toBe(1000);
  expect([sum(connectors.apns.sent), sum(connectors.apns.other)]).toEqual([2, 2]);
  await service.db.query(
    "UPDATE push_batch SET settled_at = now() + interval '3 days' WHERE id = (SELECT max(id) FROM push_batch)",
  );
  const long = await get('/timeline');
  expect(long.stepMs).toBeGreaterThan(1000);
  expect(long.connectors.apns.sent.length).toBeLessThanOrEqual(600);
  expect(sum(long.connectors.apns.sent) + sum(long.connectors.apns.other)).toBe(4);
});

test('the timeline leaves out what is settled while it is read', async () => {
  const { pushRecords } = service.api.services;
  let reads = 0;
  const db: Handle = {
    query: async (statement, values) => {
      reads += 1;
      if (reads === 2)
        await service.db.query(
          `UPDATE push_batch SET settled_at = settled_at + interval '9 days' WHERE id = (
             SELECT max(id) FROM push_batch)`,
        );
      return service.db.query(statement, values);
    },
  };
  const failures = new FailureService({ db }, pushRecords);
  const { connectors } = await failures.timeline(app.appId, objectId, 1);
  expect(reads).toBe(2);
  const { sent, other } = connectors.apns ?? { sent: [], other: [] };
  expect(sent.length).toBe(other.length);
  expect(sent.length).toBeLessThanOrEqual(600);
});

test('every reason in a response table that ends a recipient has its own remedy', async () => {
  const root = new URL('../../../connectors/', import.meta.url);
  const files = (await readdir(root, { recursive: true })).filter((name) =>
    /(apns|fcm|vendors\/\w+)\/responses\.ts$/.test(name),
  );
  expect(files.length).toBeGreaterThan(7);
  const general: string[] = [];
  for (const file of files) {
    const text = await readFile(new URL(file, root), 'utf8');
    const reasons = [
      ...text.matchAll(
        /reason: '([^']+)',\s*reaction: '(fail|fail_push|fail_topic|profile_error|renew_token)'/g,
      ),
    ]
      .map(([, reason = '']) => reason)
      .concat(
        [...text.matchAll(/(?:configError|invalidMessage)\(\s*'[^']+',\s*'([^']+)'/g)].map(
          ([, reason = '']) => reason,
        ),
      );
    expect(reasons.length, file).toBeGreaterThan(0);
    general.push(...reasons.filter((reason) => remedyOf('failed', reason).code === 'vendorCode'));
  }
  expect([...new Set(general)].toSorted()).toEqual([
    'refused_without_reason',
    'send_result_false',
    'unknown_reason',
  ]);
});
