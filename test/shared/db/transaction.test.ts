import { afterAll, describe, expect, test } from 'vitest';
import { runForApp } from '../../../shared/db/limits/client-pool.ts';
import { isStatementTimeout } from '../../../shared/db/limits/database-errors.ts';
import { ResultTooLarge } from '../../../shared/db/limits/transaction.ts';
import { Database } from '../../../shared/db/pool.ts';
import { QueueFull, Semaphore } from '../../../shared/semaphore.ts';
import { openTestDatabase } from '../../support/database.ts';

const { db, url } = await openTestDatabase({ maxConnections: 1 });
const turns = new Semaphore({ concurrency: 2, perKey: 1, maxWaiting: 1 });
const shared = new Database({
  url,
  applicationName: 'shared',
  maxConnections: 2,
  fairShare: turns,
});
afterAll(() => shared.close());

const one = (from: Database) =>
  from.query<{ n: number }>('SELECT 1 AS n').then(({ rows }) => rows[0]?.n);
const megabyte = `SELECT repeat('x', 1000) AS text FROM generate_series(1, 1000)`;

describe('the limits of a transaction', () => {
  test('count all rows; a read over the limit ends early', async () => {
    const read = (times: number) =>
      db.transaction(
        async (tx) => {
          for (let i = 0; i < times; i += 1) await tx.query(megabyte);
          return times;
        },
        { maxBytes: 2_500_000 },
      );
    expect(await read(2)).toBe(2);
    await expect(read(3)).rejects.toBeInstanceOf(ResultTooLarge);
    const endless = db.transaction(
      (tx) => tx.query(`SELECT repeat('x', 1000), generate_series(1, 1e12::bigint)`),
      {
        maxBytes: 2_500_000,
      },
    );
    await expect(endless).rejects.toBeInstanceOf(ResultTooLarge);
    expect(await one(db)).toBe(1);
    // The count is per transaction.
    expect(await read(2)).toBe(2);
  });

  test('apply only to its own statements', async () => {
    const settings = [
      'statement_timeout',
      'max_parallel_workers_per_gather',
      'jit',
      'transaction_read_only',
    ];
    const shown = settings.map((name) => `current_setting('${name}')`).join(` || ' ' || `);
    const read = async (from: Pick<Database, 'query'>) =>
      (await from.query<{ all: string }>(`SELECT ${shown} AS all`)).rows[0]?.all;
    const before = await read(db);
    const limits = { isSnapshot: true, statementTimeoutMs: 1234.4, isSingle: true };
    expect(await db.transaction(read, limits)).toBe('1234ms 0 off on');
    expect(await read(db)).toBe(before);
  });

  test('apply to a statement with a longer timeout, which runs alone', async () => {
    const long = new Database({ url, applicationName: 'long', statementTimeoutMs: 4000 });
    const shown = `SELECT current_setting('statement_timeout') AS time,
      current_setting('transaction_read_only') AS "isReadOnly"`;
    const read = async (from: Database, ms: number) => (await from.queryWithin(ms, shown)).rows[0];
    expect(await read(long, 4000)).toEqual({ time: '4s', isReadOnly: 'off' });
    expect(await read(long, 5000)).toEqual({ time: '5s', isReadOnly: 'on' });
    expect(await read(db, 4000)).toEqual({ time: '4s', isReadOnly: 'on' });
    await long.close();
  });

  test.each([
    ['many states', '(a|b)*a(a|b){150}c', 'ab'],
    ['a look-ahead at each place', '(?=(a|b)*c)(?=(a|b)*d)a', 'ab'],
    ['a look-back at each place', '(?<=c(a|b)*)d', 'ab'],
  ])('end a pattern with %s immediately', async (_, pattern, letters) => {
    const work = db.transaction(
      (tx) =>
        tx.query(
          `SELECT count(*) FROM generate_series(1, 100000) AS i
            WHERE repeat(md5(i::text) || $2, 3000) ~ $1`,
          [pattern, letters],
        ),
      { statementTimeoutMs: 100 },
    );
    await expect(work.catch((error) => Promise.reject(isStatementTimeout(error)))).rejects.toBe(
      true,
    );
    // The pool's only connection is free again.
    expect(await one(db)).toBe(1);
  });
});

describe('shared connections', () => {
  test('an app that has used up its share waits; another app does not', async () => {
    let end = () => {};
    const held = new Promise<void>((resolve) => {
      end = resolve;
    });
    const first = runForApp('a', () => shared.transaction(() => held));
    const second = runForApp('a', () => one(shared));
    await expect(runForApp('a', () => one(shared))).rejects.toBeInstanceOf(QueueFull);
    expect(await runForApp('b', () => one(shared))).toBe(1);
    expect(await one(shared)).toBe(1);
    end();
    await first;
    expect(await second).toBe(1);
  });
});

describe.each([true, false])(
  'the last statement of a transaction, pipelined: %s',
  (isPipelined) => {
    const pool = new Database({ url, applicationName: 'last', maxConnections: 1, isPipelined });
    afterAll(() => pool.close());
    const table = isPipelined ? 'last_pipelined' : 'last_in_turns';
    const insert = (id: number) => `INSERT INTO ${table} VALUES (${id}) RETURNING id`;
    const ids = async () => (await pool.query(`SELECT id FROM ${table} ORDER BY id`)).rows;

    test('is committed with the others, or rolled back with them', async () => {
      await pool.query(
        `CREATE TABLE ${table} (id int CHECK (id < 10) UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
      );
      const write = (first: number, second: number) =>
        pool.transaction(async (tx, last) => {
          await tx.query(insert(first));
          return (await last.query<{ id: number }>(insert(second))).rows[0]?.id;
        });
      expect(await write(1, 2)).toBe(2);
      expect(await ids()).toEqual([{ id: 1 }, { id: 2 }]);
      // The last statement fails.
      await expect(write(3, 10)).rejects.toThrow('check constraint');
      // COMMIT fails.
      await expect(write(4, 2)).rejects.toThrow('unique constraint');
      // An earlier statement fails.
      await expect(write(10, 5)).rejects.toThrow('check constraint');
      expect(await ids()).toEqual([{ id: 1 }, { id: 2 }]);
      expect(await write(6, 7)).toBe(7);
    });
  },
);
