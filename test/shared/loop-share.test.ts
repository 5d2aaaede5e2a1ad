import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LoopShare } from '../../shared/event-loop.ts';

test('in a short tick every call starts immediately', () => {
  let nowMs = 0;
  const share = new LoopShare(() => nowMs);
  for (let i = 0; i < 50; i++) expect(share.enter('a')).toBeUndefined();
  nowMs = 1;
  expect(share.enter('a')).toBeInstanceOf(Promise);
});

test('in a long tick an app starts two calls; another app does not wait', async () => {
  let nowMs = 0;
  const share = new LoopShare(() => nowMs++);
  const started: string[] = [];
  const enter = (appId: string, name: string) => {
    const turn = share.enter(appId);
    if (turn) void turn.then(() => started.push(name));
    else started.push(name);
  };
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) enter('a', name);
  enter('b', 'b1');
  expect(started).toEqual(['a1', 'a2', 'b1']);
  await nextTurn();
  expect(started).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
  // A later call waits behind the waiting calls, and for a slot in this tick.
  enter('a', 'a6');
  enter('b', 'b2');
  expect(started.slice(5)).toEqual(['b2']);
  await nextTurn();
  expect(started.slice(6)).toEqual(['a5', 'a6']);
  await nextTurn();
  await nextTurn();
  enter('a', 'a7');
  expect(started.at(-1)).toBe('a7');
});
