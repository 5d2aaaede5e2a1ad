import { CatchBoundary, getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { AppSummary } from '../../../../client/operations.ts';
import { appsPage, useAppCreation, useAppList } from '../../api/apps.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Commands, Snippet } from '../../kit/controls/copy.tsx';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { FilterForm, FilterText, useFilterText } from '../../kit/form/filter-form.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { AppFilters } from '../../search.ts';
import { formatCount } from '../../text/format.ts';
import { loadPage } from '../missing.tsx';
import styles from './new-app.module.css';

const maxName = 100;

/** Form that creates an app and opens its overview. */
function NewApp() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const creation = useAppCreation();
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    creation.mutate(name.trim(), {
      onSuccess: ({ appId }) => void navigate({ to: '/apps/$appId', params: { appId } }),
    });
  };
  return (
    <Panel title={t('apps.new')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <TextField
          label={t('apps.name')}
          value={name}
          required
          maxLength={maxName}
          pattern=".*\S.*"
          onChange={(event) => setName(event.target.value)}
        />
        <Button type="submit" isBusy={creation.isPending}>
          {t('apps.create')}
        </Button>
      </form>
      {creation.error && <Failure error={creation.error} />}
    </Panel>
  );
}

const route = getRouteApi('/');

const Current = lazy(() =>
  loadPage(() => import('./current.tsx')).then((module) => ({ default: module.Current })),
);

/** Message that the code of the panels could not be loaded. */
function NotLoaded() {
  const { t } = useTranslation();
  return <p role="alert">{t('failure.load')}</p>;
}

/** Maximum to which the server counts. */
const maxCount = 10_000;
const atLeast = (count: number) =>
  count < maxCount ? formatCount(count) : `≥ ${formatCount(count)}`;

/** Apps that the person may see. The URL contains the search, the order and the page. */
export function Home() {
  const { t } = useTranslation();
  const { apps } = useOperator();
  const filters = route.useSearch();
  // A token that is limited to some apps cannot create apps.
  const isOwner = useMay('owner');
  const mayCreate = isOwner && apps === null;
  const navigate = useNavigate();
  // The list of apps is shown before the code of the other panels is loaded.
  const isLoaded = useAppList(filters).data !== undefined;
  const show = (search: AppFilters) => void navigate({ to: '/', search });
  return (
    <>
      <PageHeader title={t('apps.title')} />
      {isLoaded && (
        <CatchBoundary getResetKey={() => 'current'} errorComponent={NotLoaded}>
          <Suspense fallback={<Loading />}>
            <Current />
          </Suspense>
        </CatchBoundary>
      )}
      <Search q={filters.q ?? ''} show={(q) => show({ q, sort: filters.sort })} />
      <Panel title={t('apps.list')}>
        <List filters={filters} show={show} />
      </Panel>
      {mayCreate && <NewApp />}
      <Commands request={requestOf('listApps', appsPage(filters))} command="apps" />
    </>
  );
}

type Show = (search: AppFilters) => void;

function Search({ q, show }: { q: string; show: (q: string | undefined) => void }) {
  const { t } = useTranslation();
  const [draft, setDraft] = useFilterText(q);
  return (
    <FilterForm apply={() => show(draft.trim() || undefined)}>
      <FilterText label={t('apps.find')} value={draft} change={setDraft} />
    </FilterForm>
  );
}

function List({ filters, show }: { filters: AppFilters; show: Show }) {
  const { t } = useTranslation();
  const { q, sort, cursor } = filters;
  const { data, error, isPending, refetch } = useAppList(filters);
  if (isPending) return <Loading />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0 && q !== undefined)
    return (
      <Empty title={t('apps.noMatch')}>
        <Button onClick={() => show({})}>{t('action.clearFilters')}</Button>
      </Empty>
    );
  if (data.results.length === 0)
    return (
      <Empty title={t('apps.empty')}>
        <Snippet label={t('apps.emptyHint')} text="npx carillon app create demo" />
      </Empty>
    );
  const rows = data.results.filter((app): app is AppSummary => 'devices' in app);
  const isSortable = rows.length > 1 || cursor !== undefined;
  return (
    <>
      {isSortable && (
        <div className={styles.sort}>
          <Choice
            label={t('apps.sort')}
            value={sort ?? 'name'}
            onChange={(event) =>
              show({ q, sort: event.target.value === 'activity' ? 'activity' : undefined })
            }
          >
            <option value="name">{t('apps.byName')}</option>
            <option value="activity">{t('apps.byActivity')}</option>
          </Choice>
        </div>
      )}
      <Table
        label={t('apps.list')}
        columns={columnsOf(t)}
        rows={rows}
        keyOf={({ appId }) => appId}
      />
      <Pager next={data.next} cursor={cursor} open={(next) => show({ q, sort, cursor: next })} />
    </>
  );
}

function columnsOf(t: (key: string) => string): Column<AppSummary>[] {
  return [
    {
      key: 'name',
      title: t('apps.name'),
      isWide: true,
      cell: ({ appId, name }) => (
        <Link to="/apps/$appId" params={{ appId }} translate="no">
          {name}
        </Link>
      ),
    },
    { key: 'id', title: t('apps.id'), cell: ({ appId }) => <code>{appId}</code> },
    { key: 'plan', title: t('apps.plan'), cell: ({ plan }) => t(`plan.${plan}`) },
    {
      key: 'devices',
      title: t('apps.devices'),
      isNumber: true,
      cell: ({ devices }) => atLeast(devices),
    },
    {
      key: 'pushes',
      title: t('apps.pushes'),
      isNumber: true,
      cell: ({ pushes7d }) => atLeast(pushes7d),
    },
    { key: 'created', title: t('apps.created'), cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}
