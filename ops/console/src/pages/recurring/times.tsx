import { useTranslation } from 'react-i18next';
import { type AskedTimes, useNextTimes } from '../../api/pushes.ts';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatUtc } from '../../text/format.ts';
import { currentLocale } from '../../text/texts.ts';
import { useRested } from '../compose/use-rested.ts';
import styles from './recurring.module.css';

const restMs = 300;

/** Next times of an expression while it is written: in its zone, and in UTC. `asked` is another object for other times only. */
export function NextTimes({ appId, asked }: { appId: string; asked: AskedTimes }) {
  const { t } = useTranslation();
  const rested = useRested(asked, restMs);
  const { data, error, isPending } = useNextTimes(appId, rested);
  if (rested !== asked) return <Loading rows={3} />;
  if (error) return <Failure error={error} />;
  if (isPending) return <Loading rows={3} />;
  if (data.times.length === 0) return <Empty title={t('recurring.noTime')} />;
  return (
    <ol className={styles.times} aria-label={t('recurring.times')}>
      {data.times.map(({ at }) => (
        <li key={at}>
          <time dateTime={at}>{inZone(at, asked.timeZone)}</time>
          <span className={styles.note}>{formatUtc(at.replace(':00.000', ''))}</span>
        </li>
      ))}
    </ol>
  );
}

/** Returns a time as the calendar and the clock of a zone show it. */
const inZone = (iso: string, timeZone: string): string =>
  new Intl.DateTimeFormat(currentLocale(), {
    timeZone,
    ...{ weekday: 'short', year: 'numeric', month: 'short', day: 'numeric' },
    ...{ hour: '2-digit', minute: '2-digit' },
  }).format(new Date(iso));
