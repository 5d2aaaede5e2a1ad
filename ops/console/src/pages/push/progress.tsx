import { Link } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail, PushProgress } from '../../../../client/operations.ts';
import { useBreakers } from '../../api/operating.ts';
import { waitingOf } from '../../api/push.ts';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Badge } from '../../kit/data/values.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Empty, Loading } from '../../kit/states.tsx';
import { connectorOf } from '../../search.ts';
import { connectorName } from '../../text/explanation.ts';
import { formatCount, formatDuration, formatShare } from '../../text/format.ts';
import { loadPage } from '../missing.tsx';
import { endedOf, OutcomeBar, type Totals, unacknowledgedOf } from '../pushes/shown-push.tsx';
import { Funnel } from './headline.tsx';
import { Milestones } from './milestones.tsx';
import styles from './push.module.css';

const Timeline = lazy(async () => ({
  default: (await loadPage(() => import('./milestones.tsx'))).Timeline,
}));

interface ProgressProps {
  appId: string;
  push: PushDetail;
  progress: PushProgress | undefined;
}

/** Progress of a push: total, over time and by connector. */
export function Progress({ appId, push, progress }: ProgressProps) {
  const { t } = useTranslation();
  const outcomes = progress?.outcomes ?? push.outcomes;
  const devices = Math.max(progress?.devices ?? 0, push.devices);
  const unacknowledged = progress ? waitingOf(progress) : unacknowledgedOf(push);
  const ended = endedOf(outcomes);
  const title = t('overview.of', { done: formatCount(ended), all: formatCount(devices) });
  return (
    <>
      <Milestones push={push} />
      <Panel
        title={
          unacknowledged > 0
            ? `${title} · ${t('push.awaited', { devices: formatCount(unacknowledged) })}`
            : title
        }
        side={<Rate progress={progress} />}
      >
        <div className={styles.total}>
          <OutcomeBar totals={outcomes} devices={devices} unacknowledged={unacknowledged} />
          <Funnel {...{ push, progress }} sent={(outcomes.sent ?? 0) - unacknowledged} />
          <Figures {...{ outcomes, push, progress, unacknowledged }} />
        </div>
      </Panel>
      <Panel title={t('push.byConnector')}>
        <ByConnector appId={appId} push={push} progress={progress} />
      </Panel>
      <Panel title={t('push.timeline')}>
        <Suspense fallback={<Loading />}>
          <Timeline appId={appId} push={push} />
        </Suspense>
      </Panel>
    </>
  );
}

/** Final states of a push. The rate of a finished push is not shown. */
const finished: ReadonlySet<string> = new Set(['done', 'cancelled']);

/**
 * Rate and remaining time. Hidden while nothing is sent, because the average rate would only fall.
 */
function Rate({ progress }: { progress: PushProgress | undefined }) {
  const { t } = useTranslation();
  if (
    !progress ||
    progress.perSecond === 0 ||
    progress.status === 'paused' ||
    finished.has(progress.status)
  )
    return null;
  const rate = t('push.rate', { rate: formatCount(progress.perSecond) });
  const left = progress.secondsLeft;
  return (
    <span>
      {left === null ? rate : `${rate} · ${t('push.left', { time: formatDuration(left * 1000) })}`}
    </span>
  );
}

const visibleOutcomes = [
  'sent',
  'invalid_token',
  'failed',
  'expired',
  'capped',
  'dropped',
] as const;

interface FiguresProps {
  outcomes: Totals;
  push: PushDetail;
  progress: PushProgress | undefined;
  unacknowledged: number;
}

