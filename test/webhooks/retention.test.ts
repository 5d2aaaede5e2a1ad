import { expect, test } from 'vitest';
import { dayMs } from '../../shared/clock.ts';
import { query } from '../../shared/db/query.ts';
import { deleteOldDeliveries, redeliver } from '../../shared/db/tables/webhook-deliveries.ts';
import { updateFull } from '../../shared/db/tables/webhooks.ts';
import { areDatabasesSharded, openTestDatabase, runDuring } from '../support/database.ts';

const { db } = await openTestDatabase();

/** Inserts deliveries of an endpoint. `age` in days. */
async function insert(name: string, count: number, state: string, age = 0): Promise<void> {
  await db.query(
    `INSERT INTO webhook (app_id, name, events, format, secrets)
     VALUES ('app', $1, '{}', 'standard', '') ON CONFLICT DO NOTHING`,
    [name],
  );
  await db.query(
    `INSERT INTO webhook_delivery (app_id, webhook, type, source_app, occurred_at, state, created_at)
     SELECT 'app', $1, 'push.done', 'app', now(), $3, now() - $4 * interval '1 day'
       FROM generate_series(1, $2)`,
    [name, count, state, age],
  );
}

async function left(name: string): Promise<Record<string, number>> {
  const { rows } = await db.query<{ state: string; n: number }>(
    `SELECT state, count(*) AS n FROM webhook_delivery WHERE webhook = $1 GROUP BY state`,
    [name],
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

const before = new Date(Date.now() - 30 * dayMs);

test('deliveries are deleted after 30 days, also those that wait', async () => {
  await insert('old', 3, 'delivered', 31);
  await insert('old', 2, 'waiting', 31);
  await insert('old', 4, 'failed', 29);
  expect(await deleteOldDeliveries(db, { before, kept: 100, limit: 500 })).toBe(5);
  expect(await left('old')).toEqual({ failed: 4 });
});

test('a log keeps its newest deliveries, and everything that waits', async () => {
  await insert('long', 5, 'waiting');
  await insert('long', 30, 'delivered');
  await insert('long', 10, 'failed');
  while ((await deleteOldDeliveries(db, { before, kept: 20, limit: 7 })) > 0);
  expect(await left('long')).toEqual({ waiting: 5, delivered: 10, failed: 10 });
});

test('a log is shortened even if its oldest deliveries wait', async () => {
  await insert('stuck', 10, 'waiting');
  await insert('stuck', 30, 'delivered');
  while ((await deleteOldDeliveries(db, { before, kept: 20, limit: 7 })) > 0);
  expect(await left('stuck')).toEqual({ waiting: 10, delivered: 20 });
});

test('an event that is sent once stays for 30 days, so that it is not sent again', async () => {
  await insert('once', 10, 'delivered');
  await db.query(
    `UPDATE webhook_delivery SET once_key = 'key ' || id::text WHERE webhook = 'once'`,
  );
  await insert('once', 30, 'delivered');
  while ((await deleteOldDeliveries(db, { before, kept: 20, limit: 7 })) > 0);
  expect(await left('once')).toEqual({ delivered: 30 });
  await db.query('UPDATE webhook_delivery SET created_at = $1 WHERE once_key IS NOT NULL', [
    new Date(Date.now() - 31 * dayMs),
  ]);
  while ((await deleteOldDeliveries(db, { before, kept: 20, limit: 7 })) > 0);
  expect(await left('once')).toEqual({ delivered: 20 });
});

test.skipIf(areDatabasesSharded())(
  'a delivery that is sent again at the same time stays in its log',
  async () => {
    await insert('again', 3, 'failed');
    const key = { appId: 'app', name: 'again' };
    const [oldest] = await query(db).column<number>(
      `SELECT min(id) FROM webhook_delivery WHERE webhook = 'again'`,
    );
    await runDuring(
      db,
      (tx) => redeliver(tx, key, oldest ?? 0),
      (tx) => deleteOldDeliveries(tx, { before, kept: 1, limit: 500 }),
    );
    expect(await left('again')).toEqual({ waiting: 1, failed: 1 });
  },
);

test('an endpoint is full while as many deliveries wait as the limit', async () => {
  const isFull = async () =>
    (await db.query<{ full: boolean }>(`SELECT is_full AS full FROM webhook WHERE name = 'full'`))
      .rows[0]?.full;
  await insert('full', 19, 'waiting');
  await updateFull(db, 20);
  expect(await isFull()).toBe(false);
  await insert('full', 1, 'waiting');
  await updateFull(db, 20);
  expect(await isFull()).toBe(true);
  await db.query(`UPDATE webhook_delivery SET state = 'delivered' WHERE webhook = 'full'`);
  await updateFull(db, 20);
  expect(await isFull()).toBe(false);
});
