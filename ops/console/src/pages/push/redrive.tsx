import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail, RedriveForecast } from '../../../../client/operations.ts';
import {
  isOpenPush,
  type RedriveSelection,
  useFailureGroups,
  useRedrive,
  useRedriveForecast,
} from '../../api/push.ts';
import { useMay } from '../../api/session.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Checkbox, Choice } from '../../kit/controls/field.tsx';
import { Failure, Loading } from '../../kit/states.tsx';
import { connectorName, useForecastText } from '../../text/explanation.ts';
import { formatCount } from '../../text/format.ts';
import styles from './push.module.css';

const route = getRouteApi('/apps/$appId/pushes/$pushId');

/** Number of recipients above which a redrive requires that the number is typed. */
const typedFrom = 10_000;

type Cause = RedriveForecast['causes'][number];

/**
 * Sends a finished push again to recipients that it did not reach, after a dry run. Renders nothing
 * if there are no such recipients or all of them were sent to again.
 */
export function Redrive({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const maySend = useMay('sender');
  const isBegun = route.useSearch().redrive === true && maySend;
  const [isRequested, setRequested] = useState(isBegun);
  const [causeKey, setCauseKey] = useState('');
  const [isUnsureIncluded, includeUnsure] = useState(false);
  const ofPush = { appId, pushId: push.objectId };
  const all = useRedriveForecast(ofPush, {}, isRequested);
  // A reloaded forecast contains other numbers of the same causes.
  const cause = all.data?.causes.find((one) => keyOf(one) === causeKey);
  const selection = selectionOf(cause, isUnsureIncluded);
  const { data, error, isPlaceholderData } = useRedriveForecast(ofPush, selection, isRequested);
  const redrive = useRedrive(ofPush, (pushId) =>
    navigate({ to: '/apps/$appId/pushes/$pushId', params: { appId, pushId } }),
  );
  const { failed = 0, expired = 0, capped = 0 } = push.outcomes;
  const groups = useFailureGroups({ ...ofPush, isOpen: isOpenPush(push) }, failed > 0);
  if (isOpenPush(push) || push.state === 'cancelled' || !maySend) return null;
  // A recall is repeated as another recall of the first push. An activity gets its current state.
  if (push.recallOf !== null || push.liveActivity) return null;
  const remedies = (groups.data?.results ?? []).map(({ remedy }) => remedy.code);
  const repeat = expired + capped > 0 ? 'helps' : repeatOf(remedies);
  if (failed + expired + capped <= push.redriven || repeat === 'useless') return null;
  const devices = data?.devices ?? 0;
  return (
    <>
      {redrive.error && <Failure error={redrive.error} />}
      <Confirm
        variant="primary"
        triggerVariant="plain"
        trigger={t('redrive.title')}
        title={t('redrive.title')}
        action={
          data
            ? t('redrive.now', { count: devices, devices: formatCount(devices) })
            : t('redrive.counting')
        }
        typed={devices > typedFrom ? String(devices) : undefined}
        disabled={redrive.isPending}
        isBlocked={devices === 0 || isPlaceholderData}
        isOpenAtFirst={isBegun}
        onOpen={setRequested}
        onConfirm={() => redrive.mutate(selection)}
      >
        {repeat === 'later' && (
          <p className={styles.warning} role="alert">
            {t('redrive.later')}
          </p>
        )}
        <p>{t('redrive.text')}</p>
        {all.data && all.data.causes.length > 1 && (
          <CauseChoice causes={all.data.causes} chosen={cause} choose={setCauseKey} />
        )}
        {all.data && all.data.failures.unsure > 0 && (
          <Checkbox
            label={t('redrive.includeUnsure')}
            hint={t('redrive.twice')}
            checked={isUnsureIncluded}
            onChange={(event) => includeUnsure(event.target.checked)}
          />
        )}
        {error ? (
          <Failure error={error} />
        ) : data ? (
          <Forecast {...{ forecast: data, isUnsureIncluded }} />
        ) : (
          <Loading />
        )}
      </Confirm>
    </>
  );
}

const selectionOf = (cause: Cause | undefined, includeUnsure: boolean): RedriveSelection => ({
  ...(cause && { connector: cause.connector, outcomes: [cause.outcome], reason: cause.reason }),
  ...(includeUnsure && { includeUnsure }),
});

interface CauseChoiceProps {
  causes: Cause[];
  chosen: Cause | undefined;
  /** Called with the key of a cause. Empty for all causes. */
  choose: (key: string) => void;
}

const keyOf = ({ connector, outcome, reason }: Cause): string =>
  `${connector} ${outcome} ${reason}`;

function CauseChoice({ causes, chosen, choose }: CauseChoiceProps) {
  const { t } = useTranslation();
  return (
    <Choice
      label={t('redrive.cause')}
      value={chosen === undefined ? '' : keyOf(chosen)}
      onChange={(event) => choose(event.target.value)}
    >
      <option value="">{t('redrive.anyCause')}</option>
      {causes.map((cause) => {
        const { connector, outcome, reason, n } = cause;
        return (
          <option key={keyOf(cause)} value={keyOf(cause)}>
            {`${connectorName(connector)} · ${t(`outcome.${outcome}`)}: ${reason} (${formatCount(n)})`}
          </option>
        );
      })}
    </Choice>
  );
}

const leftOut = ['redriven', 'unsure', 'gone', 'notKept'] as const;

/** Recipients of a redrive, excluded recipients, and limits. */
function Forecast({
  forecast: { devices, failures, texts },
  isUnsureIncluded,
}: {
  forecast: RedriveForecast;
  isUnsureIncluded: boolean;
}) {
  const { t } = useTranslation();
  const textOf = useForecastText();
  return (
    <div aria-live="polite">
      <p>
        <strong>{t('redrive.devices', { count: devices, devices: formatCount(devices) })}</strong>
      </p>
      <ul>
        {leftOut
          .filter((name) => failures[name] > 0)
          .map((name) => (
            <li key={name}>
              {t(`redrive.${name === 'unsure' && isUnsureIncluded ? 'unsureIncluded' : name}`, {
                devices: formatCount(failures[name]),
              })}
            </li>
          ))}
        {texts.limits.map(textOf).map((limit) => (
          <li key={limit}>{limit}</li>
        ))}
      </ul>
    </div>
  );
}

/**
 * Links to the original push of a redrive and to the redrives of a push. Renders nothing if there
 * are none.
 */
export function Redrives({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const linkTo = (pushId: string) => (
    <Link key={pushId} to="/apps/$appId/pushes/$pushId" params={{ appId, pushId }}>
      <code>{pushId}</code>
    </Link>
  );
  if (push.redriveOf === null && push.redrives.length === 0) return null;
  return (
    <p className={styles.redrives}>
      {push.redriveOf !== null && (
        <>
          {t('redrive.of')} {linkTo(push.redriveOf)}{' '}
        </>
      )}
      {push.redrives.length > 0 && (
        <>
          {t('redrive.taken', { count: push.redriven, devices: formatCount(push.redriven) })}{' '}
          {push.redrives.map(linkTo)}
        </>
      )}
    </p>
  );
}

/** Causes that would make a repeated push fail again, until somebody corrects them. */
const correctFirst: ReadonlySet<string> = new Set([
  'wrongApp',
  'noProfile',
  'noAddress',
  'credentials',
  'clock',
  'right',
  'category',
  'barred',
  'review',
  'testDevice',
  'region',
  'hybridPush',
  'privateAddress',
  'request',
  'message',
  'tooLarge',
]);

/** Causes that a repeated push with the same content cannot change. */
const hopeless: ReadonlySet<string> = new Set([
  'invalidToken',
  'notRecalled',
  'dropped',
  'userSetting',
]);

/** Whether to send again: it helps, it helps after a correction, or it does not help. */
function repeatOf(remedies: readonly string[]): 'helps' | 'later' | 'useless' {
  if (remedies.length === 0) return 'helps';
  if (remedies.every((code) => hopeless.has(code))) return 'useless';
  return remedies.every((code) => hopeless.has(code) || correctFirst.has(code)) ? 'later' : 'helps';
}
