import { useTranslation } from 'react-i18next';
import type { SeenProcess } from '../../../../client/operations.ts';
import { useProcesses } from '../../api/operating.ts';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/time.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';

/** Processes of the service that run. */
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
    { key: 'version', title: t('processes.version'), cell: ({ version }) => <code>{version}</code> },
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
    { key: 'started', title: t('processes.started'), cell: ({ startedAt }) => <Time at={startedAt} /> },
    { key: 'seen', title: t('processes.seen'), cell: ({ seenAt }) => <Time at={seenAt} /> },
  ];
  return <Table label={t('processes.title')} columns={columns} rows={data.results} keyOf={({ id }) => id} />;
}
