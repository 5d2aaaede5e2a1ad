import { beforeAll, describe, expect, test } from 'vitest';
import type { WholePush } from '../../dispatcher/batched-queries.ts';
import type { RunningDispatcher } from '../../dispatcher/start.ts';
import { hourMs } from '../../shared/clock.ts';
import { Database, type Handle } from '../../shared/db/pool.ts';
import { onePlanSettings } from '../../shared/db/sharding.ts';
import { insertBatchesOf, settleBatches } from '../../shared/db/tables/batches.ts';
import {
  closeSettled,
  markFirstSends,
  newBatchSnapshot,
  planWholePushes,
  readBatchSnapshots,
} from '../../shared/db/tables/push-progress.ts';
import { findPush, findPushes } from '../../shared/db/tables/pushes.ts';
import { grantRecipients } from '../../shared/db/tables/usage.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { RecipientStates } from '../../shared/domain/outcome.ts';
import { areDatabasesSharded } from '../support/database.ts';
import { beginPush } from '../support/gateways/app-gateway.ts';
import { useTestService } from '../support/service.ts';
import { readPush, readPushes } from '../support/tables.ts';

const service = useTestService();
const timeoutMs = 60_000;

interface Device {
  id: number;
  object_id: string;
  device_token: string;
}

async function appWithDevices(count: number, dailyRecipientCap = 1000) {
  const app = await service.api.createApp({ dailyRecipientCap });
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, count);
  const { rows } = await service.db.query<Device>(
    'SELECT id, object_id, device_token FROM installation WHERE app_id = $1 ORDER BY id',
    [app.appId],
  );
  return { app, devices: rows };
}

const begin = (app: App, where: object) => beginPush(service, app, { where });

/** Accepts a push to each device. No dispatcher runs, or the pushes arrive at once. */
const beginAll = (app: App, devices: Device[], body: object = {}) =>
  Promise.all(
    devices.map(({ object_id: objectId }) =>
      beginPush(service, app, { where: { objectId }, ...body }),
    ),
  );

const control = (app: App, objectId: string, verb: string) =>
  service.api.request('POST', `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`, {
    admin: true,
  });

async function internalId(app: App, objectId: string): Promise<number> {
  return (await readPush(service.db, app, objectId)).id;
}

/** Accepts a push to each device. Returns the pushes as input for the planner. */
async function plansOf(app: App, devices: Device[], body: object = {}): Promise<WholePush[]> {
  const pushes = await beginAll(app, devices, body);
  const ids = await Promise.all(pushes.map((objectId) => internalId(app, objectId)));
  return ids.map((id, i) => {
    const recipients = [devices[i]?.id ?? 0];
    const batch = {
      connector: 'apns',
      profile: '_default',
      recipients,
      badges: null,
      attempt: 0,
      hasJob: false,
    } as const;
    return { appId: app.appId, id, through: recipients[0] ?? 0, devices: 1, batches: [batch] };
  });
}

/** Plans pushes. Returns the batch of each push, or undefined if it was not planned. */
async function plan(tx: Handle, pushes: WholePush[]): Promise<(number | undefined)[]> {
  const planned = await planWholePushes(tx, pushes);
  const ids = await insertBatchesOf(
    tx,
    pushes.map(({ appId, id, batches }, i) => ({
      appId,
      pushId: id,
      batches: planned[i] ? batches : [],
    })),
  );
  return ids.map(([id]) => id);
}

/** Returns the results of batches with one recipient, which was sent to. */
const sentResults = ({ appId }: App, batches: (number | undefined)[]) =>
  batches.map((id = 0) => ({
    appId,
    id,
    retriedCount: 0,
    totals: { sent: 1 },
    states: new RecipientStates(Uint8Array.of(1)),
  }));

const isNumber = (id: number | undefined) => id !== undefined;

