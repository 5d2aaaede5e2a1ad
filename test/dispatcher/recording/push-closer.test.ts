import { expect, test } from 'vitest';
import { PushCloser } from '../../../dispatcher/recording/push-closer.ts';

test('a push may be closed after the last of its batches in work, if one of them was settled', () => {
  const closer = new PushCloser();
  closer.begin(1);
  closer.begin(1);
  closer.begin(2);
  closer.markSettled(1);
  expect(closer.end(1)).toBe(false);
  expect(closer.end(2)).toBe(false);
  // The last one went back unfinished: the push may have been waiting for the settled one only.
  expect(closer.end(1)).toBe(true);
  closer.begin(1);
  expect(closer.end(1)).toBe(false);
});

test('each of several batches that are in work one after the other may close the push', () => {
  const closer = new PushCloser();
  for (let i = 0; i < 2; i += 1) {
    closer.begin(1);
    closer.markSettled(1);
    expect(closer.end(1)).toBe(true);
  }
});

test('batches that end before others are written do not close the push, whether planning or a batch ends last', () => {
  const closer = new PushCloser();
  closer.begin(1);
  closer.begin(1);
  closer.markSettled(1);
  expect(closer.end(1)).toBe(false);
  closer.forgetSettled(1);
  expect(closer.end(1)).toBe(false);

  closer.begin(1);
  closer.forgetSettled(1);
  closer.begin(1);
  closer.markSettled(1);
  expect(closer.end(1)).toBe(false);
  expect(closer.end(1)).toBe(true);
});
