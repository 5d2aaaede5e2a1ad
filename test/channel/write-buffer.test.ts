import { expect, test } from 'vitest';
import { maxWaiting, WriteBuffer } from '../../api/channel/write-buffer.ts';
import { silentLog } from '../support/api.ts';

/** Buffer whose first write waits for `release`. */
function blockedBuffer() {
  const written: number[][] = [];
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let onWriting = () => {};
  const writing = new Promise<void>((resolve) => {
    onWriting = resolve;
  });
  const buffer = new WriteBuffer<number>({
    name: 'test',
    delayMs: 1,
    log: silentLog,
    write: async (items) => {
      onWriting();
      await released;
      written.push(items);
    },
  });
  return { buffer, written, writing, release };
}

test('items that arrive during a write are written together', async () => {
  const { buffer, written, writing, release } = blockedBuffer();
  buffer.add(1);
  await writing;
  for (const item of [2, 3, 4]) buffer.add(item);
  release();
  await buffer.drain();
  expect(written).toEqual([[1], [2, 3, 4]]);
});

test('a buffer holds a limited number of items while the database is away, and drops more', async () => {
  const { buffer, written, writing, release } = blockedBuffer();
  buffer.add(0);
  await writing;
  for (let item = 1; item <= maxWaiting + 10; item += 1) buffer.add(item);
  release();
  await buffer.drain();
  const items = written.flat();
  expect(items.length).toBe(maxWaiting + 1);
  expect(items.at(-1)).toBe(maxWaiting);
});