describe('a batched query for many pushes', () => {
  test('plans all pushes except paused, cancelled and already planned ones', async () => {
    const { app, devices } = await appWithDevices(5);
    const pushes = await plansOf(app, devices);
    const change = (place: number, state: string) =>
      service.db.query('UPDATE notification SET state = $3 WHERE app_id = $1 AND id = $2', [
        app.appId,
        pushes[place]?.id,
        state,
      ]);
    await Promise.all([change(1, 'paused'), change(2, 'cancelled')]);
    expect((await plan(service.db, pushes.slice(4))).map(isNumber)).toEqual([true]);
    expect((await plan(service.db, pushes)).map(isNumber)).toEqual([
      true,
      false,
      false,
      true,
      false,
    ]);
  });

  test('counts recipients towards the cap of each app, in the order of pushes', async () => {
    const one = await appWithDevices(4);
    const other = await appWithDevices(2);
    const pushes = [
      ...(await plansOf(one.app, one.devices.slice(0, 3))),
      ...(await plansOf(other.app, other.devices)),
    ];
    const batches = await plan(service.db, pushes);
    const charged = pushes.map(({ appId }, i) => ({
      appId,
      batchId: batches[i] ?? 0,
      cap: appId === one.app.appId ? 2 : 9,
    }));
    expect(await grantRecipients(service.db, charged)).toEqual([1, 1, 0, 1, 1]);
    expect(await grantRecipients(service.db, charged)).toEqual(charged.map(() => undefined));
    const later = await plan(service.db, await plansOf(one.app, one.devices.slice(3)));
    const again = [{ appId: one.app.appId, batchId: later[0] ?? 0, cap: 3 }];
    expect(await grantRecipients(service.db, again)).toEqual([1]);
  });

  test.each([
    ['a usual push', {}],
    ['flow control', { flowControl: 100 }],
    ['variables', { variables: { name: { field: 'name', default: 'friend' } } }],
    ['a recall', { recall: { pushId: 1, objectId: 'a', data: {}, hasReplacement: false } }],
    ['a replacement', { recall: { pushId: 1, objectId: 'a', data: {}, hasReplacement: true } }],
  ])('plans batches whose state is known without reading it: %s', async (_name, members) => {
    const { app, devices } = await appWithDevices(1);
    const [whole] = await plansOf(app, devices);
    const { id = 0, batches: [batch] = [] } = whole ?? {};
    await service.db.query(
      'UPDATE notification SET request = request || $3 WHERE app_id = $1 AND id = $2',
      [app.appId, id, members],
    );
    const push = await findPush(service.db, app.appId, id);
    const [batchId = 0] = await plan(service.db, whole ? [whole] : []);
    const [stored] = await readBatchSnapshots(service.db, [{ appId: app.appId, batchId }]);
    expect(stored).toMatchObject({ state: 'sending', size: 1, open: 1 });
    expect(push && batch && newBatchSnapshot(push, batch)).toEqual(stored);
  });

  test.skipIf(areDatabasesSharded())(
    'skips a push that another transaction has locked',
    async () => {
      const { app, devices } = await appWithDevices(2);
      const pushes = await plansOf(app, devices);
      await service.db.transaction(async (tx) => {
        await tx.query('SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR UPDATE', [
          app.appId,
          pushes[0]?.id,
        ]);
        expect((await plan(service.db, pushes)).map(isNumber)).toEqual([false, true]);
      });
    },
  );

  test('settles each batch once, even if a late worker reports it again', async () => {
    const { app, devices } = await appWithDevices(3);
    const pushes = await plansOf(app, devices);
    const batches = await plan(service.db, pushes);
    const results = sentResults(app, batches);
    expect(await settleBatches(service.db, results.slice(0, 1))).toEqual([true]);
    expect((await closeSettled(service.db, pushes)).map((push) => push?.totals)).toEqual([
      { apns: { sent: 1 } },
      undefined,
      undefined,
    ]);
    expect(await settleBatches(service.db, results)).toEqual([false, true, true]);
    const closed = await closeSettled(service.db, pushes);
    expect(closed.map((push) => push?.totals)).toEqual([
      undefined,
      ...results.slice(1).map(() => ({ apns: { sent: 1 } })),
    ]);
  });
});

