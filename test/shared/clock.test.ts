import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { isDoneWithin } from '../../shared/clock.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('work that finishes in time leaves no timer', async () => {
  const work = Promise.withResolvers<void>();
  const isDone = isDoneWithin(work.promise, 1000);
  await vi.advanceTimersByTimeAsync(999);
  work.resolve();
  expect(await isDone).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test('work that takes longer is not waited for', async () => {
  const work = Promise.withResolvers<void>();
  const isDone = isDoneWithin(work.promise, 1000);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await isDone).toBe(false);
  work.reject(new Error('too late to be reported'));
});

test('work that fails in time rejects and leaves no timer', async () => {
  await expect(isDoneWithin(Promise.reject(new Error('failed')), 1000)).rejects.toThrow('failed');
  expect(vi.getTimerCount()).toBe(0);
});
