import { Link, useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { Overview as OverviewData } from '../../../../client/operations.ts';
import { useAppKey, useAppName, useOverview } from '../../api/apps.ts';
import { useMeta } from '../../api/profiles.ts';
import { useMay } from '../../api/session.tsx';
import { buttonClass } from '../../kit/controls/button.tsx';
import { Commands, Snippet } from '../../kit/controls/copy.tsx';
import { Badge, Bar } from '../../kit/data/values.tsx';
import { Facts, PageHeader, Panel } from '../../kit/panel.tsx';
import { Failure, Loading } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';
import { LiveState } from '../push/push.tsx';
import { endedOf, OutcomeBar } from '../pushes/shown-push.tsx';
import { AttentionList, isQuiet, RunningPushes } from './current.tsx';
import styles from './overview.module.css';

/** State of an app: current pushes, problems that need attention, and today's usage. */
export function Overview() {
  const { appId = '' } = useParams({ strict: false });
  const { t } = useTranslation();
  const maySend = useMay('sender');
  const { data, error, isPending, refetch, live, dataUpdatedAt } = useOverview(appId);
  const name = useAppName(appId);
  return (
    <>
      <PageHeader
        title={name}
        isName
        side={
          maySend &&
          data &&
          !isNewApp(data) && (
            <Link
              to="/apps/$appId/pushes/new"
              params={{ appId }}
              className={buttonClass('primary')}
            >
              {t('compose.heading')}
            </Link>
          )
        }
      >
        <LiveState live={live} updatedAtMs={dataUpdatedAt} />
      </PageHeader>
      {isPending ? (
        <Loading rows={8} />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <Panels appId={appId} overview={data} />
      )}
      <Commands
        request={requestOf('getOverview', { query: { app: appId } })}
        command={`overview --app ${appId}`}
      />
    </>
  );
}

/**
 * True if steps to the first push remain. Credentials are not required, because an app may use only
 * the device channel.
 */
const isNewApp = ({ setup }: OverviewData): boolean =>
  setup !== null && !(setup.hasDevice && setup.hasPush);

function Panels({ appId, overview }: { appId: string; overview: OverviewData }) {
  const { setup } = overview;
  return (
    <>
      {setup !== null && isNewApp(overview) && <FirstSteps appId={appId} setup={setup} />}
      <div className={styles.grid}>
        <Running appId={appId} overview={overview} />
        <Attention appId={appId} overview={overview} />
        <Today overview={overview} />
        <LastDay overview={overview} />
      </div>
    </>
  );
}

function Running({
  appId,
  overview: { running, scheduled },
}: {
  appId: string;
  overview: OverviewData;
}) {
  const { t } = useTranslation();
  return (
    <Panel
      title={t('overview.running')}
      side={
        <Link to="/apps/$appId/pushes" params={{ appId }} search={{ status: 'scheduled' }}>
          {t('overview.scheduled', { count: scheduled, shown: formatCount(scheduled) })}
        </Link>
      }
    >
      <RunningPushes pushes={running} />
    </Panel>
  );
}

function Attention({ appId, overview }: { appId: string; overview: OverviewData }) {
  const { t } = useTranslation();
  return (
    <Panel title={t('overview.attention')}>
      {isQuiet(overview) && overview.setup?.hasProfile !== false && (
        <p className={styles.quiet}>{t('overview.allWell')}</p>
      )}
      {overview.setup?.hasProfile === false && (
        <p className={styles.quiet}>
          {t('overview.noGateway')}{' '}
          <Link to="/apps/$appId/profiles" params={{ appId }}>
            {t('nav.profiles')}
          </Link>
        </p>
      )}
      <AttentionList overview={overview} />
    </Panel>
  );
}

function Today({ overview: { today } }: { overview: OverviewData }) {
  const { t } = useTranslation();
  const recipients =
    today.cap === null
      ? formatCount(today.recipients)
      : t('overview.of', { done: formatCount(today.recipients), all: formatCount(today.cap) });
  return (
    <Panel
      title={t('overview.today')}
      side={<span className={styles.note}>{t('overview.utcDay', { day: today.day })}</span>}
    >
      {today.cap !== null && (
        <Bar
          label={t('overview.capUse')}
          total={today.cap}
          segments={[{ tone: 'good', value: today.recipients, label: t('overview.recipients') }]}
        />
      )}
      <Facts
        rows={[
          [t('overview.recipients'), recipients],
          [t('overview.calls'), formatCount(today.calls)],
          [t('overview.peak'), formatCount(today.peakCallsPerMinute)],
        ]}
      />
    </Panel>
  );
}

const visibleOutcomes = ['invalid_token', 'failed', 'expired', 'capped', 'dropped'] as const;

function LastDay({
  overview: { outcomes24h, unacknowledged24h: waiting, outcomesAreLeast },
}: {
  overview: OverviewData;
}) {
  const { t } = useTranslation();
  return (
    <Panel
      title={t('overview.lastDay')}
      side={outcomesAreLeast && <span className={styles.note}>{t('overview.least')}</span>}
    >
      <OutcomeBar totals={outcomes24h} devices={endedOf(outcomes24h)} unacknowledged={waiting} />
      <Facts
        rows={[
          [t('outcome.sent'), formatCount((outcomes24h.sent ?? 0) - waiting)],
          ...(waiting > 0 ? [[t('outcome.unacknowledged'), formatCount(waiting)] as const] : []),
          ...visibleOutcomes.map(
            (name) => [t(`outcome.${name}`), formatCount(outcomes24h[name] ?? 0)] as const,
          ),
        ]}
      />
    </Panel>
  );
}

const steps = [
  {
    name: 'profile',
    command: (appId: string) => `npx carillon profile put ${appId} apns credentials.json`,
  },
  {
    name: 'device',
    // A device on the device channel, because it needs no credentials.
    command: (appId: string, appKey = '$APP_KEY') =>
      `curl ${window.location.origin}/1.1/installations -H 'X-LC-Id: ${appId}' -H "X-LC-Key: ${appKey}" \\\n  -H 'Content-Type: application/json' -d '{"deviceType":"android","installationId":"my-first-device"}'`,
  },
  { name: 'push', command: (appId: string) => `npx carillon push --app ${appId} --alert Hello` },
] as const;

/** Page for each step. */
const pages: Partial<
  Record<string, { to: `/apps/$appId/${'profiles' | 'settings' | 'pushes/new'}`; title: string }>
> = {
  profile: { to: '/apps/$appId/profiles', title: 'nav.profiles' },
  device: { to: '/apps/$appId/settings', title: 'steps.keys' },
  push: { to: '/apps/$appId/pushes/new', title: 'compose.heading' },
};

/** The three steps to the first push of a new app. Finished steps have a check mark. */
function FirstSteps({
  appId,
  setup,
}: {
  appId: string;
  setup: NonNullable<OverviewData['setup']>;
}) {
  const { t } = useTranslation();
  // Loads only the app key, because a device needs no other key.
  const appKey = useAppKey(appId, 'appKey', useMay('owner') && !setup.hasDevice).data?.value;
  const done = { profile: setup.hasProfile, device: setup.hasDevice, push: setup.hasPush };
  // Devices of the device channel need no gateway.
  const isOptional = (name: string) => name === 'profile' && setup.hasDevice;
  const next = steps.find(({ name }) => !done[name] && !isOptional(name))?.name;
  return (
    <Panel
      title={t('steps.title')}
      side={
        <Link to="/apps/$appId/move-in" params={{ appId }}>
          {t('steps.moveIn')}
        </Link>
      }
    >
      <ol className={styles.steps}>
        {steps.map(({ name, command }) => (
          <li key={name} className={styles.step}>
            <span className={styles.stepTitle}>
              <Badge tone={done[name] ? 'good' : 'idle'}>
                {t(done[name] ? 'steps.done' : isOptional(name) ? 'steps.optional' : 'steps.open')}
              </Badge>
              {t(`steps.${name}`)}
              {!done[name] && pages[name] !== undefined && (
                <Link
                  to={pages[name].to}
                  params={{ appId }}
                  className={buttonClass(name === next ? 'primary' : 'plain')}
                >
                  {t(pages[name].title)}
                </Link>
              )}
            </span>
            {!done[name] && (
              <Snippet label={t(`steps.${name}Hint`)} text={command(appId, appKey)} />
            )}
          </li>
        ))}
      </ol>
      <TryLink />
    </Panel>
  );
}

/** Host names at which a browser is on the machine of `npm start`. */
const localHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Link to the page of `npm start` that tries Web Push. Other machines cannot open the page. */
function TryLink() {
  const { t } = useTranslation();
  const url = useMeta().data?.tryUrl;
  if (!url || !localHosts.has(window.location.hostname)) return null;
  return (
    <p>
      {t('steps.tryHint')}{' '}
      <a href={url} target="_blank" rel="noreferrer">
        {t('steps.try')}
      </a>
    </p>
  );
}
