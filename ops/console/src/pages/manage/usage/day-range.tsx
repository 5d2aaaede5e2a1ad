import { useTranslation } from 'react-i18next';
import type { Days } from '../../../api/apps.ts';
import { TextField } from '../../../kit/controls/field.tsx';
import styles from './usage.module.css';

/** First and last day of a report, in UTC. */
export function DayRange({
  days,
  onChange,
}: {
  days: Days;
  onChange: (change: Partial<Days>) => void;
}) {
  const { t } = useTranslation();
  return (
    <div className={styles.days}>
      <TextField
        type="date"
        label={t('usage.from')}
        value={days.from}
        max={days.to}
        onChange={(event) => event.target.value && onChange({ from: event.target.value })}
      />
      <TextField
        type="date"
        label={t('usage.to')}
        value={days.to}
        min={days.from}
        onChange={(event) => event.target.value && onChange({ to: event.target.value })}
      />
    </div>
  );
}
