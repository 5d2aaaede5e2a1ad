import { describe, expect, test } from 'vitest';
import { dayMs, hourMs, minuteMs } from '../../../shared/clock.ts';
import {
  checkRecurrence,
  dueTimes,
  localText,
  nextTime,
  type Recurrence,
  timesAfter,
} from '../../../shared/domain/pushes/recurrence.ts';

const of = (expression: string, timeZone = 'UTC', more: Partial<Recurrence> = {}): Recurrence => ({
  expression,
  timeZone,
  startsAt: null,
  endsAt: null,
  ...more,
});

const nextTimes = (recurrence: Recurrence, after: Date, count: number): Date[] => [
  ...timesAfter(recurrence, after).take(count),
];

describe('a recurrence', () => {
  test.each([
    ['four fields', of('0 9 * *')],
    ['six fields', of('0 0 9 * * *')],
    ['an alias', of('@daily')],
    ['a random field', of('H 9 * * *')],
    ['a minute of 60', of('60 9 * * *')],
    ['a day that never comes', of('0 9 30 2 *')],
    ['a control character', of('0 9 * * *\0')],
    ['101 characters', of(`${'0,'.repeat(46)}0 9 * * *`)],
    ['times four minutes apart', of('*/4 * * * *')],
    ['the last minute of an hour and the first of the next', of('0,58 9,10 * * *')],
    ['the last minute of a day and the first of the next', of('0,58 0,23 * * *')],
    ['an unknown time zone', of('0 9 * * *', 'Mars/Olympus')],
    ['a distance from UTC', of('0 9 * * *', '+08:00')],
    [
      'an end before its start',
      of('0 9 * * *', 'UTC', { startsAt: new Date(2), endsAt: new Date(1) }),
    ],
  ])('is refused with %s', (_name, recurrence) => {
    expect(() => checkRecurrence(recurrence)).toThrow(expect.objectContaining({ code: 1 }));
  });

  test.each(['*/5 * * * *', '0,58 9 * * *', '0 9 L * *', '30 8 * * 1#1', '0 9 * JAN-MAR mon-fri'])(
    'accepts %s',
    (expression) => {
      expect(checkRecurrence(of(`  ${expression.replace(' ', '   ')}`)).expression).toBe(
        expression,
      );
    },
  );

  test('starts with the first time, and ends before the last time', () => {
    const at = (text: string) => new Date(`2027-01-${text}:00Z`);
    const limits = { startsAt: at('05T09:00'), endsAt: at('07T09:00') };
    const recurrence = of('0 9 * * *', 'UTC', limits);
    expect(nextTimes(recurrence, at('01T00:00'), 5)).toEqual([at('05T09:00'), at('06T09:00')]);
    expect(nextTime(recurrence, at('05T09:00'))).toEqual(at('06T09:00'));
    expect(nextTime(recurrence, at('06T09:00'))).toBeNull();
  });
});

describe('a search for the next time', () => {
  const now = new Date('2026-11-26T00:00:00Z');

  test.each([
    ['0 0 29 2 *', 'UTC', '2228-02-29T00:00:00.000Z'],
    ['59 23 29 2 *', 'America/New_York', '2228-03-01T04:59:00.000Z'],
    ['0 0 1 1 *', 'Asia/Shanghai', '2075-12-31T16:00:00.000Z'],
  ])('finds times that are years apart: %s in %s', (expression, zone, last) => {
    const times = nextTimes(of(expression, zone), now, last.startsWith('2228') ? 49 : 50);
    expect(times.at(-1)?.toISOString()).toBe(last);
    expect(new Set(times.map(Number)).size).toBe(times.length);
  });

  test.each([
    ['0 0 * 2 1#5', 'UTC'],
    ['0 0 30,31 2 1#5', 'America/New_York'],
  ])('ends if the next time is more than ten years away: %s in %s', (expression, zone) => {
    expect(nextTimes(of(expression, zone), now, 50)).toEqual([]);
    expect(nextTime(of(expression, zone), now)).toBeNull();
  });

  test('starts at the given time, however distant, and never passes the end', () => {
    const startsAt = new Date('9990-01-01T00:00:00Z');
    expect(nextTime(of('0 0 1 1 *', 'UTC', { startsAt }), now)).toEqual(startsAt);
    const endsAt = new Date('2026-11-27T00:00:00Z');
    expect(nextTimes(of('0 0 29 2 *', 'UTC', { endsAt }), now, 50)).toEqual([]);
    expect(nextTime(of('0 0 * * *', 'UTC', { endsAt: now }), now)).toBeNull();
  });
});

