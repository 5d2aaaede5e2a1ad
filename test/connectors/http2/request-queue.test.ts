import { describe, expect, test } from 'vitest';
import type { BatchState, Exchange } from '../../../connectors/http2/http2-wrapper/exchange.ts';
import { newExchange } from '../../../connectors/http2/http2-wrapper/exchange.ts';
import { RequestQueue } from '../../../connectors/http2/http2-wrapper/request-queue.ts';

/** Returns a batch; tests compare batches by identity only. */
const batch = (): BatchState => Object.create(null);

const requests = (state: BatchState, count: number, queuedAtMs = 0): Exchange[] =>
  Array.from({ length: count }, (_, index) => newExchange(state, index, { path: '/' }, queuedAtMs));

function drain(queue: RequestQueue): Exchange[] {
  const taken: Exchange[] = [];
  for (let next = queue.shift(); next; next = queue.shift()) taken.push(next);
  return taken;
}

describe('requests that wait for a stream', () => {
  test('batches take turns: one request does not wait for a thousand of another batch', () => {
    const queue = new RequestQueue();
    const [large, small] = [batch(), batch()];
    for (const exchange of requests(large, 1000)) queue.push(exchange);
    for (const exchange of requests(small, 1)) queue.push(exchange);
    expect(drain(queue).findIndex((exchange) => exchange.state === small)).toBeLessThan(2);
  });

  test('all come out once, those of one batch in their order', () => {
    const queue = new RequestQueue();
    const batches = [batch(), batch(), batch()];
    const all = batches.flatMap((state, i) => requests(state, 10 * (i + 1)));
    for (const exchange of all) queue.push(exchange);
    expect(queue.length).toBe(60);
    const taken = drain(queue);
    expect(new Set(taken).size).toBe(60);
    expect(queue.length).toBe(0);
    for (const state of batches) {
      const own = taken.filter((exchange) => exchange.state === state);
      expect(own).toEqual(all.filter((exchange) => exchange.state === state));
    }
  });

  test('returned requests go first', () => {
    const queue = new RequestQueue();
    const [waiting, returned] = [batch(), batch()];
    for (const exchange of requests(waiting, 3)) queue.push(exchange);
    const [back] = requests(returned, 1);
    if (back) queue.pushFront(back);
    expect(queue.shift()).toBe(back);
  });

  test('a batch, or all overdue requests, can be taken out', () => {
    const queue = new RequestQueue();
    const [old, young] = [batch(), batch()];
    for (const exchange of [...requests(old, 3, 10), ...requests(young, 2, 50)]) queue.push(exchange);
    expect(queue.takeOlderThan(5)).toEqual([]);
    expect(queue.takeOlderThan(20)).toHaveLength(3);
    expect(queue.takeBatch(young)).toHaveLength(2);
    expect(queue.length).toBe(0);
  });
});
