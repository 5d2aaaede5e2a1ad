import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { devicesPath, type ListedDevice, useDevices } from '../../api/devices.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Pager } from '../../kit/controls/pager.tsx';
import { Badge } from '../../kit/data/badge.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/time.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { DeviceFilters } from '../../search.ts';
import styles from './devices.module.css';

const route = getRouteApi('/apps/$appId/devices');

/** Devices of an app, newest first, found by an id or a condition. */
export function Devices() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const filters = route.useSearch();
  const navigate = useNavigate();
  const change = (search: DeviceFilters) =>
    void navigate({ to: '/apps/$appId/devices', params: { appId }, search });
  return (
    <>
      <PageHeader title={t('nav.devices')} />
      <Filters filters={filters} change={change} />
      <Panel title={t('devices.list')}>
        <DeviceTable appId={appId} filters={filters} change={change} />
      </Panel>
      <Commands path={devicesPath(appId, filters)} command={`devices --app ${appId}`} />
    </>
  );
}

interface FiltersProps {
  filters: DeviceFilters;
  change: (filters: DeviceFilters) => void;
}

/** Search by an id, or by a condition as JSON; both apply with Enter. */
function Filters({ filters, change }: FiltersProps) {
  const { t } = useTranslation();
  const [query, setQuery] = useState(filters.q ?? '');
  const [where, setWhere] = useState(filters.where ?? '');
  const [error, setError] = useState<string>();
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const condition = where.trim() || undefined;
    if (condition !== undefined && !isJson(condition)) return setError(t('devices.badWhere'));
    setError(undefined);
    change({ q: query.trim() || undefined, where: condition });
  };
  return (
    <search>
      <form className={styles.filters} onSubmit={onSubmit}>
        <TextField
          type="search"
          isCompact
          label={t('devices.search')}
          placeholder={t('devices.search')}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <TextField
          isCompact
          error={error}
          label={t('devices.where')}
          placeholder='{"deviceType":"ios"}'
          spellCheck={false}
          value={where}
          onChange={(event) => setWhere(event.target.value)}
        />
        <Button type="submit">{t('action.search')}</Button>
      </form>
    </search>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function DeviceTable({ appId, filters, change }: FiltersProps & { appId: string }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useDevices(appId, filters);
  if (isPending) return <Loading rows={8} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  const isFiltered = filters.q !== undefined || filters.where !== undefined;
  if (data.results.length === 0)
    return (
      <Empty title={t(isFiltered ? 'devices.noMatch' : 'devices.empty')}>
        {isFiltered && <Button onClick={() => change({})}>{t('action.clearFilters')}</Button>}
      </Empty>
    );
  return (
    <>
      <Table
        label={t('devices.list')}
        columns={columnsOf(appId, t)}
        rows={data.results}
        keyOf={({ objectId }) => objectId}
      />
      <Pager next={data.next} cursor={filters.cursor} open={(cursor) => change({ ...filters, cursor })} />
    </>
  );
}

function columnsOf(appId: string, t: (key: string) => string): Column<ListedDevice>[] {
  return [
    {
      key: 'id',
      title: t('devices.id'),
      cell: ({ objectId }) => (
        <Link to="/apps/$appId/devices/$deviceId" params={{ appId, deviceId: objectId }}>
          <code>{objectId}</code>
        </Link>
      ),
    },
    {
      key: 'type',
      title: t('devices.type'),
      cell: ({ deviceType, vendor }) => (vendor ? `${deviceType}, ${vendor}` : deviceType),
    },
    {
      key: 'channels',
      title: t('devices.channels'),
      isWide: true,
      cell: ({ channels = [] }) => channels.join(', ') || '–',
    },
    {
      key: 'valid',
      title: t('devices.valid'),
      cell: ({ valid }) => (
        <Badge tone={valid === false ? 'bad' : 'good'}>{t(valid === false ? 'why.no' : 'why.yes')}</Badge>
      ),
    },
    { key: 'updated', title: t('devices.updated'), cell: ({ updatedAt }) => <Time at={updatedAt} /> },
    { key: 'created', title: t('devices.created'), cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}
