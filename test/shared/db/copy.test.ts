import { beforeAll, beforeEach, expect, test } from 'vitest';
import { type CopyRow, type CopyValue, copyIn, RowEncoder } from '../../../shared/db/copy.ts';
import { openTestDatabase } from '../../support/database.ts';

const { db } = await openTestDatabase();
beforeAll(async () => {
  await db.query(
    'CREATE TABLE copied (place int GENERATED ALWAYS AS IDENTITY, a text, b text, n int, list text[], raw bytea)',
  );
});
beforeEach(async () => void (await db.query('TRUNCATE copied')));
const columns = ['a', 'b', 'n', 'list', 'raw'];
type Values = [string | null, string | null, number | null, string[] | null, Buffer | null];

/** Writes rows. Returns the rows of the table. */
async function copied(rows: readonly CopyRow[]): Promise<CopyValue[][]> {
  await db.transaction((tx) => copyIn(tx, { table: 'copied', columns }, rows));
  const { rows: stored } = await db.query<Record<string, CopyValue>>(
    'SELECT * FROM copied ORDER BY place',
  );
  return stored.map((row) => columns.map((name) => row[name] ?? null));
}

test('rows arrive unchanged: empty texts, null, special characters, bytes', async () => {
  const rows: Values[] = [
    ['', '', 0, [], Buffer.alloc(0)],
    [null, null, null, null, null],
    [
      '\t',
      'a\tb\nc\rd\\N',
      -1,
      ['"', '\\', ',', '{}', 'NULL', ''],
      Buffer.from([0, 9, 10, 92, 255]),
    ],
    ['\\N', '推送 пуш 😀', 2, ['频道'], Buffer.from('\\x')],
  ];
  const encoder = new RowEncoder();
  expect(await copied(rows.map((row) => encoder.encode(row)))).toEqual(rows);
});

test('rows fill several buffers, and a row may be longer than a buffer', async () => {
  const lengths = [1, 200_000, 200_000, 900_000, 3];
  const rows = lengths.map((length, i): Values => ['推'.repeat(length), 'x', i, null, null]);
  const encoder = new RowEncoder();
  const encoded = rows.map((row) => encoder.encode(row));
  expect(new Set(encoded.map(({ buffer }) => buffer)).size).toBeGreaterThan(2);
  expect(await copied(encoded)).toEqual(rows);
});

test('skipped rows between others are not written', async () => {
  const encoder = new RowEncoder();
  const encoded = Array.from({ length: 9 }, (_, i) =>
    encoder.encode([`row ${i}`, null, i, null, null]),
  );
  const kept = encoded.filter((_, i) => i % 3 !== 1);
  expect((await copied(kept.toReversed())).map(([, , n]) => n)).toEqual([8, 6, 5, 3, 2, 0]);
});

test('a row can get another first value, and is otherwise unchanged', async () => {
  const encoder = new RowEncoder();
  const row = encoder.encode(['first', 'x\ty', 7, ['z'], null]);
  const others = [
    encoder.withFirst('a\tb', row),
    encoder.withFirst(null, row),
    encoder.withFirst('', row),
  ];
  expect(await copied([...others, row])).toEqual(
    ['a\tb', null, '', 'first'].map((first) => [first, 'x\ty', 7, ['z'], null]),
  );
});
