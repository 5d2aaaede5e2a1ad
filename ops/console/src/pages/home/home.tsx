import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useApps } from '../../api/queries.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Commands, Snippet } from '../../kit/controls/copy.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/time.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';
import { NewApp } from './new-app.tsx';

type AppRow = NonNullable<ReturnType<typeof useApps>['data']>['results'][number];

/** The server counts up to this number. */
const maxCount = 10_000;
const atLeast = (count: number) => (count < maxCount ? formatCount(count) : `≥ ${formatCount(count)}`);

/** All apps that the person may see. */
export function Home() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useApps();
  const { apps } = useOperator();
  // A token for some apps creates none.
  const isOwner = useMay('owner');
  const mayCreate = isOwner && apps === null;
  const columns: Column<AppRow>[] = [
    {
      key: 'name',
      title: t('apps.name'),
      isWide: true,
      cell: ({ appId, name }) => (
        <Link to="/apps/$appId" params={{ appId }}>
          {name}
        </Link>
      ),
    },
    { key: 'id', title: t('apps.id'), cell: ({ appId }) => <code>{appId}</code> },
    { key: 'plan', title: t('apps.plan'), cell: ({ plan }) => t(`plan.${plan}`) },
    { key: 'devices', title: t('apps.devices'), isNumber: true, cell: ({ devices }) => atLeast(devices) },
    { key: 'pushes', title: t('apps.pushes'), isNumber: true, cell: ({ pushes7d }) => atLeast(pushes7d) },
    { key: 'created', title: t('apps.created'), cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  return (
    <>
      <PageHeader title={t('apps.title')} />
      <Panel title={t('apps.list')}>
        {isPending ? (
          <Loading />
        ) : error ? (
          <Failure error={error} retry={() => void refetch()} />
        ) : data.results.length === 0 ? (
          <Empty title={t('apps.empty')}>
            <Snippet label={t('apps.emptyHint')} text="npx carillon app create demo" />
          </Empty>
        ) : (
          <Table label={t('apps.list')} columns={columns} rows={data.results} keyOf={({ appId }) => appId} />
        )}
      </Panel>
      {mayCreate && <NewApp />}
      <Commands path="/apps?view=list" command="apps" />
    </>
  );
}
