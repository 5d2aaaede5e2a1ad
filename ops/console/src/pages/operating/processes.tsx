import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { SeenProcess, WaitingJob } from '../../../../client/operations.ts';
import { useJobs, useProcesses } from '../../api/operating.ts';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Badge, Time } from '../../kit/data/values.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';

/** Running processes of the service. */
export function Processes() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useProcesses();
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={t('processes.empty')} />;
  const columns: Column<SeenProcess>[] = [
    { key: 'kind', title: t('processes.kind'), cell: ({ kind }) => t(`processKind.${kind}`) },
    {
      key: 'host',
      title: t('processes.host'),
      isWide: true,
      cell: ({ host, pid }) => (
        <code>
          {host} {pid}
        </code>
      ),
    },
    {
      key: 'version',
      title: t('processes.version'),
      cell: ({ version }) => <code>{version}</code>,
    },
    {
      key: 'threads',
      title: t('processes.threads'),
      isNumber: true,
      cell: ({ threads }) => formatCount(threads),
    },
    {
      key: 'connections',
      title: t('processes.connections'),
      isNumber: true,
      cell: ({ connections }) => formatCount(connections),
    },
    {
      key: 'started',
      title: t('processes.started'),
      cell: ({ startedAt }) => <Time at={startedAt} />,
    },
    { key: 'seen', title: t('processes.seen'), cell: ({ seenAt }) => <Time at={seenAt} /> },
  ];
  return (
    <Table
      label={t('processes.title')}
      columns={columns}
      rows={data.results}
      keyOf={({ id }) => id}
    />
  );
}

/** Unfinished jobs of a queue: what they wait for, the number of attempts, and the push. */
export function Jobs({ queue }: { queue: string }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useJobs(queue);
  const columns: Column<WaitingJob>[] = [
    {
      key: 'state',
      title: t('pushes.state'),
      cell: ({ state }) => (
        <Badge tone={state === 'retry' ? 'warn' : state === 'active' ? 'accent' : 'idle'}>
          {t(`jobState.${state}`)}
        </Badge>
      ),
    },
    {
      key: 'tries',
      title: t('messages.attempts'),
      isNumber: true,
      cell: ({ tries }) => formatCount(tries),
    },
    { key: 'push', title: t('jobs.concerns'), isWide: true, cell: (job) => <Subject job={job} /> },
    { key: 'created', title: t('jobs.created'), cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      key: 'after',
      title: t('jobs.startAfter'),
      cell: ({ startAfter }) => <Time at={startAfter} />,
    },
  ];
  return (
    <Panel title={t('jobs.title', { queue })} side={<Link to="/operating">{t('jobs.close')}</Link>}>
      {isPending ? (
        <Loading />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data.results.length === 0 ? (
        <Empty title={t('jobs.empty')} />
      ) : (
        <Table
          label={t('jobs.title', { queue })}
          columns={columns}
          rows={data.results}
          keyOf={({ id }) => id}
        />
      )}
    </Panel>
  );
}

/** Push, batch or message of a job. A push is a link to its page. */
function Subject({ job: { appId, pushId, batchId, messageId } }: { job: WaitingJob }) {
  const text = [pushId, batchId, messageId].filter((id) => id !== null).join(' ');
  if (appId === null || pushId === null) return <code>{text || '–'}</code>;
  return (
    <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId }}>
      <code>{text}</code>
    </Link>
  );
}
