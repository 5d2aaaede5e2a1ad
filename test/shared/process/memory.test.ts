import { expect, it } from 'vitest';
import { IdlePeriods } from '../../../shared/process/memory.ts';

it('memory is collected in the first idle interval, and again only after a busy one', () => {
  const periods = new IdlePeriods();
  const loads = [0.9, 0.1, 0.01, 0, 0.1, 0, 0.6, 0.04, 0];
  expect(loads.map((load) => periods.take(load))).toEqual([
    false,
    false,
    true,
    false,
    false,
    false,
    false,
    true,
    false,
  ]);
});