/** Returns the rows of pushes and batches that `work` reads on a connection. */
async function rowsRead(connection: Handle, work: () => Promise<unknown>): Promise<number> {
  const readSoFar = async () => {
    const { rows } = await connection.query<{ n: number }>(
      `SELECT sum(seq_tup_read + idx_tup_fetch)::int AS n FROM pg_stat_xact_user_tables
        WHERE relname IN ('notification', 'push_batch')`,
    );
    return rows[0]?.n ?? 0;
  };
  const before = await readSoFar();
  await work();
  return (await readSoFar()) - before;
}

test.skipIf(areDatabasesSharded())(
  'a batched query reads only the rows of its pushes',
  async () => {
    const others = 3000;
    const tables = ['notification', 'push_batch'];
    /** Writes pushes of another app, with one batch each. */
    const writeOthers = (state: 'done' | 'sending') =>
      service.db.query(
        `WITH push AS (
           INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
                                     push_time, expires_at, is_planned, devices)
           SELECT 'others', $1 || n, $1 || n, $1, '{}', 'prod', now(),
                  now() + interval '1 day', true, 1
             FROM generate_series(1, $2::int) AS n RETURNING app_id, id)
         INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, size, is_settled)
         SELECT app_id, id, 'apns', '_default', '{1}', 1, $1 = 'done' FROM push`,
        [state, others],
      );
    for (const table of tables)
      await service.db.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
    // PostgreSQL counts the rows while no push is open, as it mostly does in a service.
    await writeOthers('done');
    for (const table of tables) await service.db.query(`ANALYZE ${table}`);
    await writeOthers('sending');
    const { app, devices } = await appWithDevices(3);
    const pushes = await plansOf(app, devices);
    const settings = await onePlanSettings(service.db);
    const db = new Database({ url: service.databaseUrl, applicationName: 'test', settings });
    const read: Record<string, number> = {};
    try {
      await db.transaction(async (tx) => {
        const count = async <T>(name: string, work: () => Promise<T[]>): Promise<T[]> => {
          let result: T[] = [];
          read[name] = await rowsRead(tx, async () => {
            result = await work();
          });
          return result;
        };
        await count('find', () => findPushes(tx, pushes));
        const ids = await count('plan', () => plan(tx, pushes));
        const batches = ids.map((batchId = 0) => ({ appId: app.appId, batchId }));
        await count('read', () => readBatchSnapshots(tx, batches));
        const charged = batches.map((batch) => ({ ...batch, cap: 9 }));
        await count('charge', () => grantRecipients(tx, charged));
        const times = pushes.map((push) => ({ ...push, at: new Date() }));
        await count('first send', () => markFirstSends(tx, times));
        await count('settle', () => settleBatches(tx, sentResults(app, ids)));
        const closed = await count('close', () => closeSettled(tx, pushes));
        expect(closed.map((push) => push?.totals)).toEqual(
          pushes.map(() => ({ apns: { sent: 1 } })),
        );
      });
    } finally {
      await db.close();
    }
    expect(Object.keys(read)).toHaveLength(7);
    for (const [name, rows] of Object.entries(read)) {
      expect(rows, name).toBeGreaterThan(0);
      expect(rows, name).toBeLessThan(20);
    }
  },
);

