import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RetryGroups } from '../../dispatcher/retry-groups.ts';
import type { App } from '../../shared/domain/app.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await service.dispatch();
});
afterAll(() => service?.close());
afterEach(() => service.apns.behave());

async function appWithIos(count: number): Promise<{ app: App; tokens: string[] }> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  return { app, tokens: await service.addIosInstallations(app, count) };
}

async function begin(app: App, body: object = {}): Promise<string> {
  const whole = { data: { alert: 'Hello' }, ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: whole });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return reply.body.objectId;
}

/** The batch that holds the recipients of the next try, once it is written. */
async function retryBatch(app: App): Promise<Record<string, unknown>> {
  const find = async () => {
    const { rows } = await service.db.query(
      `SELECT b.attempt, b.tries, b.last_reason, cardinality(b.recipients) AS size,
              extract(epoch FROM j.start_after - b.created_at)::float8 * 1000 AS wait_ms
         FROM push_batch b JOIN pgboss.job j ON j.data ->> 'batchId' = b.id::text AND j.data ->> 'appId' = b.app_id
        WHERE b.app_id = $1 AND b.attempt = 1`,
      [app.appId],
    );
    return rows;
  };
  await expect.poll(find, { timeout: 15_000 }).toHaveLength(1);
  return (await find())[0] ?? {};
}

describe('another try', { timeout: 60_000 }, () => {
  test('goes to those concerned only, in one batch, after what the gateway asked for', async () => {
    const { app, tokens } = await appWithIos(40);
    for (const token of tokens.slice(0, 10))
      service.apns.misbehave({
        kind: 'answer',
        status: 429,
        reason: 'TooManyRequests',
        retryAfter: '2',
        count: 1,
        token,
      });
    const objectId = await begin(app);
    const batch = await retryBatch(app);
    expect(batch).toMatchObject({ size: 10, tries: 1, last_reason: 'TooManyRequests' });
    expect(batch.wait_ms).toBeGreaterThanOrEqual(2000);
    expect(batch.wait_ms).toBeLessThan(4500);
    expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 40, successes: 40 });
    expect(tokens.map((token) => service.apns.seen(token))).toEqual([
      ...Array.from({ length: 10 }, () => 2),
      ...Array.from({ length: 30 }, () => 1),
    ]);
  });

  test('that the budget does not cover is counted failed with the last reason', async () => {
    const { app, tokens } = await appWithIos(20);
    const [token = ''] = tokens;
    service.apns.misbehave({ kind: 'answer', status: 500, reason: 'InternalServerError', token });
    const objectId = await begin(app);
    expect(await retryBatch(app)).toMatchObject({ attempt: 1, tries: 1, size: 1 });
    // The tries in between take minutes.
    await service.db.query('UPDATE push_batch SET tries = 11 WHERE app_id = $1 AND attempt = 1', [app.appId]);
    const record = await service.untilDone(app, objectId);
    expect(record).toMatchObject({ devices: 20, successes: 19, outcomes: { sent: 19, failed: 1 } });
    expect(record.errors).toContain('retries exhausted: InternalServerError');
    expect(service.apns.seen(token)).toBe(2);
  });

  test('that would come after the push expires is counted expired then, with the last reason', async () => {
    const { app, tokens } = await appWithIos(20);
    const [token = ''] = tokens;
    const answer = { status: 503, reason: 'ServiceUnavailable', retryAfter: '600', token };
    service.apns.misbehave({ kind: 'answer', ...answer });
    const record = await service.untilDone(app, await begin(app, { expiration_interval: 3 }));
    expect(record).toMatchObject({ devices: 20, outcomes: { sent: 19, expired: 1 } });
    expect(record.errors).toContain('expired; the last try: ServiceUnavailable');
  });
});

describe('waits of single tokens', () => {
  test('share batches, and none comes sooner than it was asked for', () => {
    const groups = new RetryGroups();
    const recipients = Array.from({ length: 1000 }, (_, i) => 5000 + i);
    const wanted = recipients.map((_, i) => 1 + i * 60);
    for (const [i, afterMs] of wanted.entries())
      groups.add(i, afterMs, true, { status: 429, reason: 'TooManyRequests' });
    const made = groups.of({ recipients, badges: recipients });
    expect(made.length).toBeLessThan(50);
    expect(made.flatMap((group) => group.recipients).sort()).toEqual(recipients);
    for (const { afterMs, indexes, recipients: ids, badges } of made) {
      expect(badges).toEqual(ids);
      for (const index of indexes) {
        expect(afterMs).toBeGreaterThanOrEqual(wanted[index] ?? 0);
        expect(afterMs).toBeLessThanOrEqual((wanted[index] ?? 0) * 1.25 + 25);
      }
    }
  });

  test('left to the dispatcher go together, apart from those that never reached the gateway', () => {
    const groups = new RetryGroups();
    groups.add(0, null, true, { status: 503, reason: 'ServiceUnavailable' });
    groups.add(1, null, true, { status: 500, reason: 'InternalServerError' });
    groups.add(2, null, false, { status: 0, reason: 'connect_failed' });
    const made = groups.of({ recipients: [7, 8, 9], badges: null });
    expect(made.map(({ recipients, isReached }) => ({ recipients, isReached }))).toEqual([
      { recipients: [7, 8], isReached: true },
      { recipients: [9], isReached: false },
    ]);
  });
});
