import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { recordResult } from '../../../dispatcher/recording/recorder.ts';
import { RetryGroups, Tally } from '../../../dispatcher/sending/tally.ts';
import type { DeliverResult } from '../../../dispatcher/sending/task.ts';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { query } from '../../../shared/db/query.ts';
import { findBatch, insertBatches } from '../../../shared/db/tables/batches.ts';
import { readBatchSnapshots } from '../../../shared/db/tables/push-progress.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { noDurations } from '../../../shared/process/operation-metrics.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changeBatches, readBatches, readDevices, readPush } from '../../support/tables.ts';

let dispatcher: RunningDispatcher;

const service = useTestService();
beforeAll(async () => {
  dispatcher = await service.dispatch();
});
afterEach(() => service.apns.behave());

const appWithIos = (count: number) => createAppOn(service, null, count);
const begin = (app: App, body: object = {}) => beginPush(service, app, body);

/** Returns the retry batch as soon as it is stored. */
async function retryBatch(app: App): Promise<Record<string, unknown>> {
  const find = async () => {
    const { rows } = await service.db.query(
      `SELECT b.attempt, b.tries, b.last_reason, cardinality(b.recipients) AS size,
              extract(epoch FROM b.not_before - b.created_at)::float8 * 1000 AS wait_ms
         FROM push_batch b
        WHERE b.app_id = $1 AND b.attempt = 1`,
      [app.appId],
    );
    return rows;
  };
  await expect.poll(find, { timeout: 15_000 }).toHaveLength(1);
  return (await find())[0] ?? {};
}

describe('a retry', { timeout: 60_000 }, () => {
  test('goes only to the affected recipients, when the gateway asked for it', async () => {
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

  test.each(['0', '-1', '1.5', '', 'Thu, 01 Jan 1970 00:00:00 GMT'])(
    'comes after a back-off, whatever Retry-After the gateway sends: %j',
    async (retryAfter) => {
      const { app, tokens } = await appWithIos(5);
      const [token = ''] = tokens;
      const answer = { status: 429, reason: 'TooManyRequests', retryAfter, token };
      service.apns.misbehave({ kind: 'answer', ...answer });
      const objectId = await begin(app);
      const batch = await retryBatch(app);
      expect(batch).toMatchObject({ size: 1, tries: 1 });
      expect(batch.wait_ms).toBeGreaterThanOrEqual(400);
      service.apns.behave();
      expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 5, successes: 5 });
    },
  );

  test.each([
    [503, 'Shutdown'],
    [400, 'IdleTimeout'],
  ])(
    'after %i %s, which concerns one connection, is immediate and uses up no attempt',
    async (status, reason) => {
      const { app, tokens } = await appWithIos(5);
      const [token = ''] = tokens;
      service.apns.misbehave({ kind: 'answer', status, reason, token });
      const objectId = await begin(app);
      const batch = await retryBatch(app);
      expect(batch).toMatchObject({ size: 1, tries: 0 });
      expect(batch.wait_ms).toBeLessThan(400);
      // The second retry waits, because the gateway may close every connection.
      const second = `SELECT tries,
        extract(epoch FROM not_before - created_at)::float8 * 1000 AS wait_ms
                      FROM push_batch WHERE app_id = $1 AND attempt = 2`;
      const find = async () => (await service.db.query(second, [app.appId])).rows[0];
      await expect.poll(find, { timeout: 15_000 }).toMatchObject({ tries: 0 });
      expect((await find())?.wait_ms).toBeGreaterThanOrEqual(900);
      service.apns.behave();
      expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 5, successes: 5 });
    },
  );

  test.each([
    [408, ''],
    [403, '<html>Blocked</html>'],
    [400, '<html>Bad Request</html>'],
    [404, ''],
  ])(
    'follows a single %i of a proxy, while the other recipients are sent to',
    async (status, page) => {
      const { app, tokens } = await appWithIos(200);
      service.apns.misbehave({ kind: 'answer', status, body: page, count: 1 });
      const record = await service.untilDone(app, await begin(app));
      expect(record).toMatchObject({ devices: 200, successes: 200, outcomes: { sent: 200 } });
      expect(tokens.map((token) => service.apns.seen(token)).sort()).toEqual([
        ...Array(199).fill(1),
        2,
      ]);
    },
  );

  test('after the maximum number of attempts is a failure with the last reason', async () => {
    const { app, tokens } = await appWithIos(20);
    const [token = ''] = tokens;
    service.apns.misbehave({ kind: 'answer', status: 500, reason: 'InternalServerError', token });
    const objectId = await begin(app);
    expect(await retryBatch(app)).toMatchObject({ attempt: 1, tries: 1, size: 1 });
    // The tries in between would take minutes.
    await changeBatches(service.db, app, { tries: 11 }, 1);
    const record = await service.untilDone(app, objectId);
    expect(record).toMatchObject({ devices: 20, successes: 19, outcomes: { sent: 19, failed: 1 } });
    expect(record.errors).toContain('retries exhausted: InternalServerError');
    expect(service.apns.seen(token)).toBe(2);
  });

  test('after the expiry of the push is counted as expired, with the last reason', async () => {
    const { app, tokens } = await appWithIos(20);
    const [token = ''] = tokens;
    const answer = { status: 503, reason: 'ServiceUnavailable', retryAfter: '600', token };
    service.apns.misbehave({ kind: 'answer', ...answer });
    const record = await service.untilDone(app, await begin(app, { expiration_interval: 8 }));
    expect(record).toMatchObject({ devices: 20, outcomes: { sent: 19, expired: 1 } });
    expect(record.errors).toContain('expired; the last try: ServiceUnavailable');
  });
});

