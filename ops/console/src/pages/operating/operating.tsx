import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { Breaker, QueueState } from '../../../../client/operations.ts';
import { useAppNames } from '../../api/apps.ts';
import {
  useBreakerAct,
  useBreakers,
  useFreeze,
  useFreezes,
  useQueues,
} from '../../api/operating.ts';
import { useIsOfService, useMay } from '../../api/session.tsx';
import { Button, buttonClass } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Badge, Reason, Time, type Tone } from '../../kit/data/values.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { connectorName } from '../../text/explanation.ts';
import { formatCount, formatDuration } from '../../text/format.ts';
import { Doctor } from './doctor.tsx';
import styles from './operating.module.css';
import { Jobs, Processes } from './processes.tsx';

const tones: Record<Breaker['state'], Tone> = { closed: 'good', 'half-open': 'warn', open: 'bad' };

/** State of a breaker as a coloured label, and whether a person forced it. */
export function BreakerBadge({
  breaker: { state, forced },
}: {
  breaker: Pick<Breaker, 'state' | 'forced'>;
}) {
  const { t } = useTranslation();
  return (
    <Badge tone={tones[state]}>
      {t(`breakerState.${state}`)}
      {forced && ` · ${t('operating.forced')}`}
    </Badge>
  );
}

const maxReason = 200;

/**
 * Form that freezes an app or, for null, the whole service. A notice above every page ends the
 * freeze.
 */
export function FreezePanel({ appId }: { appId: string | null }) {
  const { t } = useTranslation();
  const [reason, setReason] = useState('');
  const freezes = useFreezes();
  const freeze = useFreeze(appId);
  const isFrozen = freezes.data?.results.some((one) => one.appId === appId) ?? false;
  const scope = appId === null ? 'Service' : 'App';
  const act = t(`freeze.freeze${scope}`);
  return (
    <Panel title={t('freeze.title')}>
      <p>{isFrozen ? t('freeze.isFrozen') : t(`freeze.about${scope}`)}</p>
      {!isFrozen && (
        <div className={styles.freeze}>
          <TextField
            label={t('freeze.reason')}
            value={reason}
            maxLength={maxReason}
            onChange={(event) => setReason(event.target.value)}
          />
          <Confirm trigger={act} title={act} action={act} onConfirm={() => freeze.mutate(reason)}>
            <p>{t(`freeze.confirm${scope}`)}</p>
          </Confirm>
        </div>
      )}
      {freeze.error && <Failure error={freeze.error} />}
    </Panel>
  );
}

const route = getRouteApi('/operating');

/** Breakers of the gateways and job queues. Operators of all apps also see processes and checks. */
export function Operating() {
  const { t } = useTranslation();
  const { queue } = route.useSearch();
  const isOfService = useIsOfService();
  return (
    <>
      <PageHeader title={t('nav.operating')} side={<ServiceLinks />} />
      <Panel title={t('operating.breakers')}>
        <Breakers />
      </Panel>
      <Panel title={t('operating.queues')}>
        <Queues />
      </Panel>
      {isOfService && (
        <>
          {queue !== undefined && <Jobs queue={queue} />}
          <Panel title={t('processes.title')}>
            <Processes />
          </Panel>
          <Doctor />
          <FreezePanel appId={null} />
        </>
      )}
      <Commands request={requestOf('listBreakers')} command="breakers" />
    </>
  );
}

/** Links to pages of the service: checks for production, and for owners the service secret. */
function ServiceLinks() {
  const { t } = useTranslation();
  const isOfService = useIsOfService();
  const isOwner = useMay('owner');
  if (!isOfService) return null;
  return (
    <>
      <Link to="/go-live" className={buttonClass('plain')}>
        {t('goLive.title')}
      </Link>
      {isOwner && (
        <Link to="/secret" className={buttonClass('plain')}>
          {t('secret.title')}
        </Link>
      )}
    </>
  );
}

function Breakers() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useBreakers();
  const nameOf = useAppNames(data?.results.map(({ appId }) => appId) ?? []);
  const mayForce = useMay('operator');
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={t('operating.noBreakers')} />;
  const columns: Column<Breaker>[] = [
    {
      key: 'gateway',
      title: t('push.connector'),
      isWide: true,
      cell: ({ connector }) => connectorName(connector),
    },
    {
      key: 'app',
      title: t('operating.app'),
      cell: ({ appId }) => <span translate="no">{nameOf(appId)}</span>,
    },
    {
      key: 'profile',
      title: t('operating.profile'),
      cell: ({ profile }) => <code>{profile}</code>,
    },
    {
      key: 'state',
      title: t('pushes.state'),
      cell: (breaker) => <BreakerBadge breaker={breaker} />,
    },
    { key: 'since', title: t('operating.since'), cell: ({ since }) => <Time at={since} /> },
    {
      key: 'failure',
      title: t('operating.lastFailure'),
      cell: ({ lastFailure }) => (lastFailure ? <Reason {...lastFailure} /> : '–'),
    },
    ...(mayForce
      ? [
          {
            key: 'actions',
            title: t('operating.actions'),
            cell: (row: Breaker) => <Force breaker={row} />,
          },
        ]
      : []),
  ];
  return (
    <Table
      label={t('operating.breakers')}
      columns={columns}
      rows={data.results.toSorted(byState)}
      keyOf={({ id }) => id}
    />
  );
}

/** Compares breakers: those that do not send come first. */
const byState = (a: Breaker, b: Breaker): number =>
  Number(a.state === 'closed') - Number(b.state === 'closed');

/** Buttons that force a breaker or return it to automatic control. */
function Force({ breaker }: { breaker: Breaker }) {
  const { t } = useTranslation();
  const force = useBreakerAct(breaker.id);
  const name = `${connectorName(breaker.connector)} · ${breaker.profile}`;
  const verb = breaker.forced ? 'release' : breaker.state === 'closed' ? 'open' : 'close';
  return (
    <>
      <Button
        isBusy={force.isPending}
        onClick={() => force.mutate(verb)}
        aria-label={t(`operating.${verb}Of`, { name })}
      >
        {t(`operating.${verb}`)}
      </Button>
      {force.error && <Failure error={force.error} />}
    </>
  );
}

function Queues() {
  const { t } = useTranslation();
  const isOfService = useIsOfService();
  const { data, error, isPending, refetch } = useQueues();
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={t('operating.noJobs')} />;
  const columns: Column<QueueState>[] = [
    {
      key: 'queue',
      title: t('operating.queue'),
      isWide: true,
      cell: ({ queue }) =>
        isOfService ? (
          <Link to="/operating" search={{ queue }}>
            <code>{queue}</code>
          </Link>
        ) : (
          <code>{queue}</code>
        ),
    },
    {
      key: 'ready',
      title: t('operating.ready'),
      isNumber: true,
      cell: ({ ready }) => formatCount(ready),
    },
    {
      key: 'active',
      title: t('operating.active'),
      isNumber: true,
      cell: ({ active }) => formatCount(active),
    },
    {
      key: 'waiting',
      title: t('operating.waiting'),
      isNumber: true,
      cell: ({ waiting }) => formatCount(waiting),
    },
    {
      key: 'oldest',
      title: t('operating.oldest'),
      isNumber: true,
      cell: ({ oldestSeconds }) => formatDuration(oldestSeconds * 1000),
    },
  ];
  return (
    <Table
      label={t('operating.queues')}
      columns={columns}
      rows={data.results}
      keyOf={({ queue }) => queue}
    />
  );
}