describe('at a clock change', () => {
  const localTimes = (recurrence: Recurrence, after: string, count: number) =>
    nextTimes(recurrence, new Date(after), count).map((at) => localText(at, recurrence.timeZone));

  test('a skipped time moves by an hour', () => {
    expect(localTimes(of('30 2 * * *', 'America/New_York'), '2027-03-13T05:00:00Z', 3)).toEqual([
      '2027-03-13T02:30:00-05:00',
      '2027-03-14T03:30:00-04:00',
      '2027-03-15T02:30:00-04:00',
    ]);
  });

  test('a skipped time and the time after it create one push', () => {
    expect(localTimes(of('0 2,3 * * *', 'Europe/Paris'), '2027-03-27T12:00:00Z', 2)).toEqual([
      '2027-03-28T03:00:00+02:00',
      '2027-03-29T02:00:00+02:00',
    ]);
  });

  test('the first of two equal times counts', () => {
    expect(localTimes(of('30 1 * * *', 'America/New_York'), '2027-11-07T00:00:00Z', 2)).toEqual([
      '2027-11-07T01:30:00-04:00',
      '2027-11-08T01:30:00-05:00',
    ]);
  });

  test('an hourly expression counts each hour', () => {
    expect(localTimes(of('30 * * * *', 'America/New_York'), '2027-11-07T05:00:00Z', 3)).toEqual([
      '2027-11-07T01:30:00-04:00',
      '2027-11-07T01:30:00-05:00',
      '2027-11-07T02:30:00-05:00',
    ]);
  });

  test('a skipped midnight is an hour later', () => {
    expect(localTimes(of('0 0 * * *', 'Asia/Beirut'), '2027-03-27T12:00:00Z', 1)).toEqual([
      '2027-03-28T01:00:00+03:00',
    ]);
  });
});

describe('due times', () => {
  const now = new Date('2027-06-10T09:10:00Z');
  const ago = (ms: number) => new Date(now.getTime() - ms);
  const due = (
    first: Date,
    more: { lifeMs?: number; skipBefore?: Date; recurrence?: Recurrence } = {},
  ) =>
    dueTimes(more.recurrence ?? of('0 9 * * *'), {
      first,
      now,
      lifeMs: more.lifeMs ?? dayMs,
      skipBefore: more.skipBefore ?? null,
    });
  const nine = ago(10 * minuteMs);
  const next = new Date('2027-06-11T09:00:00Z');

  test('send only the most recent missed run', () => {
    expect(due(nine)).toEqual({ start: nine, missed: 0, next });
    expect(due(ago(10 * minuteMs + 3 * dayMs))).toEqual({ start: nine, missed: 3, next });
  });

  test('send no missed run after an hour, after its lifetime, or after a restore', () => {
    const late = of('0 8 * * *');
    const eight = ago(hourMs + 10 * minuteMs);
    expect(due(eight, { recurrence: late })).toMatchObject({ start: undefined, missed: 1 });
    expect(due(nine, { lifeMs: minuteMs })).toEqual({ start: undefined, missed: 1, next });
    expect(due(nine, { skipBefore: ago(minuteMs) })).toEqual({ start: undefined, missed: 1, next });
    expect(due(nine, { skipBefore: ago(hourMs) })).toMatchObject({ start: nine });
  });

  test('of a year are counted up to a limit, at no extra cost', () => {
    const recurrence = of('*/5 * * * *');
    const { start, missed } = due(ago(365 * dayMs), { recurrence });
    expect({ start, missed }).toEqual({ start: now, missed: 1000 });
    const ended = { ...recurrence, endsAt: ago(dayMs) };
    expect(due(ago(365 * dayMs), { recurrence: ended })).toMatchObject({
      start: undefined,
      next: null,
    });
  });
});
