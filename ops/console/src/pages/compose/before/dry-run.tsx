import { useTranslation } from 'react-i18next';
import type { PushForecast } from '../../../../../client/operations.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { connectorName } from '../../../text/connectors.ts';
import { useForecastText } from '../../../text/explanation.ts';
import { formatCount, formatDuration, formatTime } from '../../../text/format.ts';
import styles from './before.module.css';
import { DayUse } from './day-use.tsx';
import type { CurrentDryRun } from './use-dry-run.ts';
import { VariableCounts } from './variable-counts.tsx';

interface DryRunPanelProps {
  dryRun: CurrentDryRun;
  /** The message has no content yet: what is missing of it is not said. */
  isBlank: boolean;
  children: React.ReactNode;
}

/** Recipients that the push would reach, what limits it, and the button that sends it. */
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
        {forecast?.starts && <Starts starts={forecast.starts} />}
        {forecast?.quietHours && <QuietEnds ends={forecast.quietHours.ends} />}
        {forecast?.languages && <Languages languages={forecast.languages} />}
        {forecast?.variables && <VariableCounts variables={forecast.variables} />}
        {forecast && <Limits forecast={forecast} isBlank={isBlank} />}
        {children}
        {forecast && <DayUse forecast={forecast.forecast} />}
      </div>
    </Panel>
  );
}

function Shares({ forecast, isBlank }: { forecast: PushForecast; isBlank: boolean }) {
  const textOf = useForecastText();
  const shares = Object.entries(forecast.connectors)
    .map(([id, share]) => ({ id, devices: share?.devices ?? 0, problems: share?.problems ?? [] }))
    .sort((a, b) => b.devices - a.devices);
  if (shares.length === 0) return null;
  return (
    <dl className={styles.shares}>
      {shares.map(({ id, devices, problems }) => (
        <div key={id}>
          <dt>{connectorName(id)}</dt>
          <dd>{formatCount(devices)}</dd>
          {!isBlank &&
            problems.map(textOf).map((problem) => (
              <dd key={problem} className={styles.problem}>
                {problem}
              </dd>
            ))}
        </div>
      ))}
    </dl>
  );
}

/** Starts of a push at the own time of each device. */
function Starts({ starts }: { starts: NonNullable<PushForecast['starts']> }) {
  const { t } = useTranslation();
  return (
    <dl className={styles.shares} aria-label={t('compose.startsAt')}>
      {starts.map(({ at, devices, isLate }) => (
        <div key={at}>
          <dt>{formatTime(at)}</dt>
          <dd>{formatCount(devices)}</dd>
          {isLate && <dd className={styles.problem}>{t('outcome.expired')}</dd>}
        </div>
      ))}
    </dl>
  );
}

/** Devices that wait for the end of their quiet hours. */
function QuietEnds({ ends }: Pick<NonNullable<PushForecast['quietHours']>, 'ends'>) {
  const { t } = useTranslation();
  return (
    <dl className={styles.shares} aria-label={t('compose.quietEnds')}>
      {ends.map(({ at, devices }) => (
        <div key={at}>
          <dt>
            {t('compose.quietEnds')}: {formatTime(at)}
          </dt>
          <dd>{formatCount(devices)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Devices of a push with translations, by the language that they get. */
export function Languages({ languages }: { languages: NonNullable<PushForecast['languages']> }) {
  const { t } = useTranslation();
  return (
    <dl className={styles.shares} aria-label={t('compose.languages')}>
      {languages.map(({ language, devices, fallback }) => (
        <div key={language ?? ''}>
          <dt>{language ?? t('compose.noLanguage')}</dt>
          <dd>{formatCount(devices)}</dd>
          {language !== null && fallback > 0 && (
            <dd className={styles.note}>{t('compose.closeLocales', { devices: formatCount(fallback) })}</dd>
          )}
        </div>
      ))}
    </dl>
  );
}

/** Codes of limits that refuse the push; others shorten or delay it. */
const refusals: ReadonlySet<string> = new Set(['bodyTooLarge', 'refused', 'tooManyScheduled']);

/** Tells whether the service would refuse the push. */
export const isRefused = ({ texts }: PushForecast): boolean =>
  texts.limits.some(({ code }) => refusals.has(code));

function Limits({ forecast, isBlank }: { forecast: PushForecast; isBlank: boolean }) {
  const { t } = useTranslation();
  const textOf = useForecastText();
  const warningOf = useForecastText('details');
  const { texts, estimatedSeconds } = forecast;
  const limits = [...(isBlank ? [] : texts.limits), ...(texts.warning === null ? [] : [texts.warning])];
  return (
    <>
      {limits.map((limit) => (
        <p key={textOf(limit)} className={refusals.has(limit.code) ? styles.refusal : styles.warning}>
          {textOf(limit)}
        </p>
      ))}
      {texts.warnings?.map(warningOf).map((warning) => (
        <p key={warning} className={styles.warning}>
          {t('compose.noEffect')} {warning}
        </p>
      ))}
      {estimatedSeconds !== null && (
        <p className={styles.note}>{t('compose.takes', { time: formatDuration(estimatedSeconds * 1000) })}</p>
      )}
      <p className={styles.note}>{textOf(texts.pace)}</p>
    </>
  );
}
