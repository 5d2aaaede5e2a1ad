import { CronExpressionParser } from 'cron-parser';
import { dayMs, hourMs } from '../../clock.ts';
import { refuse } from '../errors/errors.ts';
import { detail } from '../texts/texts.ts';

/** Times of a recurring push (protocol/push.md#recurring-pushes). */
export interface Recurrence {
  /** Cron expression with five fields. */
  expression: string;
  /** IANA time zone of the expression. */
  timeZone: string;
  /** Earliest time of a run; null means from now on. */
  startsAt: Date | null;
  /** Time from which there are no more runs; null means no end. */
  endsAt: Date | null;
}

/** Maximum length of an expression in characters. */
export const maxExpressionLength = 100;
/** Minimum distance between two runs. */
const minEveryMinutes = 5;
/**
 * Maximum time between two runs. The 29th of February is at most eight years away. Searching for
 * rarer times, such as a fifth Monday in February, would have to cover 28 years.
 */
const maxGapMs = 10 * 366 * dayMs;
/**
 * How late a run may start. After an outage, only the last missed run is sent, and only if it is
 * not older than this.
 */
export const graceMs = hourMs;
/**
 * Maximum number of open pushes of a recurring push. During a freeze, or while an approval is
 * missing, no more pushes are created.
 */
export const maxOpenStarts = 10;
/**
 * Maximum number of missed runs that are counted exactly. This covers more than three days at the
 * minimum distance.
 */
const maxCountedMisses = 1000;

/**
 * Matches the supported expressions. Seconds, years and aliases are not part of the five fields.
 * `H` is refused, because it means a random time.
 */
const fieldsOfExpression = /^[\d*/,\-?#A-Za-z]+( [\d*/,\-?#A-Za-z]+){4}$/;
const randomField = /(^|[ ,])H([ ,/(]|$)/i;
const zoneName = /^[A-Za-z_]+(\/[A-Za-z0-9_+-]+){0,2}$/;

/**
 * Checks a recurrence and returns it with single blanks in its expression. Throws error 1 if the
 * expression is not a cron expression with five fields, if its times are less than five minutes
 * apart, if the time zone is unknown, or if the end is before the start.
 */
export function checkRecurrence(requested: Recurrence): Recurrence {
  const { timeZone, startsAt, endsAt } = requested;
  const expression = requested.expression.trim().replaceAll(/\s+/g, ' ');
  if (expression.length > maxExpressionLength)
    throw refuse('invalidParameter', detail('cronLength', { n: maxExpressionLength }));
  if (!fieldsOfExpression.test(expression) || randomField.test(expression))
    throw refuse('invalidParameter', detail('cronFields'));
  checkZone(timeZone);
  checkDistance(expression);
  if (startsAt && endsAt && startsAt >= endsAt)
    throw refuse('invalidParameter', detail('recurringOrder'));
  return { ...requested, expression };
}

function checkZone(timeZone: string): void {
  try {
    if (zoneName.test(timeZone)) new Intl.DateTimeFormat('en', { timeZone });
    else throw new RangeError('not a name');
  } catch {
    throw refuse('invalidParameter', detail('cronZone'));
  }
}

/** Throws error 1 if an expression cannot be parsed or its times are too close. */
function checkDistance(expression: string): void {
  const { minute, hour } = fieldsOf(expression);
  const minutes = minute.values.map(Number).sort((a, b) => a - b);
  const hours = new Set(hour.values.map(Number));
  const follows = [...hours].some((value) => hours.has((value + 1) % 24));
  // The last minute of an hour may be too close to the first minute of the next hour.
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
 * Yields the times after `after` in order. Ends if the next time is more than ten years away. If
 * the change to daylight saving time skips a time, it comes an hour later. If its end repeats a
 * time, only the first counts, except for an hourly expression, where both count.
 */
export function* timesAfter(recurrence: Recurrence, after: Date): Generator<Date> {
  const { expression, timeZone: tz, startsAt, endsAt } = recurrence;
  const lastMs = (endsAt?.getTime() ?? Number.POSITIVE_INFINITY) - 1;
  let fromMs = Math.max(after.getTime(), (startsAt?.getTime() ?? 0) - 1);
  for (;;) {
    // A search ends at `endDate`. The next search starts at the last time found.
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
 * Returns the next time of an expression. Returns undefined after its end date, where cron-parser
 * throws.
 */
function nextOf(times: ReturnType<typeof CronExpressionParser.parse>): Date | undefined {
  try {
    return times.next().toDate();
  } catch {
    return undefined;
  }
}

/** Returns the first time after `after`, or null. */
export function nextTime(recurrence: Recurrence, after: Date): Date | null {
  for (const at of timesAfter(recurrence, after)) return at;
  return null;
}

/** Runs of a recurring push that are due. */
export interface DueTimes {
  /** Time of the run to send. Undefined if all due runs are too late. */
  start: Date | undefined;
  /** Number of due runs that are not sent, at most `maxCountedMisses`. */
  missed: number;
  /** First time that is not due yet, or null. */
  next: Date | null;
}

/**
 * Returns which runs of a recurring push are due. `first` is its next run. Only the last due run is
 * sent. It must not be later than `graceMs` and its lifetime allow, and must be after `skipBefore`
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

/** Returns the last time that is due at `now`. */
function lastTime({ expression, timeZone: tz, endsAt }: Recurrence, now: Date): Date {
  const beforeMs = Math.min(now.getTime() + 1, endsAt?.getTime() ?? Number.POSITIVE_INFINITY);
  return CronExpressionParser.parse(expression, { currentDate: new Date(beforeMs), tz })
    .prev()
    .toDate();
}

/** Returns a time in a time zone with its offset from UTC: 2027-03-14T03:30:00-04:00. */
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
