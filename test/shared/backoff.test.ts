import { describe, expect, test } from 'vitest';
import { longerWait, minRetryMs, retryMs } from '../../shared/backoff.ts';
import { dayMs } from '../../shared/clock.ts';
import { retryAfterMs } from '../../shared/http/result.ts';

const limits = { firstMs: 1000, maxMs: 60_000, maxRequestedMs: dayMs };
const nowMs = Date.parse('2026-11-26T08:00:00Z');

describe('the pause before a retry', () => {
  test.each([null, 0, 1, 400, -5, Number.NaN])(
    'is never below the back-off if %s ms are requested',
    (requestedMs) => {
      let sum = 0;
      for (let failures = 0; failures < 11; failures += 1) {
        const wait = retryMs(failures, longerWait(null, requestedMs), limits);
        expect(wait).toBeGreaterThanOrEqual(Math.min(500 * 2 ** failures, 30_000));
        expect(wait).toBeLessThanOrEqual(Math.min(1000 * 2 ** failures, 60_000));
        sum += wait;
      }
      // Twelve attempts are not used up within seconds.
      expect(sum).toBeGreaterThan(180_000);
    },
  );

  test.each([2000, 45_000, 3_600_000])('is at least the requested %i ms', (requestedMs) => {
    for (const failures of [0, 1, 5, 11]) {
      expect(retryMs(failures, requestedMs, limits)).toBeGreaterThanOrEqual(requestedMs);
      expect(minRetryMs(failures, requestedMs, limits)).toBeGreaterThanOrEqual(requestedMs);
    }
    expect(retryMs(0, requestedMs, limits)).toBeLessThanOrEqual(requestedMs + 1000);
  });

  test('is limited, whatever is requested', () => {
    for (const requestedMs of [dayMs * 10, Number.MAX_VALUE, Number.POSITIVE_INFINITY])
      expect(retryMs(11, requestedMs, limits)).toBeLessThanOrEqual(dayMs + 60_000);
  });

  test("is the longer of our minimum and the other side's number", () => {
    expect(longerWait(10_000, 1)).toBe(10_000);
    expect(longerWait(10_000, 17_000)).toBe(17_000);
    expect(longerWait(undefined, 0)).toBeNull();
    expect(longerWait(null, null)).toBeNull();
  });
});

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['7', 7000],
    [' 7 ', 7000],
    ['007', 7000],
    ['Thu, 26 Nov 2026 08:00:30 GMT', 30_000],
    ['Thursday, 26-Nov-26 08:00:30 GMT', 30_000],
    ['Thu Nov 26 08:00:30 2026', 30_000],
    ['Thu, 26 Nov 2026 07:00:00 GMT', 0],
    ['Sat, 26 Nov 2095 08:00:00 GMT', dayMs],
    ['99999999999999999999999', dayMs],
  ])('%j is %i ms', (text, expected) => {
    expect(retryAfterMs(text, nowMs)).toBe(expected);
  });

  test.each([
    '',
    ' ',
    '1.5',
    '-1',
    '+5',
    '1e3',
    '0x10',
    '5s',
    '5, 10',
    'soon',
    'NaN',
    'Infinity',
    '١٢',
    '2026-11-26T08:00:30Z',
    'Thu, 26 Nov 2026 08:00:30 +0800',
    'Thu, 26 Nov 2026 08:00:30',
    'Thu, 99 Nov 2026 08:00:30 GMT',
    '11/26/2026',
    'null',
  ])('%j is ignored', (text) => {
    expect(retryAfterMs(text, nowMs)).toBeNull();
  });
});
