import { useTranslation } from 'react-i18next';
import type { RecurringPush } from '../../../../client/operations.ts';
import { type ScheduleInput, useNextTimes } from '../../api/pushes.ts';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import { isoTime, localTime } from '../../kit/form/values.ts';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatUtc } from '../../text/format.ts';
import { currentLocale } from '../../text/texts.ts';
import { useDebounced } from '../compose/draft-state.ts';
import styles from './recurring.module.css';

const previewDelayMs = 300;

/**
 * Next runs of a cron expression while it is edited, in its time zone and in UTC. `schedule` must
 * keep its identity while the schedule stays the same.
 */
export function NextTimes({ appId, schedule }: { appId: string; schedule: ScheduleInput }) {
  const { t } = useTranslation();
  const rested = useDebounced(schedule, previewDelayMs);
  const { data, error, isPending } = useNextTimes(appId, rested);
  if (rested !== schedule) return <Loading rows={3} />;
  if (error) return <Failure error={error} />;
  if (isPending) return <Loading rows={3} />;
  if (data.times.length === 0) return <Empty title={t('recurring.noTime')} />;
  return (
    <ol className={styles.times} aria-label={t('recurring.times')}>
      {data.times.map(({ at }) => (
        <li key={at}>
          <time dateTime={at}>{inZone(at, schedule.timeZone)}</time>
          <span className={styles.note}>{formatUtc(at.replace(':00.000', ''))}</span>
        </li>
      ))}
    </ol>
  );
}

/** Returns the schedule as the server takes it. */
export const scheduleOf = ({ expression, timeZone, startsAt, endsAt }: Entered): ScheduleInput => ({
  expression,
  timeZone,
  startsAt: isoTime(startsAt) ?? null,
  endsAt: isoTime(endsAt) ?? null,
});

/** Formats a time in a time zone. */
const inZone = (iso: string, timeZone: string): string =>
  new Intl.DateTimeFormat(currentLocale(), {
    timeZone,
    weekday: 'short',
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  }).format(new Date(iso));

/** Common cron expressions to start from. */
const usual = {
  daily: '0 9 * * *',
  weekdays: '0 9 * * 1-5',
  weekly: '0 9 * * 1',
  monthly: '0 9 1 * *',
  hourly: '0 * * * *',
} as const;

const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const zones = Intl.supportedValuesOf('timeZone');

/** Schedule of a recurring push as a person enters it. */
export interface Entered {
  name: string;
  expression: string;
  timeZone: string;
  startsAt: string;
  endsAt: string;
}

/** Returns the schedule of a recurring push, or a usual one. */
export const enteredOf = (one: RecurringPush | undefined): Entered => ({
  name: one?.name ?? '',
  expression: one?.expression ?? usual.daily,
  timeZone: one?.timeZone ?? browserZone,
  startsAt: localTime(one?.startsAt ?? undefined),
  endsAt: localTime(one?.endsAt ?? undefined),
});

interface FieldsProps {
  entered: Entered;
  change: (more: Partial<Entered>) => void;
}

/** Name, cron expression, time zone and limits of a recurring push. */
export function TimeFields({ entered, change }: FieldsProps) {
  const { t } = useTranslation();
  const known = Object.entries(usual).find(
    ([, expression]) => expression === entered.expression,
  )?.[0];
  const field = (name: keyof Entered) => ({
    value: entered[name],
    onChange: (event: { target: { value: string } }) => change({ [name]: event.target.value }),
  });
  return (
    <>
      <TextField
        required
        maxLength={100}
        label={t('recurring.name')}
        autoComplete="off"
        {...field('name')}
      />
      <div className={styles.pair}>
        <Choice
          label={t('recurring.repeats')}
          value={known ?? ''}
          onChange={(event) => {
            const chosen = Object.entries(usual).find(([name]) => name === event.target.value);
            if (chosen) change({ expression: chosen[1] });
          }}
        >
          {known === undefined && <option value="">{t('recurring.own')}</option>}
          {Object.keys(usual).map((name) => (
            <option key={name} value={name}>
              {t(`recurringUsual.${name}`)}
            </option>
          ))}
        </Choice>
        <TextField
          required
          maxLength={100}
          label={t('recurring.expression')}
          hint={t('recurring.expressionHint')}
          autoComplete="off"
          {...field('expression')}
        />
        <TextField
          required
          label={t('recurring.zone')}
          list="recurring-zones"
          {...field('timeZone')}
        />
        <datalist id="recurring-zones">
          {zones.map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </div>
      <div className={styles.pair}>
        <TextField
          type="datetime-local"
          label={t('recurring.starts')}
          hint={t('recurring.limitHint')}
          {...field('startsAt')}
        />
        <TextField
          type="datetime-local"
          label={t('recurring.ends')}
          hint={t('recurring.limitHint')}
          {...field('endsAt')}
        />
      </div>
    </>
  );
}
