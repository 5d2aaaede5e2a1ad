import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestResponse } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
let app: App;
let other: App;
beforeAll(async () => {
  app = await api.createApp();
  other = await api.createApp();
});

const push = (from: App, body: object = {}): Promise<TestResponse> =>
  api.request('POST', '/1.1/push', {
    app: from,
    master: true,
    body: { data: { alert: 'Hello' }, ...body },
  });

const acceptedBy = (replies: TestResponse[]): string[] =>
  replies.filter(({ status }) => status === 200).map(({ body }) => body.objectId);

describe('concurrent pushes', () => {
  test('have a record and a job each, with their own content', async () => {
    const alerts = Array.from({ length: 60 }, (_, i) => `alert ${i}`);
    const replies = await Promise.all(
      alerts.map((alert, i) =>
        push(i % 2 ? app : other, { data: { alert }, notification_id: `n${i}` }),
      ),
    );
    const ids = acceptedBy(replies);
    expect(new Set(ids).size).toBe(60);
    const { rows } = await api.db.query<{
      object_id: string;
      name: string;
      alert: string;
      jobs: number;
    }>(
      `SELECT n.object_id, n.notification_id AS name, n.request -> 'data' ->> 'alert' AS alert,
        count(j.id) AS jobs
         FROM notification n JOIN pgboss.job j
           ON j.name = 'plan' AND j.data = jsonb_build_object('appId', n.app_id, 'pushId', n.id)
        WHERE n.object_id = ANY($1) AND n.app_id = CASE WHEN right(n.notification_id,
          1) ~ '[13579]' THEN $2 ELSE $3 END
        GROUP BY n.app_id, n.id ORDER BY array_position($1, n.object_id)`,
      [ids, app.appId, other.appId],
    );
    expect(rows).toEqual(
      ids.map((objectId, i) => ({
        object_id: objectId,
        name: `n${i}`,
        alert: `alert ${i}`,
        jobs: 1,
      })),
    );
  });

  test('with one req_id are one push, except pushes of another app', async () => {
    const all = Array.from({ length: 40 }, (_, i) =>
      push(i % 4 ? app : other, { req_id: 'together' }),
    );
    const replies = await Promise.all(all);
    const first = await push(app, { req_id: 'together' });
    expect(new Set(acceptedBy(replies)).size).toBe(2);
    expect(acceptedBy(replies)).toContain(first.body.objectId);
    const { rows } = await api.db.query<{ n: number }>(
      'SELECT count(*) AS n FROM notification WHERE object_id = ANY($1)',
      [acceptedBy(replies)],
    );
    expect(rows[0]?.n).toBe(2);
  });

  test('are accepted even if one of them is refused', async () => {
    const texts = Array.from({ length: 30 }, (_, i) => (i % 10 === 5 ? 'a\u0000b' : `a${i}`));
    const replies = await Promise.all(texts.map((k) => push(app, { data: { alert: 'x', k } })));
    expect(acceptedBy(replies)).toHaveLength(27);
    expect(replies[5]).toMatchObject({ status: 400, body: { code: 111 } });
  });

  test('are accepted even if one of them waits for a lock', async () => {
    const repeated = await api.db.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO request_ledger (app_id, req_id, object_id, accepted_at)
          VALUES ($1, 'held', 'before', now())`,
        [app.appId],
      );
      const waitingReply = push(app, { req_id: 'held' });
      const others = await Promise.all(Array.from({ length: 20 }, () => push(other)));
      expect(acceptedBy(others)).toHaveLength(20);
      return { waitingReply };
    });
    expect(await repeated.waitingReply).toMatchObject({
      status: 200,
      body: { objectId: 'before' },
    });
  });

  test('are accepted up to the rate of their app', async () => {
    const slow = await api.createApp({ pushCallsPerMinute: 5 });
    const replies = await Promise.all(Array.from({ length: 20 }, () => push(slow)));
    expect(acceptedBy(replies)).toHaveLength(5);
    const refused = replies.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(15);
    for (const { headers } of refused)
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(50);
    const { rows } = await api.db.query<{ calls: number; peak: number }>(
      'SELECT calls, peak_calls_per_minute AS peak FROM usage_day WHERE app_id = $1',
      [slow.appId],
    );
    expect(rows).toEqual([{ calls: 5, peak: 5 }]);
  });

  test('are counted even if the count of one app is locked', async () => {
    await push(app);
    const locked = await api.db.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM usage_day WHERE app_id = $1 FOR UPDATE', [app.appId]);
      const waitingReply = push(app);
      const others = await Promise.all(Array.from({ length: 20 }, () => push(other)));
      expect(acceptedBy(others)).toHaveLength(20);
      return { waitingReply };
    });
    expect((await locked.waitingReply).status).toBe(200);
  });
});
