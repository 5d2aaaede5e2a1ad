import { CronExpressionParser } from 'cron-parser';
import { dayMs, hourMs } from '../../clock.ts';
import { refuse } from '../errors/errors.ts';
import { detail } from '../texts/texts.ts';

/** Times of a recurring push (protocol/push.md#recurring-pushes). */
export interface Recurrence {
  /** Cron expression of five fields. */
  expression: string;
  /** IANA time zone of the expression. */
  timeZone: string;
  /** First time that counts; null: at once. */
  startsAt: Date | null;
  /** Time from which no push is made; null: never. */
  endsAt: Date | null;
}

/** Limit of an expression, in characters. */
export const maxExpressionLength = 100;
/** Shortest distance of two starts. */
const minEveryMinutes = 5;
/**
 * Longest time between two times of an expression. 29 February is at most eight years away; an
 * expression whose times are further apart, such as a fifth Monday in February, would cost a search
 * of 28 years.
 */
const maxGapMs = 10 * 366 * dayMs;
/**
 * Time by which a start may be late: after an outage only the last missed time is caught up, if it
 * is not older.
 */
export const graceMs = hourMs;
/**
 * Pushes of a recurring push that may be open: a freeze, or an approval that nobody gives, holds no
 * more of them.
 */
export const maxOpenStarts = 10;
/**
 * Missed times that are counted one by one: more than those of three days, at the shortest
 * distance.
 */
const maxCountedMisses = 1000;

