import { useTranslation } from 'react-i18next';
import type { PushForecast } from '../../../../../client/operations.ts';
import { Bar, Reason } from '../../../kit/data/values.tsx';
import { connectorName } from '../../../text/explanation.ts';
import { formatCount } from '../../../text/format.ts';
import styles from './before.module.css';

/**
 * Usage on the day of the push: recipients so far, scheduled recipients and this push, compared
 * with the cap and per gateway.
 */
export function DayUse({ forecast }: { forecast: PushForecast['forecast'] }) {
  const { t } = useTranslation();
  const { cap, quotas, scheduledIsLeast } = forecast;
  const over = Math.min(cap.over, cap.draft);
  return (
    <div className={styles.day}>
      <span className={styles.note}>{t('dayUse.cap', { day: cap.day })}</span>
      <Bar
        label={t('overview.capUse')}
        total={cap.limit}
        segments={[
          { tone: 'good', value: cap.used + cap.scheduled, label: t('dayUse.before') },
          { tone: 'warn', value: cap.draft - over, label: t('dayUse.draft') },
          { tone: 'bad', value: over, label: t('outcome.capped') },
        ]}
      />
      <span>
        {t('dayUse.sum', {
          used: formatCount(cap.used),
          scheduled: `${scheduledIsLeast ? '≥ ' : ''}${formatCount(cap.scheduled)}`,
          draft: formatCount(cap.draft),
          limit: formatCount(cap.limit),
        })}
      </span>
      <Quotas quotas={quotas} />
    </div>
  );
}

function Quotas({ quotas }: { quotas: PushForecast['forecast']['quotas'] }) {
  const { t } = useTranslation();
  const { day, results } = quotas;
  const closed = results.filter(({ closedReason }) => closedReason !== null);
  if (results.length === 0) return null;
  return (
    <>
      {closed.map(({ connector, profile, closedReason, closedMeaning }) => (
        <p key={`${connector}/${profile}`} className={styles.refusal}>
          {t('dayUse.closed', { name: connectorName(connector) })}{' '}
          <Reason reason={closedReason ?? ''} meaning={closedMeaning} />
        </p>
      ))}
      <details className={styles.more}>
        <summary>{t('dayUse.quotas', { day })}</summary>
        <dl className={styles.shares}>
          {results.map(({ connector, profile, used, scheduled, draft }) => (
            <div key={`${connector}/${profile}`}>
              <dt>
                {connectorName(connector)}
                {profile !== '_default' && `, ${profile}`}
              </dt>
              <dd>
                {formatCount(used)} + {formatCount(scheduled)} + {formatCount(draft)}
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </>
  );
}
