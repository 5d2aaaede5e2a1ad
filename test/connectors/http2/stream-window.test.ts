import { describe, expect, test } from 'vitest';
import { StreamWindow } from '../../../connectors/http2/streams/stream-table.ts';

const peerLimit = 1000;

/**
 * Simulates a peer with a given rate and latency, and a caller that always has more requests.
 * Returns, for each second, the requests in flight and the number of replies.
 */
function simulate(
  window: StreamWindow,
  peer: (second: number) => { perSecond: number; trip: number },
) {
  const stepMs = 10;
  /** Write times of the requests in flight, oldest first. */
  const waiting: number[] = [];
  return (seconds: number, fromMs = 0) => {
    const seen: { open: number; answered: number }[] = [];
    let credit = 0;
    let answered = 0;
    for (let nowMs = fromMs + stepMs; nowMs <= fromMs + seconds * 1000; nowMs += stepMs) {
      const { perSecond, trip } = peer(nowMs / 1000);
      credit = Math.min(credit + (perSecond * stepMs) / 1000, perSecond);
      for (
        ;
        credit >= 1 && nowMs - (waiting[0] ?? Number.POSITIVE_INFINITY) >= trip * 1000;
        credit -= 1
      ) {
        window.onResponse((nowMs - (waiting.shift() ?? nowMs)) / 1000);
        answered += 1;
      }
      window.onRead(nowMs);
      while (waiting.length < window.limitFor(peerLimit)) waiting.push(nowMs);
      window.onFull();
      if ((nowMs - fromMs) % 1000 === 0) {
        seen.push({ open: waiting.length, answered });
        answered = 0;
      }
    }
    return seen;
  };
}

describe('the number of requests in flight', () => {
  test('soon reaches the limit of a fast peer', () => {
    const seen = simulate(new StreamWindow(0), () => ({ perSecond: 1_000_000, trip: 0.05 }))(2);
    expect(seen[0]?.open).toBe(peerLimit);
  });

  test('is the number that a slow peer answers in less than a second, without idling it', () => {
    const seen = simulate(new StreamWindow(0), () => ({ perSecond: 200, trip: 0.02 }))(20);
    for (const { open, answered } of seen.slice(3)) {
      expect(open).toBeLessThanOrEqual(200 * 0.9);
      expect(answered).toBeGreaterThan(200 * 0.9);
    }
  });

  test('stays at the limit of a fast, distant peer', () => {
    const seen = simulate(new StreamWindow(0), () => ({ perSecond: 1_000_000, trip: 0.8 }))(20);
    expect(seen.at(-1)?.open).toBe(peerLimit);
  });

  test('shrinks when a peer becomes slow, and grows when it is fast again', () => {
    const window = new StreamWindow(0);
    const run = simulate(window, (second) => ({
      perSecond: second > 5 && second <= 25 ? 100 : 1_000_000,
      trip: 0.02,
    }));
    const seen = run(30);
    expect(seen[3]?.open).toBe(peerLimit);
    // Requests that are in flight at the change take ten seconds.
    expect(seen[22]?.open).toBeLessThanOrEqual(90);
    expect(seen[28]?.open).toBe(peerLimit);
  });

  test('never falls to zero', () => {
    const seen = simulate(new StreamWindow(0), () => ({ perSecond: 2, trip: 0.02 }))(30);
    expect(seen.at(-1)?.open).toBeGreaterThanOrEqual(10);
  });
});