/** `H` would be drawn at random, and seconds, years and aliases are not part of the five fields. */
const fieldsOfExpression = /^[\d*/,\-?#A-Za-z]+( [\d*/,\-?#A-Za-z]+){4}$/;
const randomField = /(^|[ ,])H([ ,/(]|$)/i;
const zoneName = /^[A-Za-z_]+(\/[A-Za-z0-9_+-]+){0,2}$/;

/**
 * Returns a recurrence with single blanks in its expression. Throws 1 for an expression that is no
 * cron expression of five fields or names times less than five minutes apart, for an unknown time
 * zone, and for an end before the start.
 */
export function checkRecurrence(asked: Recurrence): Recurrence {
  const { timeZone, startsAt, endsAt } = asked;
  const expression = asked.expression.trim().replaceAll(/\s+/g, ' ');
  if (expression.length > maxExpressionLength)
    throw refuse('invalidParameter', detail('cronLength', { n: maxExpressionLength }));
  if (!fieldsOfExpression.test(expression) || randomField.test(expression))
    throw refuse('invalidParameter', detail('cronFields'));
  checkZone(timeZone);
  checkDistance(expression);
  if (startsAt && endsAt && startsAt >= endsAt)
    throw refuse('invalidParameter', detail('recurringOrder'));
  return { ...asked, expression };
}

function checkZone(timeZone: string): void {
  try {
    if (zoneName.test(timeZone)) new Intl.DateTimeFormat('en', { timeZone });
    else throw new RangeError('not a name');
  } catch {
    throw refuse('invalidParameter', detail('cronZone'));
  }
}

/** Throws 1 where an expression cannot be read, or its minutes are too close. */
function checkDistance(expression: string): void {
  const { minute, hour } = fieldsOf(expression);
  const minutes = minute.values.map(Number).sort((a, b) => a - b);
  const hours = new Set(hour.values.map(Number));
  const follows = [...hours].some((value) => hours.has((value + 1) % 24));
  // The first minute of the next hour follows the last one of this.
  const next = follows ? [(minutes[0] ?? 0) + 60] : [];
  const isClose = [...minutes, ...next].some(
    (value, i, all) => i > 0 && value - (all[i - 1] ?? 0) < minEveryMinutes,
  );
  if (isClose) throw refuse('invalidParameter', detail('cronDistance', { n: minEveryMinutes }));
}

function fieldsOf(expression: string) {
  try {
    return CronExpressionParser.parse(expression).fields;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw refuse('invalidParameter', detail('cronExpression', { why: why.replace(/\.$/, '') }));
  }
}

/**
 * Yields the times after `after`, in order, and ends where the next one is more than ten years
 * away. A time that the change to summer time leaves out moves on by an hour; of two equal times at
 * its end the first counts, but an expression for every hour counts both.
 */
export function* timesAfter(recurrence: Recurrence, after: Date): Generator<Date> {
  const { expression, timeZone: tz, startsAt, endsAt } = recurrence;
  const lastMs = (endsAt?.getTime() ?? Number.POSITIVE_INFINITY) - 1;
  let fromMs = Math.max(after.getTime(), (startsAt?.getTime() ?? 0) - 1);
  for (;;) {
    // A search ends at `endDate`; further times are searched from the last one.
    const endDate = new Date(Math.min(fromMs + maxGapMs, lastMs));
    if (endDate.getTime() <= fromMs) return;
    const times = CronExpressionParser.parse(expression, {
      currentDate: new Date(fromMs),
      endDate,
      tz,
    });
    const begunMs = fromMs;
    for (let at = nextOf(times); at; at = nextOf(times)) {
      fromMs = at.getTime();
      yield at;
    }
    if (fromMs === begunMs) return;
  }
}

/**
 * Returns the next time of an expression; undefined after its end date, where the search ends with
 * an error.
 */
function nextOf(times: ReturnType<typeof CronExpressionParser.parse>): Date | undefined {
  try {
    return times.next().toDate();
  } catch {
    return undefined;
  }
}

/** Returns the first time after `after`; null after the last one. */
export function nextTime(recurrence: Recurrence, after: Date): Date | null {
  for (const at of timesAfter(recurrence, after)) return at;
  return null;
}

/** Returns the next `count` times. */
export function nextTimes(recurrence: Recurrence, after: Date, count: number): Date[] {
  return [...timesAfter(recurrence, after).take(count)];
}

/** What is due of a recurring push. */
export interface DueTimes {
  /** Time to make a push for; undefined where all due times are past their grace. */
  start: Date | undefined;
  /** Due times without a push, at most `maxCountedMisses`. */
  missed: number;
  /** First time that is not due; null after the last one. */
  next: Date | null;
}

/**
 * Returns what is due of a recurring push whose next start is `first`. Only the last due time is
 * made up for, and only within its grace, its lifetime and after `skipBefore`
 * (protocol/push.md#recurring-pushes).
 */
export function dueTimes(
  recurrence: Recurrence,
  {
    first,
    now,
    lifeMs,
    skipBefore,
  }: { first: Date; now: Date; lifeMs: number; skipBefore: Date | null },
): DueTimes {
  let due = 1;
  let lastDue = first;
  for (const at of timesAfter(recurrence, first)) {
    if (at > now) break;
    due += 1;
    lastDue = at;
    if (due <= maxCountedMisses) continue;
    lastDue = lastTime(recurrence, now);
    break;
  }
  const lateMs = now.getTime() - lastDue.getTime();
  const isKept = lateMs < Math.min(graceMs, lifeMs) && !(skipBefore && lastDue <= skipBefore);
  return {
    start: isKept ? lastDue : undefined,
    missed: isKept ? due - 1 : due,
    next: nextTime(recurrence, now),
  };
}

/** Returns the last time that is due by `now`. */
function lastTime({ expression, timeZone: tz, endsAt }: Recurrence, now: Date): Date {
  const beforeMs = Math.min(now.getTime() + 1, endsAt?.getTime() ?? Number.POSITIVE_INFINITY);
  return CronExpressionParser.parse(expression, { currentDate: new Date(beforeMs), tz })
    .prev()
    .toDate();
}

/** Returns a time as its zone shows it, with the distance from UTC: 2027-03-14T03:30:00-04:00. */
export function localText(at: Date, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  }).formatToParts(at);
  const part = (type: Intl.DateTimeFormatPartTypes) =>
    parts.find((one) => one.type === type)?.value ?? '';
  const offset = part('timeZoneName').replace('GMT', '') || '+00:00';
  const day = `${part('year')}-${part('month')}-${part('day')}`;
  return `${day}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}
