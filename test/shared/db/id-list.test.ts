import { expect, test } from 'vitest';
import { parseIdList } from '../../../shared/db/pool.ts';

test('a list of ids is parsed with and without braces', () => {
  expect(parseIdList('{1,22,333}')).toEqual([1, 22, 333]);
  expect(parseIdList('9007199254740991,5')).toEqual([9007199254740991, 5]);
  expect(parseIdList('{7}')).toEqual([7]);
});

test('an empty list has no ids, and other numbers are parsed too', () => {
  expect(parseIdList('{}')).toEqual([]);
  expect(parseIdList('')).toEqual([]);
  expect(parseIdList('{-1,2}')).toEqual([-1, 2]);
});
