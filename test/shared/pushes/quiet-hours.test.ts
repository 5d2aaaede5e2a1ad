import { describe, expect, test } from 'vitest';
import { effectiveOptions } from '../../../shared/domain/apps/app.ts';
import { quietHoursOf } from '../../../shared/domain/pushes/push-class.ts';
import { isQuietHours, quietEndMs } from '../../../shared/domain/pushes/quiet-hours.ts';

/** Returns the end of quiet hours, or null outside quiet hours. */
function endAt(rule: string, at: string): string | null {
  const endMs = quietEndMs(rule, Date.parse(at));
  return endMs === undefined ? null : new Date(endMs).toISOString();
}

describe('quiet hours', () => {
  test.each([
    ['22:00-08:00 UTC', '2026-12-01T21:59:59.999Z', null],
    ['22:00-08:00 UTC', '2026-12-01T22:00:00.000Z', '2026-12-02T08:00:00.000Z'],
    ['22:00-08:00 UTC', '2026-12-02T00:00:00.000Z', '2026-12-02T08:00:00.000Z'],
    ['22:00-08:00 UTC', '2026-12-02T07:59:59.999Z', '2026-12-02T08:00:00.000Z'],
    ['22:00-08:00 UTC', '2026-12-02T08:00:00.000Z', null],
    ['12:00-14:30 UTC', '2026-12-01T12:30:00.000Z', '2026-12-01T14:30:00.000Z'],
    ['12:00-14:30 UTC', '2026-12-01T11:59:00.000Z', null],
    ['22:00-00:00 UTC', '2026-12-01T23:00:00.000Z', '2026-12-02T00:00:00.000Z'],
    ['22:00-08:00 Asia/Shanghai', '2026-12-01T14:00:00.000Z', '2026-12-02T00:00:00.000Z'],
    ['22:00-08:00 GMT-03:30', '2026-12-01T01:30:00.000Z', '2026-12-01T11:30:00.000Z'],
    ['22:00-08:00 Nowhere/At-All', '2026-12-01T23:00:00.000Z', null],
  ])('of %s at %s end at %s', (rule, at, end) => {
    expect(endAt(rule, at)).toBe(end);
  });

  test('are an hour shorter at the change to summer time, and longer at its end', () => {
    const rule = '22:00-08:00 Europe/Berlin';
    expect(endAt(rule, '2027-03-27T21:30:00Z')).toBe('2027-03-28T06:00:00.000Z');
    expect(endAt(rule, '2027-10-30T20:30:00Z')).toBe('2027-10-31T07:00:00.000Z');
  });

  test('end correctly if their end occurs twice or is skipped', () => {
    const rule = '22:00-02:30 Europe/Berlin';
    expect(endAt(rule, '2027-10-30T22:00:00Z')).toBe('2027-10-31T00:30:00.000Z');
    // The clock shows 02:10 for the second time.
    expect(endAt(rule, '2027-10-31T01:10:00Z')).toBe('2027-10-31T01:30:00.000Z');
    expect(endAt(rule, '2027-03-27T23:00:00Z')).toBe('2027-03-28T01:30:00.000Z');
  });

  test.each([
    '22:00',
    '22-8',
    '24:00-08:00',
    '22:60-08:00',
    '08:00-08:00',
    'off',
    '',
    ' 22:00-08:00',
  ])('are not %j', (text) => expect(isQuietHours(text)).toBe(false));

  test('come from the push, otherwise from the app; transactional pushes have none', () => {
    const options = effectiveOptions('commercial', { quietHours: '22:00-08:00' });
    expect(quietHoursOf({}, options)).toBe('22:00-08:00');
    expect(quietHoursOf({ quietHours: '20:00-09:00' }, options)).toBe('20:00-09:00');
    expect(quietHoursOf({ quietHours: 'off' }, options)).toBeNull();
    expect(quietHoursOf({ kind: 'transactional', quietHours: '20:00-09:00' }, options)).toBeNull();
    expect(quietHoursOf({}, effectiveOptions('commercial', {}))).toBeNull();
  });
});