describe('a token whose gateway asked for a pause', { timeout: 60_000 }, () => {
  /** Returns the milliseconds between the first two requests for a token. */
  const pauseOf = (token: string): number => {
    const [first, second] = service.apns.requests.filter((request) => request.token === token);
    return (second?.atMs ?? 0) - (first?.atMs ?? 0);
  };

  test('also waits if its push is paused meanwhile, in a separate batch', async () => {
    const { app, tokens } = await appWithIos(900);
    const [token = ''] = tokens;
    const answer = { status: 429, reason: 'TooManyRequests', retryAfter: '4', count: 1, token };
    service.apns.misbehave({ kind: 'answer', ...answer });
    // The other recipients take so long that the pause comes before the end of the batch.
    service.apns.misbehave({ kind: 'slow', delayMs: 1500 });
    const objectId = await begin(app);
    await expect.poll(() => service.apns.seen(token), { timeout: 15_000, interval: 10 }).toBe(1);
    const control = (verb: string) =>
      service.api.request(
        'POST',
        `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`,
        {
          admin: true,
        },
      );
    await control('pause');
    const { rows } = await untilParked(app);
    expect(rows).toMatchObject([{ moved: [0] }]);
    expect(await retryBatch(app)).toMatchObject({
      size: 1,
      tries: 1,
      last_reason: 'TooManyRequests',
    });
    await control('resume');
    service.apns.behave();
    const record = await service.untilDone(app, objectId);
    expect(record).toMatchObject({ devices: 900, successes: 900, outcomes: { sent: 900 } });
    expect(tokens.map((other) => service.apns.seen(other))).toEqual([
      2,
      ...tokens.slice(1).map(() => 1),
    ]);
    expect(pauseOf(token)).toBeGreaterThanOrEqual(4000);
  });

  /** Returns the first batch of a push after it was paused. */
  const untilParked = async (app: App) => {
    const find = () =>
      service.db.query(
        'SELECT moved FROM push_batch WHERE app_id = $1 AND attempt = 0 AND is_held',
        [app.appId],
      );
    await expect.poll(async () => (await find()).rowCount, { timeout: 15_000 }).toBe(1);
    return find();
  };
});

