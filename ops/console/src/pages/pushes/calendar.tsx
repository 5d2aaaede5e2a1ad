import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { RecurringPush, ScheduledEntry } from '../../../../client/operations.ts';
import { call } from '../../api/client.ts';
import { useRecurring, useScheduled } from '../../api/pushes.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Panel } from '../../kit/panel.tsx';
import { formatClock } from '../../text/format.ts';
import { currentLocale } from '../../text/texts.ts';
import styles from './calendar.module.css';
import { PushLink } from './shown-push.tsx';

/** Entry of a day: a scheduled push, or a run of a recurring push. */
type Entry =
  | { at: string; push: ScheduledEntry }
  | { at: string; recurring: Pick<RecurringPush, 'id' | 'name'> };

/**
 * Month with the next scheduled pushes and the next runs of the recurring pushes, in the reader's
 * zone.
 */
export function Calendar({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const [months, setMonths] = useState(0);
  const scheduled = useScheduled(appId, undefined).data?.results ?? [];
  const runs = useRuns(appId);
  // A time without a zone is the local time of each device. It is on its own day in every zone.
  const entries: Entry[] = [
    ...scheduled.map((push) => ({ at: push.localTime ?? push['push-time'], push })),
    ...runs,
  ].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const today = new Date();
  const first = new Date(today.getFullYear(), today.getMonth() + months, 1);
  const days = daysOf(first);
  const title = new Intl.DateTimeFormat(currentLocale(), { year: 'numeric', month: 'long' });
  return (
    <Panel
      title={title.format(first)}
      side={
        <div className={styles.turn}>
          <Button disabled={months === 0} onClick={() => setMonths(months - 1)}>
            {t('calendar.previous')}
          </Button>
          <Button onClick={() => setMonths(months + 1)}>{t('calendar.next')}</Button>
        </div>
      }
    >
      {!days.some((day) => entries.some(({ at }) => isOn(at, day))) && (
        <p className={styles.nothing}>{t('calendar.nothing')}</p>
      )}
      <ol className={styles.days}>
        {days.map((day) => (
          <Day key={day.toDateString()} appId={appId} day={day} first={first} entries={entries} />
        ))}
      </ol>
      <p className={styles.note}>{t('calendar.about')}</p>
    </Panel>
  );
}

interface DayProps {
  appId: string;
  day: Date;
  first: Date;
  entries: readonly Entry[];
}

function Day({ appId, day, first, entries }: DayProps) {
  const own = entries.filter(({ at }) => isOn(at, day));
  const name = new Intl.DateTimeFormat(currentLocale(), { weekday: 'short', day: 'numeric' });
  const isOther = day.getMonth() !== first.getMonth();
  return (
    <li
      className={`${styles.day} ${isOther ? styles.other : ''} ${own.length === 0 ? styles.empty : ''}`}
      aria-current={day.toDateString() === new Date().toDateString() ? 'date' : undefined}
    >
      <span className={styles.date}>{name.format(day)}</span>
      {own.map((entry) => (
        <span key={'push' in entry ? entry.push.objectId : `${entry.recurring.id} ${entry.at}`}>
          <time dateTime={entry.at}>{formatClock(entry.at)}</time>{' '}
          {'push' in entry ? (
            <PushLink appId={appId} push={entry.push} />
          ) : (
            <Link to="/apps/$appId/pushes/recurring" params={{ appId }} translate="no">
              ↻ {entry.recurring.name}
            </Link>
          )}
        </span>
      ))}
    </li>
  );
}

const isOn = (at: string, day: Date): boolean => new Date(at).toDateString() === day.toDateString();

/** Returns the days of the weeks of a month. Weeks begin on Monday. */
function daysOf(first: Date): Date[] {
  const before = (first.getDay() + 6) % 7;
  const length = new Date(first.getFullYear(), first.getMonth() + 1, 0).getDate();
  const count = Math.ceil((before + length) / 7) * 7;
  return Array.from(
    { length: count },
    (_, at) => new Date(first.getFullYear(), first.getMonth(), 1 - before + at),
  );
}

/** Returns the next runs of the enabled recurring pushes, at most ten of each. */
function useRuns(appId: string): Entry[] {
  const recurring = useRecurring(appId).data?.results.filter(({ nextAt }) => nextAt !== null) ?? [];
  const queries = useQueries({
    queries: recurring.map(({ id, expression, timeZone, startsAt, endsAt, nextAt }) => ({
      // After each run, the next runs are others.
      queryKey: ['recurring-times', appId, id, expression, timeZone, startsAt, endsAt, nextAt],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call('previewRecurringPush', {
          path: { appId },
          body: { expression, timeZone, startsAt, endsAt },
          signal,
        }),
    })),
  });
  return recurring.flatMap(({ id, name }, index) =>
    (queries[index]?.data?.times ?? []).map(({ at }) => ({ at, recurring: { id, name } })),
  );
}
