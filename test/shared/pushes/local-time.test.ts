import { describe, expect, test } from 'vitest';
import {
  isTimeZone,
  nextStartMs,
  parseLocalTime,
  startInZone,
} from '../../../shared/domain/pushes/local-time.ts';

const startAt = (time: string, zone: string): string | undefined => {
  const ms = startInZone(parseLocalTime(time) ?? Number.NaN, zone);
  return ms === undefined ? undefined : new Date(ms).toISOString();
};

describe('a local time', () => {
  test.each([
    ['Asia/Shanghai', '2026-12-01T01:00:00.000Z'],
    ['asia/shanghai', '2026-12-01T01:00:00.000Z'],
    ['PRC', '2026-12-01T01:00:00.000Z'],
    ['GMT+08:00', '2026-12-01T01:00:00.000Z'],
    ['GMT+0800', '2026-12-01T01:00:00.000Z'],
    ['UTC+8', '2026-12-01T01:00:00.000Z'],
    ['Etc/GMT-8', '2026-12-01T01:00:00.000Z'],
    ['Asia/Kathmandu', '2026-12-01T03:15:00.000Z'],
    ['Pacific/Kiritimati', '2026-11-30T19:00:00.000Z'],
    ['Pacific/Niue', '2026-12-01T20:00:00.000Z'],
    ['UTC', '2026-12-01T09:00:00.000Z'],
  ])('is reached in %s at %s', (zone, expected) => {
    expect(startAt('2026-12-01T09:00:00', zone)).toBe(expected);
  });

  test.each(['Mars/Olympus', '', 'GMT+15:00', 'GMT+08:07', 'x'.repeat(100), '../etc/passwd'])(
    'is reached in no zone named %j',
    (zone) => {
      expect(isTimeZone(zone)).toBe(false);
      expect(startAt('2026-12-01T09:00:00', zone)).toBeUndefined();
    },
  );

  test('that occurs twice means its first occurrence', () => {
    expect(startAt('2026-11-01T01:30:00', 'America/New_York')).toBe('2026-11-01T05:30:00.000Z');
    expect(startAt('2026-10-25T02:30:00', 'Europe/Berlin')).toBe('2026-10-25T00:30:00.000Z');
  });

  test('that is skipped moves forward by the skipped time', () => {
    expect(startAt('2026-03-08T02:30:00', 'America/New_York')).toBe('2026-03-08T07:30:00.000Z');
    expect(startAt('2026-03-29T02:30:00', 'Europe/Berlin')).toBe('2026-03-29T01:30:00.000Z');
    expect(startAt('2026-10-04T02:15:00', 'Australia/Lord_Howe')).toBe('2026-10-03T15:45:00.000Z');
  });

  test.each([
    '2026-12-01T09:00:00Z',
    '2026-12-01T09:00:00+08:00',
    '2026-13-01T09:00:00',
    '2026-12-01',
    'x',
  ])('is not %s', (text) => {
    expect(parseLocalTime(text)).toBeUndefined();
  });
});

describe('the next start', () => {
  const wallMs = Date.UTC(2026, 11, 1, 9);
  const hour = 3_600_000;

  test('ends with the last zone of the audience', () => {
    const starts = [wallMs - 8 * hour];
    expect(nextStartMs(wallMs, { afterMs: wallMs - 8 * hour, nowMs: 0, starts })).toBeNull();
    expect(nextStartMs(wallMs, { afterMs: 0, nowMs: 0, starts: [] })).toBeNull();
  });

  test('includes zones that are added meanwhile, in the future only', () => {
    const starts = [wallMs + 5 * hour];
    const afterMs = wallMs - 8 * hour;
    expect(nextStartMs(wallMs, { afterMs, nowMs: afterMs, starts })).toBe(wallMs - 7 * hour);
    expect(nextStartMs(wallMs, { afterMs, nowMs: wallMs + 10 * hour, starts })).toBe(
      wallMs + 5 * hour,
    );
  });

  test('occurs at most about forty times', () => {
    let count = 0;
    const starts = [wallMs + 12 * hour];
    for (let afterMs: number | null = wallMs - 15 * hour; afterMs !== null; count += 1)
      afterMs = nextStartMs(wallMs, { afterMs, nowMs: afterMs, starts });
    expect(count).toBeLessThanOrEqual(42);
  });
});
