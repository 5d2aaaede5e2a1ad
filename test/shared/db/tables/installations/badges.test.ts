import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Database, type Handle } from '../../../../../shared/db/pool.ts';
import { incrementBadges, setBadges } from '../../../../../shared/db/tables/badges.ts';
import { insertBatches } from '../../../../../shared/db/tables/batches.ts';
import { areDatabasesSharded, openTestDatabase } from '../../../../support/database.ts';

/** Runs a test that depends on how a single server writes rows and waits for locks. */
const testOnOneServer = test.skipIf(areDatabasesSharded());

const { db, url } = await openTestDatabase({
  applicationName: 'badges',
  settings: { deadlock_timeout: '10ms' },
});

const appId = 'app';

/** Inserts installations with these badges. Returns their keys. */
async function insertDevices(handle: Handle, badges: (number | null)[]): Promise<number[]> {
  const { rows } = await handle.query<{ id: number }>(
    `INSERT INTO installation (app_id, object_id, device_type, device_token, channels, fields,
      badge)
     SELECT $1, gen_random_uuid(), 'ios', repeat(gen_random_uuid()::text, 2), '{news}',
       '{"city": "Chengdu"}', badge
       FROM unnest($2::int[]) AS badge RETURNING id`,
    [appId, badges],
  );
  return rows.map(({ id }) => id);
}

async function batchOf(
  handle: Handle,
  recipients: number[],
): Promise<{ appId: string; id: number }> {
  const rest = {
    connector: 'apns',
    profile: '_default',
    badges: null,
    attempt: 0,
    hasJob: false,
  } as const;
  const [id = 0] = await insertBatches(handle, appId, 1, [{ ...rest, recipients }]);
  return { appId, id };
}

async function badgesOf(ids: number[]): Promise<(number | null | undefined)[]> {
  const { rows } = await db.query<{ id: number; badge: number | null }>(
    'SELECT id, badge FROM installation WHERE app_id = $1 AND id = ANY($2::bigint[])',
    [appId, ids],
  );
  const byId = new Map(rows.map(({ id, badge }) => [id, badge]));
  return ids.map((id) => byId.get(id));
}

test('badges are counted once, even if a batch is taken twice at the same time', async () => {
  const ids = await insertDevices(db, [null, 4, 0, 2 ** 31 - 1]);
  const [first = 0, gone = 0, third = 0, largest = 0] = ids;
  const batch = await batchOf(db, [third, gone, first, largest]);
  await db.query('DELETE FROM installation WHERE app_id = $1 AND id = $2', [appId, gone]);
  const takes = await Promise.all([incrementBadges(db, batch), incrementBadges(db, batch)]);
  const counted = [1, null, 1, 2 ** 31 - 1];
  expect([...takes, await incrementBadges(db, batch)]).toEqual([counted, counted, counted]);
  expect(await badgesOf(ids)).toEqual([1, undefined, 1, 2 ** 31 - 1]);
});

testOnOneServer('a batch that changes while its badges are counted keeps the numbers', async () => {
  const ids = await insertDevices(db, [null, 4]);
  const batch = await batchOf(db, ids);
  const { counting } = await db.transaction(async (tx) => {
    await tx.query('UPDATE push_batch SET tries = 1 WHERE id = $1', [batch.id]);
    const started = { counting: incrementBadges(db, batch) };
    await untilWaiting('badges');
    return started;
  });
  expect(await counting).toEqual([1, 5]);
  expect(await incrementBadges(db, batch)).toEqual([1, 5]);
  expect(await badgesOf(ids)).toEqual([1, 5]);
});

testOnOneServer(
  'counting a badge writes no index: the page has room for the new version',
  async () => {
    const size = 1000;
    await db.transaction(async (tx) => {
      const batch = await batchOf(tx, await insertDevices(tx, Array(size).fill(null)));
      const before = await updatesOf(tx);
      await incrementBadges(tx, batch);
      const after = await updatesOf(tx);
      expect({ all: after.all - before.all, hot: after.hot - before.hot }).toEqual({
        all: size,
        hot: size,
      });
    });
  },
);

/**
 * Returns the updates of installations that this connection has not yet reported to the statistics.
 */
async function updatesOf(tx: Handle): Promise<{ all: number; hot: number }> {
  const { rows } = await tx.query<{ all: number; hot: number }>(
    `SELECT pg_stat_get_xact_tuples_updated('installation'::regclass) AS all,
            pg_stat_get_xact_tuples_hot_updated('installation'::regclass) AS hot`,
  );
  return rows[0] ?? { all: 0, hot: 0 };
}

testOnOneServer('a number that a push sets writes only rows with another number', async () => {
  const ids = await insertDevices(db, [7, null, 3]);
  const batch = await batchOf(db, ids);
  const versions = async () => {
    const { rows } = await db.query<{ xmin: string }>(
      'SELECT xmin::text FROM installation WHERE id = ANY($1::bigint[]) ORDER BY id',
      [ids],
    );
    return rows.map(({ xmin }) => xmin);
  };
  const before = await versions();
  await setBadges(db, batch, 7);
  expect(await badgesOf(ids)).toEqual([7, 7, 7]);
  const after = await versions();
  expect(after.map((version, i) => version === before[i])).toEqual([true, false, false]);
});

testOnOneServer('a deadlock repeats the count', async () => {
  const ids = await insertDevices(db, [1, 2, 3]);
  const batch = await batchOf(db, ids);
  const others = { url, settings: { deadlock_timeout: '10min' } };
  const second = new Database({ ...others, applicationName: 'holder of the second' });
  const last = new Database({ ...others, applicationName: 'holder of the last' });
  const lock = (tx: Handle, place: number) =>
    tx.query('SELECT FROM installation WHERE app_id = $1 AND id = $2 FOR UPDATE', [
      appId,
      ids[place],
    ]);
  const lastIsHeld = Promise.withResolvers<void>();
  let counted: Promise<unknown> = Promise.resolve();
  const ended = last.transaction(async (tx) => {
    await lock(tx, 2);
    lastIsHeld.resolve();
    await untilWaiting('badges');
    // The count keeps this lock until PostgreSQL ends the count.
    await lock(tx, 0);
  });
  await second.transaction(async (tx) => {
    await lock(tx, 1);
    await lastIsHeld.promise;
    counted = incrementBadges(db, batch);
    await untilWaiting('holder of the last');
  });
  await ended;
  expect(await counted).toEqual([2, 3, 4]);
  expect(await badgesOf(ids)).toEqual([2, 3, 4]);
  await second.close();
  await last.close();
});

/** Resolves when a connection with this name waits for a lock. */
async function untilWaiting(applicationName: string): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ n: number }>(
      `SELECT count(*) AS n FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = $1 AND wait_event_type = 'Lock'`,
      [applicationName],
    );
    if ((rows[0]?.n ?? 0) > 0) return;
    await sleep(5);
  }
}
