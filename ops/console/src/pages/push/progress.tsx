import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail, PushProgress } from '../../../../../api/replies/admin/types.ts';
import { connectorName } from '../../api/connectors.ts';
import { useBreakers } from '../../api/queries.ts';
import { Badge } from '../../kit/data/badge.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/time.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Empty, Loading } from '../../kit/states.tsx';
import { formatCount, formatDuration, formatShare } from '../../text/format.ts';
import { endedOf, OutcomeBar, type Totals } from '../pushes/shown-push.tsx';
import styles from './push.module.css';

const Timeline = lazy(() => import('./timeline.tsx').then((module) => ({ default: module.Timeline })));

interface ProgressProps {
  appId: string;
  push: PushDetail;
  progress: PushProgress | undefined;
}

/** How far a push is: in total, over time and by connector. */
export function Progress({ appId, push, progress }: ProgressProps) {
  const { t } = useTranslation();
  const outcomes = progress?.outcomes ?? push.outcomes;
  const devices = Math.max(progress?.devices ?? 0, push.devices);
  const ended = endedOf(outcomes);
  return (
    <>
      <Milestones push={push} />
      <Panel
        title={t('overview.of', { done: formatCount(ended), all: formatCount(devices) })}
        side={<Rate progress={progress} />}
      >
        <div className={styles.total}>
          <OutcomeBar totals={outcomes} devices={devices} />
          <Figures outcomes={outcomes} push={push} progress={progress} />
        </div>
      </Panel>
      <Panel title={t('push.byConnector')}>
        <ByConnector appId={appId} pushId={push.objectId} progress={progress} />
      </Panel>
      <Panel title={t('push.timeline')}>
        <Suspense fallback={<Loading />}>
          <Timeline appId={appId} push={push} />
        </Suspense>
      </Panel>
    </>
  );
}

/** Accepted, first request, done, with the time between them; who waited for quiet hours, and the next start. */
function Milestones({ push }: { push: PushDetail }) {
  const { t } = useTranslation();
  const startMs = Math.max(Date.parse(push.createdAt), Date.parse(push['push-time']));
  const since = (at: string | null) =>
    at === null ? '–' : `+${formatDuration(Math.max(0, Date.parse(at) - startMs))}`;
  return (
    <p className={styles.steps}>
      <span>
        {t('push.accepted')} <Time at={push.createdAt} />
      </span>
      <span>
        {t('push.firstSend')} <strong>{since(push.firstSentAt)}</strong>
      </span>
      <span>
        {t('push.finished')} <strong>{since(push.finishedAt)}</strong>
      </span>
      {push.quietWaits !== undefined && (
        <span>
          {t('push.quietWaits')} <strong>{formatCount(push.quietWaits)}</strong>
        </span>
      )}
      {push.nextStart !== null && (
        <span>
          {t('push.nextStart')} <Time at={push.nextStart} />
        </span>
      )}
    </p>
  );
}

/** States that end a push: its rate is of the past. */
const finished: ReadonlySet<string> = new Set(['done', 'cancelled']);

function Rate({ progress }: { progress: PushProgress | undefined }) {
  const { t } = useTranslation();
  if (!progress || progress.perSecond === 0 || finished.has(progress.status)) return null;
  const rate = t('push.rate', { rate: formatCount(progress.perSecond) });
  const left = progress.secondsLeft;
  return (
    <span>{left === null ? rate : `${rate} · ${t('push.left', { time: formatDuration(left * 1000) })}`}</span>
  );
}

const shown = ['sent', 'invalid_token', 'failed', 'expired', 'capped', 'dropped'] as const;

function Figures({
  outcomes,
  push,
  progress,
}: {
  outcomes: Totals;
  push: PushDetail;
  progress: PushProgress | undefined;
}) {
  const { t } = useTranslation();
  const rows: [string, number][] = [
    ...shown.map((name): [string, number] => [t(`outcome.${name}`), outcomes[name] ?? 0]),
    [t('pushes.delivered'), progress?.delivered ?? push.delivered],
    [t('pushes.clicked'), progress?.clicked ?? push.clicked],
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

interface ConnectorRow {
  id: string;
  totals: Totals;
  open: number;
}

interface ByConnectorProps {
  appId: string;
  pushId: string;
  progress: PushProgress | undefined;
}

function ByConnector({ appId, pushId, progress }: ByConnectorProps) {
  const { t } = useTranslation();
  const totals = new Map(Object.entries(progress?.connectors ?? {}));
  const open = new Map(Object.entries(progress?.open ?? {}));
  const rows = [...new Set([...totals.keys(), ...open.keys()])].map(
    (id): ConnectorRow => ({ id, totals: totals.get(id) ?? {}, open: open.get(id) ?? 0 }),
  );
  if (rows.length === 0) return <Empty title={t('push.noConnectors')} />;
  const columns: Column<ConnectorRow>[] = [
    {
      key: 'name',
      title: t('push.connector'),
      isWide: true,
      cell: ({ id, open: waiting }) => (
        <>
          {connectorName(id)} {waiting > 0 && <Waiting appId={appId} connector={id} waiting={waiting} />}
        </>
      ),
    },
    {
      key: 'bar',
      title: t('pushes.outcomes'),
      cell: (row) => <OutcomeBar totals={row.totals} devices={endedOf(row.totals) + row.open} />,
    },
    {
      key: 'open',
      title: t('outcome.open'),
      isNumber: true,
      cell: ({ open: waiting }) => formatCount(waiting),
    },
    ...shown.map(
      (name): Column<ConnectorRow> => ({
        key: name,
        title: t(`outcome.${name}`),
        isNumber: true,
        cell: ({ id, totals }) => (
          <EndedLink {...{ appId, pushId }} connector={id} outcome={name} count={totals[name] ?? 0} />
        ),
      }),
    ),
    {
      key: 'share',
      title: t('push.share'),
      isNumber: true,
      cell: ({ totals }) => formatShare(totals.sent ?? 0, endedOf(totals)),
    },
  ];
  return <Table label={t('push.byConnector')} columns={columns} rows={rows} keyOf={({ id }) => id} />;
}

interface EndedLinkProps {
  appId: string;
  pushId: string;
  connector: string;
  outcome: (typeof shown)[number];
  count: number;
}

/** Number of recipients with an outcome; of failures it leads to their devices, each with its cause. */
function EndedLink({ appId, pushId, connector, outcome, count }: EndedLinkProps) {
  const isFailure = outcome === 'failed' || outcome === 'invalid_token';
  if (!isFailure || count === 0) return formatCount(count);
  return (
    <Link
      to="/apps/$appId/pushes/$pushId"
      params={{ appId, pushId }}
      search={{ tab: 'failures', connector, outcome }}
    >
      {formatCount(count)}
    </Link>
  );
}

/** Says that recipients wait for a gateway that gets nothing. */
function Waiting({ appId, connector, waiting }: { appId: string; connector: string; waiting: number }) {
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
