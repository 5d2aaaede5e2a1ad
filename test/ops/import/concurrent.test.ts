import { expect, test } from 'vitest';
import { BatchWriters } from '../../../ops/import/import.ts';
import { Database, type Handle } from '../../../shared/db/pool.ts';
import { anInstallation, useImports } from '../../support/import/imports.ts';

const fixture = useImports();
const { imported, exportFile } = fixture;
const rowsOfBatch = 2000;

test('the first of records with a common value in different batches wins', async () => {
  const first = Array.from({ length: rowsOfBatch }, () => anInstallation());
  const second = first.map(({ deviceToken }, i) =>
    anInstallation(i % 2 === 0 ? { deviceToken } : {}),
  );
  const path = await exportFile('_Installation.jsonl', [...first, ...second]);
  const refused = rowsOfBatch / 2;
  const ofFile = { read: 2 * rowsOfBatch, refused };
  expect(await imported(path)).toMatchObject({
    code: 1,
    classes: { _Installation: { ...ofFile, imported: rowsOfBatch + refused, alreadyThere: 0 } },
    refusals: expect.arrayContaining([
      expect.objectContaining({
        line: rowsOfBatch + 1,
        error: `deviceToken belongs to ${first[0]?.objectId} already.`,
      }),
    ]),
  });
  expect(await imported(path)).toMatchObject({
    code: 1,
    classes: { _Installation: { ...ofFile, imported: 0, alreadyThere: rowsOfBatch + refused } },
  });
});

interface Batch {
  connection: Handle;
  line: number;
  end: (error?: Error) => void;
}

/** Returns writers with two connections, and the batches that they received. */
function writersOfTwo() {
  const connections = [1, 2].map(
    () => new Database({ url: fixture.databaseUrl, applicationName: 'test' }),
  );
  const started: Batch[] = [];
  const writers = new BatchWriters<{ line: number; objectId: string; keyHashes: number[] }>(
    connections,
    (connection, [row]) =>
      new Promise((resolve, reject) => {
        started.push({
          connection,
          line: row?.line ?? 0,
          end: (error) => (error ? reject(error) : resolve()),
        });
      }),
  );
  const add = (line: number, ...keyHashes: number[]) =>
    writers.add([{ line, objectId: `o${line}`, keyHashes }]);
  const lines = () => started.map(({ line }) => line);
  return { writers, begun: started, add, lines };
}

test('batches are written over all connections, except batches with a common value', async () => {
  const { writers, begun, add, lines } = writersOfTwo();
  await add(1, 11);
  await add(2, 12);
  expect(begun[0]?.connection).not.toBe(begun[1]?.connection);
  const third = add(3, 11, 13);
  // The connection of the second batch is free, but the first batch and the third batch have a
  // common value.
  begun[1]?.end();
  await new Promise(setImmediate);
  expect(lines()).toEqual([1, 2]);
  begun[0]?.end();
  await third;
  expect(lines()).toEqual([1, 2, 3]);
  begun[2]?.end();
  await writers.end();
});

test('no more batches are written at once than there are connections', async () => {
  const { writers, begun, add, lines } = writersOfTwo();
  await add(1);
  await add(2);
  const third = add(3);
  await new Promise(setImmediate);
  expect(lines()).toEqual([1, 2]);
  begun[1]?.end();
  await third;
  for (const { end } of begun) end();
  await writers.end();
});

test('after a failed batch none starts, and the others finish first', async () => {
  const { writers, begun, add, lines } = writersOfTwo();
  await add(1);
  await add(2);
  begun[0]?.end(new Error('disk full'));
  await expect(add(3)).rejects.toThrow('disk full');
  let isReported = false;
  const reported = writers.end().catch(() => {
    isReported = true;
  });
  await new Promise(setImmediate);
  expect(isReported).toBe(false);
  begun[1]?.end();
  await reported;
  expect(lines()).toEqual([1, 2]);
});
