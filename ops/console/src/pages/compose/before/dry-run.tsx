import { useTranslation } from 'react-i18next';
import type { PushForecast } from '../../../../../../api/replies/admin/types.ts';
import { connectorName } from '../../../api/connectors.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { formatCount, formatDuration } from '../../../text/format.ts';
import styles from './before.module.css';
import type { CurrentDryRun } from './use-dry-run.ts';

interface DryRunPanelProps {
  dryRun: CurrentDryRun;
  /** The message has no content yet: what is missing of it is not said. */
  isBlank: boolean;
  children: React.ReactNode;
}

/** Whom the push would reach and what limits it, and the button that sends it. */
export function DryRunPanel({ dryRun, isBlank, children }: DryRunPanelProps) {
  const { t } = useTranslation();
  const { last, isFresh, isRunning, error, run } = dryRun;
  const forecast = last?.forecast;
  return (
    <Panel
      title={t('compose.dryRun')}
      side={
        <Button look="quiet" isBusy={isRunning} onClick={run}>
          {t(isRunning ? 'compose.checking' : isFresh ? 'compose.runAgain' : 'compose.run')}
        </Button>
      }
    >
      <div className={styles.dryRun}>
        <p className={styles.devices} aria-live="polite">
          <strong>{forecast ? formatCount(forecast.devices) : '–'}</strong>{' '}
          {t('compose.devices', { count: forecast?.devices ?? 0 })}
          {last && !isFresh && <span className={styles.note}> · {t('compose.outdated')}</span>}
        </p>
        {error !== null && <Failure error={error} />}
        {forecast && <Shares forecast={forecast} isBlank={isBlank} />}
        {forecast && <Limits forecast={forecast} isBlank={isBlank} />}
        {children}
      </div>
    </Panel>
  );
}

function Shares({ forecast, isBlank }: { forecast: PushForecast; isBlank: boolean }) {
  const shares = Object.entries(forecast.connectors)
    .map(([id, share]) => ({ id, devices: share?.devices ?? 0, problem: share?.problem }))
    .sort((a, b) => b.devices - a.devices);
  if (shares.length === 0) return null;
  return (
    <dl className={styles.shares}>
      {shares.map(({ id, devices, problem }) => (
        <div key={id}>
          <dt>{connectorName(id)}</dt>
          <dd>{formatCount(devices)}</dd>
          {problem !== undefined && !isBlank && <dd className={styles.problem}>{problem}</dd>}
        </div>
      ))}
    </dl>
  );
}

/** Tells whether a limit refuses the push; others shorten or delay it. */
export const isRefusal = (limit: string): boolean => limit.includes('would be refused');

function Limits({ forecast, isBlank }: { forecast: PushForecast; isBlank: boolean }) {
  const { t } = useTranslation();
  const { limits, warning, warnings = [], estimatedSeconds } = forecast;
  const shown = isBlank ? [] : limits;
  return (
    <>
      {[...shown, ...(warning === undefined ? [] : [warning]), ...warnings].map((limit) => (
        <p key={limit} className={isRefusal(limit) ? styles.refusal : styles.warning}>
          {limit}
        </p>
      ))}
      {estimatedSeconds !== null && (
        <p className={styles.note}>{t('compose.takes', { time: formatDuration(estimatedSeconds * 1000) })}</p>
      )}
    </>
  );
}
