import { useTranslation } from 'react-i18next';
import type { PushForecast } from '../../../../../client/operations.ts';
import { formatCount } from '../../../text/format.ts';
import styles from './before.module.css';

/** Devices of a push with variables that have the field of each, and those that get the default. */
export function VariableCounts({ variables }: { variables: NonNullable<PushForecast['variables']> }) {
  const { t } = useTranslation();
  return (
    <dl className={styles.shares} aria-label={t('compose.variables')}>
      {variables.map(({ name, devices, fallback }) => (
        <div key={name}>
          <dt translate="no">{name}</dt>
          <dd>{formatCount(devices)}</dd>
          {fallback > 0 && (
            <dd className={styles.note}>{t('compose.defaults', { devices: formatCount(fallback) })}</dd>
          )}
        </div>
      ))}
    </dl>
  );
}
