import { expect, test } from 'vitest';
import type { Route } from '../../../connectors/routing.ts';
import { toBatches } from '../../../dispatcher/planning/batches.ts';
import { pageOfRows } from '../../../dispatcher/planning/pages.ts';

const apns: Route = { connector: 'apns', profile: '_default' };
const fcm: Route = { connector: 'fcm', profile: '_default' };

/**
 * Returns the batch sizes of a page of installations of one route. By default, the page has 5,000
 * installations.
 */
function sizesOf(
  route: Route,
  planned: number,
  flowControl: number | null = null,
  length = 5000,
): number[] {
  const page = pageOfRows(
    Array.from({ length }, (_, i) => ({ id: i + 1, routingKey: '(ios,,,,,t,f,f)' })),
  );
  const { batches } = toBatches(page, { routes: { routeOf: () => route }, flowControl, planned });
  return batches.map(({ recipients }) => recipients.length);
}

test('batches of a large push to single devices grow from 1,000 to 2,500 to 5,000', () => {
  expect(sizesOf(apns, 0)).toEqual([1000, 1000, 1000, 1000, 1000]);
  expect(sizesOf(apns, 999)).toHaveLength(5);
  expect(sizesOf(apns, 1000)).toEqual([2500, 2500]);
  expect(sizesOf(apns, 4999)).toEqual([2500, 2500]);
  expect(sizesOf(apns, 5000)).toEqual([5000]);
});

test('a push to ten thousand has two batches after its first batch', () => {
  expect(sizesOf(apns, 1000, null, 9000)).toEqual([4500, 4500]);
  expect(sizesOf(apns, 1000, null, 10_000)).toEqual([5000, 5000]);
  expect(sizesOf(apns, 1000, null, 2000)).toEqual([2000]);
  expect(sizesOf(apns, 11_000, null, 10_000)).toEqual([5000, 5000]);
});

test("batches with a rate stay small, for flow control and for a gateway's rate", () => {
  expect(sizesOf(apns, 50_000, 8000)).toHaveLength(5);
  expect(sizesOf(fcm, 50_000)).toHaveLength(5);
});

test('batches of a gateway with many devices per request stay small', () => {
  expect(sizesOf({ connector: 'vendor_a', profile: '_default' }, 50_000)).toHaveLength(5);
});

test('each page of a push with two expected halves is a batch', () => {
  const sizesOfHalf = (route: Route, length: number) => {
    const page = pageOfRows(
      Array.from({ length }, (_, i) => ({ id: i + 1, routingKey: '(ios,,,,,t,f,f)' })),
    );
    const context = {
      routes: { routeOf: () => route },
      flowControl: null,
      planned: 0,
      isHalved: true,
    };
    return toBatches(page, context).batches.map(({ recipients }) => recipients.length);
  };
  expect(sizesOfHalf(apns, 1250)).toEqual([1250]);
  expect(sizesOfHalf(apns, 5000)).toEqual([5000]);
  expect(sizesOfHalf(fcm, 2500)).toEqual([1000, 1000, 500]);
});

test('a page with a routing key per device, all of one route, does not block the process', () => {
  const ids = Array.from({ length: 10_000 }, (_, i) => i + 1);
  // The keys come in another order than the ids.
  const rows = ids.map((id) => ({ id, routingKey: `key ${(id * 7919) % ids.length}` }));
  const page = pageOfRows(rows.toSorted((a, b) => (a.routingKey < b.routingKey ? -1 : 1)));
  const startedAtMs = performance.now();
  const { batches } = toBatches(page, {
    routes: { routeOf: () => apns },
    flowControl: null,
    planned: 20_000,
  });
  expect(performance.now() - startedAtMs).toBeLessThan(300);
  expect(batches.map(({ recipients }) => recipients)).toEqual([
    ids.slice(0, 5000),
    ids.slice(5000),
  ]);
});
