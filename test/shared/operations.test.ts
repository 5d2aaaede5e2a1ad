import { expect, test, vi } from 'vitest';
import type { Json } from '../../shared/domain/json.ts';
import { applyWrites } from '../../shared/domain/objects/operations.ts';

/** Applies operations as one `Batch`, and returns the value. */
function applied(current: Json, ops: Json[]): Json | undefined {
  const members = new Map([['list', current]]);
  applyWrites(members, [{ path: ['list'], value: { __op: 'Batch', ops } }]);
  return members.get('list');
}

const add = (...objects: Json[]): Json => ({ __op: 'Add', objects });
const addUnique = (...objects: Json[]): Json => ({ __op: 'AddUnique', objects });
const remove = (...objects: Json[]): Json => ({ __op: 'Remove', objects });
const batch = (...ops: Json[]): Json => ({ __op: 'Batch', ops });

test.each<[string, Json, Json[], Json | undefined]>([
  ['adds to no array', null, [add(1), add(1, 2)], [1, 1, 2]],
  ['adds what is not there', [1, 1], [addUnique(1, 2, 2), add(3), addUnique(3)], [1, 1, 2, 3]],
  ['removes all equal items', [1, 2, 1, { a: 1, b: 2 }], [remove(1), remove({ b: 2, a: 1 })], [2]],
  ['adds what was removed', [1, 2], [remove(1), addUnique(1), add(2), remove(2)], [1]],
  ['removes what was added', [], [addUnique(1), add(2), remove(1, 3), addUnique(1)], [2, 1]],
  ['forgets a deleted array', [1], [add(2), { __op: 'Delete' }, addUnique(1)], [1]],
  ['contains other batches', [1], [batch(add(2)), batch(batch(remove(1)))], [2]],
  ['counts after a deletion', [1], [add(2), { __op: 'Delete' }, { __op: 'Increment' }], 1],
  ['deletes the value', [1], [add(2), { __op: 'Delete' }], undefined],
])('a Batch %s', (_does, current, ops, result) => {
  expect(applied(current, ops)).toEqual(result);
});

test('a Batch compares each item once, however many operations it has', () => {
  const numbers = Array.from({ length: 1000 }, (_, i) => i);
  const stringify = vi.spyOn(JSON, 'stringify');
  const list = applied([], [...numbers.map((n) => addUnique(n)), ...numbers.map((n) => remove(n))]);
  const texts = stringify.mock.calls.length;
  stringify.mockRestore();
  expect(list).toEqual([]);
  expect(texts).toBeLessThan(5 * numbers.length);
});