describe('many pushes to single devices', () => {
  let dispatcher: RunningDispatcher;
  const before = new Map<string, { app: App; devices: Device[]; pushes: string[] }>();
  const prepare = async (name: string, count: number, cap?: number) => {
    const { app, devices } = await appWithDevices(count, cap);
    before.set(name, { app, devices, pushes: await beginAll(app, devices) });
  };
  const of = (name: string) => before.get(name) ?? { app: {} as never, devices: [], pushes: [] };

  beforeAll(async () => {
    // The pushes wait for the dispatcher, which takes them as one group.
    await prepare('sent', 20);
    await prepare('capped', 3, 2);
    await prepare('dead', 2);
    await prepare('stopped', 3);
    const { app, pushes } = of('stopped');
    await control(app, pushes[0] ?? '', 'pause');
    await control(app, pushes[1] ?? '', 'cancel');
    const dead = of('dead').devices[0]?.device_token ?? '';
    service.apns.deadTokens.set(dead, Date.UTC(2100, 0, 1));
    dispatcher = await service.dispatch();
  });

  const done = (name: string) =>
    Promise.all(
      of(name).pushes.map((objectId) => service.untilDone(of(name).app, objectId, timeoutMs)),
    );
  const seen = (name: string) =>
    of(name).devices.map(({ device_token: token }) => service.apns.seen(token));

  test('are sent once to each device', async () => {
    for (const record of await done('sent'))
      expect(record).toMatchObject({ status: 'done', devices: 1, successes: 1, errors: '' });
    expect(seen('sent')).toEqual(of('sent').devices.map(() => 1));
  });

  test('stay within the daily cap of their app', async () => {
    const outcomes = (await done('capped')).map(({ outcomes }) => JSON.stringify(outcomes)).sort();
    expect(outcomes).toEqual(['{"capped":1}', '{"sent":1}', '{"sent":1}']);
    expect(seen('capped').reduce((sum, n) => sum + n, 0)).toBe(2);
  });

  test('continue if the gateway refuses one push, whose record has the reason', async () => {
    const [refused, sent] = await done('dead');
    expect(refused).toMatchObject({ devices: 1, successes: 0, invalidTokens: 1 });
    expect(refused?.errors).toMatch(/^apns: .+ \(1\)$/);
    expect(sent).toMatchObject({ successes: 1 });
  });

  test('skip a paused push until it is resumed, and a cancelled push', async () => {
    const { app, pushes } = of('stopped');
    const [paused = '', , third = ''] = pushes;
    expect(await service.untilDone(app, third, timeoutMs)).toMatchObject({ successes: 1 });
    expect(seen('stopped').slice(0, 2)).toEqual([0, 0]);
    await control(app, paused, 'resume');
    expect(await service.untilDone(app, paused, timeoutMs)).toMatchObject({ successes: 1 });
    expect(seen('stopped')).toEqual([1, 0, 1]);
  });

  test('succeed even if the statement of one push fails', async () => {
    const { app, devices } = await appWithDevices(3);
    // Scheduled pushes have no job, so the dispatcher does not plan them itself.
    const later = { push_time: new Date(Date.now() + hourMs).toISOString() };
    const plans = await plansOf(app, devices, later);
    await service.db.query(`UPDATE notification SET state = 'queued' WHERE app_id = $1`, [
      app.appId,
    ]);
    const pushes = plans.map((push, i) => ({
      ...push,
      // PostgreSQL cannot store a text with a null character.
      batches: push.batches.map((batch) => (i === 1 ? { ...batch, profile: 'a\0b' } : batch)),
    }));
    const started = await Promise.allSettled(
      pushes.map((push) => dispatcher.deps.queries.planWhole(push)),
    );
    expect(started.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const states = await Promise.all(pushes.map(({ id }) => internalState(app, id)));
    expect(states).toEqual(['sending', 'queued', 'sending']);
  });

  test('are done immediately if they match no device', async () => {
    const { app } = await appWithDevices(1);
    const objectId = await begin(app, { objectId: '0'.repeat(24) });
    expect(await service.untilDone(app, objectId, timeoutMs)).toMatchObject({
      status: 'done',
      devices: 0,
    });
  });

  test.each(['device_token', 'installation_id'] as const)('find a device by %s', async (column) => {
    const { app, devices } = await appWithDevices(2);
    await service.db.query(
      'UPDATE installation SET installation_id = $2 || object_id WHERE app_id = $1',
      [app.appId, 'i'],
    );
    const [one] = devices;
    const where =
      column === 'device_token'
        ? { deviceToken: one?.device_token }
        : { installationId: `i${one?.object_id}` };
    const objectId = await begin(app, where);
    expect(await service.untilDone(app, objectId, timeoutMs)).toMatchObject({
      devices: 1,
      successes: 1,
    });
    expect(service.apns.seen(one?.device_token ?? '')).toBe(1);
  });
});

async function internalState(app: App, pushId: number): Promise<string> {
  const push = (await readPushes(service.db, app)).find(({ id }) => id === pushId);
  return push?.state ?? '';
}
