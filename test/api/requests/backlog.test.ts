import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi } from '../../../api/start.ts';
import { systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let api: Awaited<ReturnType<typeof startApi>>;
let app: App;
/** Clock that the test moves, because a count is cached for a second. */
let nowMs = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  api = await startApi(testConfig(database.url), silentLog, { clock, maxWaitingPushes: 3 });
  app = await api.services.apps.create({ name: 'Busy', plan: 'commercial', options: {} });
});
afterAll(async () => {
  await api?.stack.close();
  await database?.drop();
});

async function push(body: object) {
  nowMs += 1000;
  const reply = await fetch(`http://127.0.0.1:${api.port}/1.1/push`, {
    method: 'POST',
    headers: {
      'X-LC-Id': app.appId,
      'X-LC-Key': `${app.masterKey},master`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ data: { alert: 'Hello' }, ...body }),
  });
  return {
    status: reply.status,
    retryAfter: reply.headers.get('retry-after'),
    body: await reply.json(),
  };
}

test('pushes are refused and not stored while too many wait for a dispatcher', async () => {
  // A scheduled push waits for its time, not for a dispatcher.
  const later = await push({ push_time: new Date(Date.now() + 3_600_000).toISOString() });
  expect(later.status).toBe(200);
  for (let i = 0; i < 3; i += 1) expect((await push({})).status).toBe(200);
  const refused = await push({});
  expect(refused).toMatchObject({ status: 429, retryAfter: '10', body: { code: 429 } });
  const records = await api.services.pushRecords.list(app, {
    limit: 10,
    skip: 0,
    oldestFirst: true,
    isCounted: true,
  });
  expect(records).toMatchObject({ count: 4 });
});
