import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushForecast } from '../../../../../client/operations.ts';
import { ApiError } from '../../../api/client.ts';
import { type DryRun, useDryRun } from '../../../api/compose.ts';
import { memberOfRefusal } from '../../../draft/fields.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Bar, Reason } from '../../../kit/data/values.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { connectorName, useForecastText, useRefusalText } from '../../../text/explanation.ts';
import { formatCount, formatDuration, formatTime } from '../../../text/format.ts';
import type { Draft } from '../draft-state.ts';
import styles from './before.module.css';

/**
 * Delay after the last keystroke before a dry run starts automatically, in ms. It is at least twice
 * the duration of the last dry run, so that typing keeps the database busy a third of the time.
 */
const dryRunDelay = (last: DryRun | undefined) => Math.max(500, 2 * (last?.tookMs ?? 0));

/** Dry run of the current draft or of an earlier version. */
export interface CurrentDryRun {
  /** Last dry run. `isFresh` is true if it belongs to the current draft. */
  last: DryRun | undefined;
  isFresh: boolean;
  isRunning: boolean;
  error: unknown;
  refusal: { member: string | undefined; message: string } | undefined;
  run(): void;
}

/** Runs the dry run of a draft: automatically after the last keystroke, and on request. */
export function useCurrentDryRun(appId: string, { sent }: Draft): CurrentDryRun {
  const [requestedText, setRequestedText] = useState<string>();
  const { query, last } = useDryRun(appId, requestedText);
  const delayMs = dryRunDelay(last);
  const isRequested = requestedText === sent;
  useEffect(() => {
    if (sent === undefined || isRequested) return;
    const timer = setTimeout(() => setRequestedText(sent), delayMs);
    return () => clearTimeout(timer);
  }, [sent, isRequested, delayMs]);
  const error = isRequested ? query.error : null;
  const { text, original } = useRefusalText(error instanceof ApiError ? error : undefined);
  const shownMessage = original === undefined ? text : `${text} ${original}`;
  const refusal =
    error instanceof ApiError && error.status >= 400 && error.status < 500
      ? { member: memberOfRefusal(error), message: shownMessage }
      : undefined;
  const run = () => {
    if (isRequested) void query.refetch();
    else setRequestedText(sent);
  };
  const isFresh = last !== undefined && last.text === sent && !query.isFetching && error === null;
  return { last, isFresh, isRunning: query.isFetching, error, refusal, run };
}

/**
 * For each variable, the number of devices that have the field and of devices that get the default.
 */
export function VariableCounts({
  variables,
}: {
  variables: NonNullable<PushForecast['variables']>;
}) {
  const { t } = useTranslation();
  return (
    <dl className={styles.shares} aria-label={t('compose.variables')}>
      {variables.map(({ name, devices, fallback }) => (
        <div key={name}>
          <dt translate="no">{name}</dt>
          <dd>{formatCount(devices)}</dd>
          {fallback > 0 && (
            <dd className={styles.note}>
              {t('compose.defaults', { devices: formatCount(fallback) })}
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}

interface DryRunPanelProps {
  dryRun: CurrentDryRun;
  /** True if the message has no content yet. Missing content is then not reported. */
  isBlank: boolean;
  children: React.ReactNode;
}

/** Recipients of the push, its limits, and the Send button. */
export function DryRunPanel({ dryRun, isBlank, children }: DryRunPanelProps) {
  const { t } = useTranslation();
  const { last, isFresh, isRunning, error, run } = dryRun;
  const forecast = last?.forecast;
  return (
    <Panel
      title={t('compose.dryRun')}
      side={
        <Button variant="quiet" isBusy={isRunning} onClick={run}>
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
    .map(([id, share]) => ({
      id,
      devices: share?.devices ?? 0,
      problems: share?.problems ?? [],
      notShown: share?.notShown ?? [],
    }))
    .sort((a, b) => b.devices - a.devices);
  if (shares.length === 0) return null;
  return (
    <dl className={styles.shares}>
      {shares.map(({ id, devices, problems, notShown }) => (
        <div key={id}>
          <dt>{connectorName(id)}</dt>
          <dd>{formatCount(devices)}</dd>
          {notShown.length > 0 && <NotShown names={notShown} />}
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

type Share = NonNullable<PushForecast['connectors']['apns']>;

/** Rich content that devices of a vendor do not show. */
export function NotShown({ names }: { names: Share['notShown'] }) {
  const { t } = useTranslation();
  const shown = names.map((name) => t(`rich.${name}`)).join(', ');
  return <dd className={styles.effect}>{t('rich.notShown', { names: shown })}</dd>;
}

/** Start times of a push at each device's local time. */
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

/** Devices per language of a push with translations. */
export function Languages({ languages }: { languages: NonNullable<PushForecast['languages']> }) {
  const { t } = useTranslation();
  return (
    <dl className={styles.shares} aria-label={t('compose.languages')}>
      {languages.map(({ language, devices, fallback }) => (
        <div key={language ?? ''}>
          <dt>{language ?? t('compose.noLanguage')}</dt>
          <dd>{formatCount(devices)}</dd>
          {language !== null && fallback > 0 && (
            <dd className={styles.note}>
              {t('compose.closeLocales', { devices: formatCount(fallback) })}
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}

/** Codes of limits that refuse the push. Other limits only shorten or delay it. */
const refusals: ReadonlySet<string> = new Set(['bodyTooLarge', 'refused', 'tooManyScheduled']);

/** True if the service would refuse the push. */
export const isRefused = ({ texts }: PushForecast): boolean =>
  texts.limits.some(({ code }) => refusals.has(code));

function Limits({ forecast, isBlank }: { forecast: PushForecast; isBlank: boolean }) {
  const { t } = useTranslation();
  const textOf = useForecastText();
  const warningOf = useForecastText('details');
  const { texts, estimatedSeconds } = forecast;
  const limits = [
    ...(isBlank ? [] : texts.limits),
    ...(texts.warning === null ? [] : [texts.warning]),
  ];
  return (
    <>
      {limits.map((limit) => (
        <p
          key={textOf(limit)}
          className={refusals.has(limit.code) ? styles.refusal : styles.warning}
        >
          {textOf(limit)}
        </p>
      ))}
      {texts.warnings?.map(warningOf).map((warning) => (
        <p key={warning} className={styles.warning}>
          {t('compose.noEffect')} {warning}
        </p>
      ))}
      {estimatedSeconds !== null && (
        <p className={styles.note}>
          {t('compose.takes', { time: formatDuration(estimatedSeconds * 1000) })}
        </p>
      )}
      <p className={styles.note}>{textOf(texts.pace)}</p>
    </>
  );
}

/**
 * Usage on the day of the push: recipients so far, scheduled recipients and this push, compared
 * with the cap and per gateway.
 */
function DayUse({ forecast }: { forecast: PushForecast['forecast'] }) {
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