function Figures({ outcomes, push, progress, unacknowledged }: FiguresProps) {
  const { t } = useTranslation();
  const others = visibleOutcomes
    .slice(1)
    .map((name): [string, number] => [t(`outcome.${name}`), outcomes[name] ?? 0]);
  const rows: [string, number][] = [
    ...(unacknowledged > 0
      ? [[t('outcome.unacknowledged'), unacknowledged] as [string, number]]
      : []),
    ...others,
    ...eventRows(progress?.events ?? push.events, t),
  ];
  return (
    <dl className={styles.figures}>
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{formatCount(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Rows of the events that the app reported. */
function eventRows(events: PushDetail['events'], t: TFunction): [string, number][] {
  if (events === undefined) return [];
  return (['received', 'opened', 'dismissed'] as const).map((type) => [
    t(`pushes.events.${type}`),
    events[type],
  ]);
}

interface ConnectorRow {
  id: string;
  totals: Totals;
  open: number;
  /** Sent messages that wait in a device's inbox. */
  unacknowledged: number;
}

interface ByConnectorProps {
  appId: string;
  push: PushDetail;
  progress: PushProgress | undefined;
}

/** Outcomes whose column is left out if no recipient has them, so that the table fits the page. */
const seldom: ReadonlySet<string> = new Set(['expired', 'capped', 'dropped']);

function ByConnector({ appId, push, progress }: ByConnectorProps) {
  const { t } = useTranslation();
  const columns = useConnectorColumns(appId, push.objectId);
  const totals = new Map(Object.entries(progress?.connectors ?? {}));
  const open = new Map(Object.entries(progress?.open ?? {}));
  const rows = [...new Set([...totals.keys(), ...open.keys()])].map(
    (id): ConnectorRow => ({
      id,
      totals: totals.get(id) ?? {},
      open: open.get(id) ?? 0,
      unacknowledged: id === 'channel' && progress ? waitingOf(progress) : 0,
    }),
  );
  const isUnsent = push.state === 'cancelled' && push.firstSentAt === null;
  if (rows.length === 0)
    return <Empty title={t(isUnsent ? 'push.nothingSent' : 'push.noConnectors')} />;
  const isWaiting = rows.some(({ unacknowledged }) => unacknowledged > 0);
  const isUsed = (key: string) =>
    !seldom.has(key) ||
    rows.some(({ totals }) =>
      Object.entries(totals).some(([name, count]) => name === key && count > 0),
    );
  const visibleColumns = columns.filter(
    ({ key }) => isUsed(key) && (key !== 'unacknowledged' || isWaiting),
  );
  return (
    <Table
      label={t('push.byConnector')}
      columns={visibleColumns}
      rows={rows}
      keyOf={({ id }) => id}
    />
  );
}

function useConnectorColumns(appId: string, pushId: string): Column<ConnectorRow>[] {
  const { t } = useTranslation();
  return [
    {
      key: 'name',
      title: t('push.connector'),
      isWide: true,
      cell: ({ id, open: waiting }) => (
        <>
          {connectorName(id)}{' '}
          {waiting > 0 && <Waiting appId={appId} connector={id} waiting={waiting} />}
        </>
      ),
    },
    {
      key: 'bar',
      title: t('pushes.outcomes'),
      cell: ({ totals, open, unacknowledged }) => (
        <OutcomeBar
          totals={totals}
          devices={endedOf(totals) + open}
          unacknowledged={unacknowledged}
        />
      ),
    },
    {
      key: 'open',
      title: t('outcome.open'),
      isNumber: true,
      cell: ({ open: waiting }) => formatCount(waiting),
    },
    {
      key: 'unacknowledged',
      title: t('outcome.unacknowledged'),
      isNumber: true,
      cell: ({ unacknowledged }) => formatCount(unacknowledged),
    },
    {
      key: 'sent',
      title: t('outcome.sent'),
      isNumber: true,
      cell: ({ totals, unacknowledged }) => formatCount((totals.sent ?? 0) - unacknowledged),
    },
    ...visibleOutcomes.slice(1).map(
      (name): Column<ConnectorRow> => ({
        key: name,
        title: t(`outcome.${name}`),
        isNumber: true,
        cell: ({ id, totals }) => (
          <EndedLink
            {...{ appId, pushId }}
            connector={id}
            outcome={name}
            count={totals[name] ?? 0}
          />
        ),
      }),
    ),
    {
      key: 'share',
      title: t('push.share'),
      isNumber: true,
      cell: ({ totals, unacknowledged }) =>
        formatShare((totals.sent ?? 0) - unacknowledged, endedOf(totals)),
    },
  ];
}

interface EndedLinkProps {
  appId: string;
  pushId: string;
  connector: string;
  outcome: (typeof visibleOutcomes)[number];
  count: number;
}

/**
 * Number of recipients with an outcome. A number of failures is a link to the failed devices and
 * causes.
 */
function EndedLink({ appId, pushId, connector, outcome, count }: EndedLinkProps) {
  const isFailure = outcome === 'failed' || outcome === 'invalid_token';
  if (!isFailure || count === 0) return formatCount(count);
  return (
    <Link
      to="/apps/$appId/pushes/$pushId"
      params={{ appId, pushId }}
      search={{ tab: 'failures', connector: connectorOf(connector), outcome }}
    >
      {formatCount(count)}
    </Link>
  );
}

/** Notice that recipients wait for a paused gateway. */
function Waiting({
  appId,
  connector,
  waiting,
}: {
  appId: string;
  connector: string;
  waiting: number;
}) {
  const { t } = useTranslation();
  const breakers = useBreakers().data?.results ?? [];
  const stopped = breakers.find(
    (one) => one.appId === appId && one.connector === connector && one.state !== 'closed',
  );
  if (!stopped) return null;
  return (
    <span>
      <Badge tone={stopped.state === 'open' ? 'bad' : 'warn'}>
        {t(stopped.state === 'open' ? 'push.breakerOpen' : 'push.breakerTries', {
          waiting: formatCount(waiting),
        })}
      </Badge>{' '}
      <Link to="/operating">{t('push.look')}</Link>
    </span>
  );
}
