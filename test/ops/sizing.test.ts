import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { type Costs, sizeOf, sizingTable } from '../../ops/bench/size/sizing.ts';

const costs: Costs = {
  devices: 1_000_000,
  recipientsPerSecond: 100_000,
  dispatcherCpu: 0.006,
  databaseCpu: 0.003,
  bytes: 600,
  saveApiCpu: 0.0002,
  saveDatabaseCpu: 0.0001,
};

test('the needs of a hundred million installations follow from the costs', () => {
  expect(sizeOf(100_000_000, costs)).toMatchObject({
    recipientsPerSecond: 100_000_000 / 600,
    // 166,667/s × 6 µs = 1 s of CPU time per second, at 60 % busy.
    dispatcherCores: 2,
    // 4,630 saves/s × 0.2 ms = 0.93
    apiCores: 2,
    // 0.5 of the push and 0.46 of the saves
    databaseCores: 2,
    databaseGigabytes: 60,
    isMeasured: false,
  });
});

test('only measured values are called measured', () => {
  expect(sizeOf(1_000_000, costs).isMeasured).toBe(true);
  expect(sizeOf(1_000_000, { ...costs, devices: 999_999 }).isMeasured).toBe(false);
  expect(sizeOf(1_000_000, { ...costs, recipientsPerSecond: 1000 }).isMeasured).toBe(false);
  expect(sizingTable(costs).match(/\| arithmetic \|/g)).toHaveLength(3);
});

test('the page has a table', async () => {
  const page = await readFile(new URL('../../docs/operate/sizing.md', import.meta.url), 'utf8');
  expect(page).toMatch(
    /<!-- written by .* -->\n\| installations \|[\s\S]*\| 1,000,000,000 \|[\s\S]*<!-- end -->/,
  );
});