/** Writes a batch that no dispatcher delivers. */
async function writeBatch(devices: number) {
  const { app } = await appWithIos(devices);
  const objectId = await begin(app, {
    push_time: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const { id: pushId } = await readPush(service.db, app, objectId);
  const recipients = (await readDevices(service.db, app)).map(({ id }) => id);
  const row = { connector: 'apns', profile: '_default', badges: null, attempt: 0 } as const;
  const batches = [{ ...row, recipients, hasJob: true }];
  const [batchId = 0] = await insertBatches(service.db, app.appId, pushId, batches);
  const ids = { appId: app.appId, pushId, batchId };
  const [stored] = await readBatchSnapshots(service.db, [ids]);
  if (!stored) throw new Error('the batch is gone');
  const load = async () => {
    const batch = await findBatch(service.db, app.appId, batchId);
    if (!batch) throw new Error('the batch is gone');
    return new Tally(batch);
  };
  const record = (tally: Tally, isStopped: boolean) => {
    const { failures, sentBy, messages } = tally;
    const result = { ...emptyResult, failures, sentBy, messages, ...tally.end(isStopped) };
    return recordResult(dispatcher.deps, { ids, stored }, { isCounted: true, result });
  };
  return { app, recipients, load, record };
}

describe('recipients that have moved to a retry batch', () => {
  test('are counted only there, even by a worker that did not know about the move', async () => {
    const { app, recipients, load, record } = await writeBatch(4);
    // Both workers load the batch before the move.
    const early = await load();
    const late = await load();
    early.record(0, { kind: 'sent' });
    early.record(1, { kind: 'retry', status: 429, reason: 'TooManyRequests', afterMs: 600_000 });
    early.record(2, { kind: 'retry', status: 0, reason: 'aborted', afterMs: 0 });
    expect(await record(early, true)).toBe(false);
    for (const index of [0, 1]) late.record(index, { kind: 'sent' });
    late.record(2, { kind: 'rejected', outcome: 'failed', status: 400, reason: 'BadTopic' });
    late.record(3, { kind: 'retry', status: 429, reason: 'TooManyRequests', afterMs: 600_000 });
    expect(await record(late, false)).toBe(true);
    const batches = await readBatches(service.db, app);
    expect(batches).toMatchObject([
      { attempt: 0, recipients, isSettled: true, totals: { sent: 1, failed: 1 } },
      { attempt: 1, recipients: [recipients[1]], isSettled: false, totals: null },
      { attempt: 1, recipients: [recipients[3]], isSettled: false, totals: null },
    ]);
  });
});

test('a batch that is delivered in parts keeps the forms and message ids of each part', async () => {
  const { app, load, record } = await writeBatch(3);
  const sent = (form: string, messageId: string) => ({ kind: 'sent', form, messageId }) as const;
  const first = await load();
  first.record(0, sent('v3', 'message 1'));
  expect(await record(first, true)).toBe(false);
  const second = await load();
  second.record(1, sent('v1', 'message 2'));
  second.record(2, sent('v3', 'message 3'));
  expect(await record(second, false)).toBe(true);
  const columnOf = (column: string, table: string) =>
    query(service.db).column(`SELECT ${column} FROM ${table} WHERE app_id = $1 ORDER BY 1`, [
      app.appId,
    ]);
  expect(await columnOf('sent_by', 'push_batch')).toEqual([{ v1: 1, v3: 2 }]);
  const ids = ['message 1', 'message 2', 'message 3'];
  expect(await columnOf('message_id', 'gateway_message')).toEqual(ids);
});

/** Result of a batch without any attempt. */
const emptyResult: Omit<DeliverResult, 'states' | 'retriedCount' | 'retries' | 'failures'> = {
  connector: 'apns',
  profile: '_default',
  sentBy: null,
  isInterrupted: false,
  hasUnsent: false,
  health: { requests: 0, failed: 0 },
  failureReason: null,
  profileError: null,
  calls: [],
  messages: [],
  durations: noDurations(),
};

describe('retries of single tokens', () => {
  test('share batches, and none comes earlier than the gateway asked', () => {
    const groups = new RetryGroups();
    const recipients = Array.from({ length: 1000 }, (_, i) => 5000 + i);
    const wanted = recipients.map((_, i) => 1 + i * 60);
    for (const [i, afterMs] of wanted.entries())
      groups.add(i, afterMs, true, { status: 429, reason: 'TooManyRequests' });
    const created = groups.of({ recipients, badges: recipients });
    expect(created.length).toBeLessThan(50);
    expect(created.flatMap((group) => group.recipients).sort()).toEqual(recipients);
    for (const { afterMs, indexes, recipients: ids, badges } of created) {
      expect(badges).toEqual(ids);
      for (const index of indexes) {
        expect(afterMs).toBeGreaterThanOrEqual(wanted[index] ?? 0);
        expect(afterMs).toBeLessThanOrEqual((wanted[index] ?? 0) * 1.25 + 25);
      }
    }
  });

  test('come no later than the longest wait of their batch, such as the start of sending hours', () => {
    const groups = new RetryGroups();
    const untilStartMs = 25_200_007;
    for (const [i, afterMs] of [untilStartMs - 2, untilStartMs, untilStartMs - 1].entries())
      groups.add(i, afterMs, true, { status: 200, reason: 'outside_sending_hours' });
    const created = groups.of({ recipients: [7, 8, 9], badges: null });
    expect(created).toMatchObject([{ recipients: [7, 8, 9], afterMs: untilStartMs }]);
  });

  test('with the default back-off share a batch, apart from unsent tokens', () => {
    const groups = new RetryGroups();
    groups.add(0, null, true, { status: 503, reason: 'ServiceUnavailable' });
    groups.add(1, null, true, { status: 500, reason: 'InternalServerError' });
    groups.add(2, null, false, { status: 0, reason: 'connect_failed' });
    const created = groups.of({ recipients: [7, 8, 9], badges: null });
    expect(created.map(({ recipients, isReached }) => ({ recipients, isReached }))).toEqual([
      { recipients: [7, 8], isReached: true },
      { recipients: [9], isReached: false },
    ]);
  });
});
