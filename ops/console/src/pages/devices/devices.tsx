import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { Installation } from '../../../../client/operations.ts';
import { devicesPage, useDevices } from '../../api/devices.ts';
import { useMay } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Commands, Snippet } from '../../kit/controls/copy.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, type Selection, selectionColumn, Table } from '../../kit/data/table.tsx';
import { Badge, Time } from '../../kit/data/values.tsx';
import { FilterForm, FilterText } from '../../kit/form/filter-form.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { DeviceFilters } from '../../search.ts';
import { Bulk } from './bulk.tsx';

interface IdFiltersProps {
  filters: DeviceFilters;
  change: (filters: DeviceFilters) => void;
  /** Description of what the search finds. */
  label: string;
  /** Example of a condition. */
  example: string;
}

/** Search by id or by a JSON condition. Both apply on Enter. */
export function IdFilters({ filters, change, label, example }: IdFiltersProps) {
  const { t } = useTranslation();
  const [query, setQuery] = useState(filters.q ?? '');
  const [where, setWhere] = useState(filters.where ?? '');
  const [error, setError] = useState<string>();
  const apply = () => {
    const condition = where.trim() || undefined;
    if (condition !== undefined && !isJson(condition)) return setError(t('devices.badWhere'));
    setError(undefined);
    change({ q: query.trim() || undefined, where: condition });
  };
  return (
    <FilterForm apply={apply}>
      <FilterText label={label} value={query} change={setQuery} />
      <TextField
        isCompact
        error={error}
        label={t('devices.where')}
        placeholder={example}
        spellCheck={false}
        value={where}
        onChange={(event) => setWhere(event.target.value)}
      />
    </FilterForm>
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

const route = getRouteApi('/apps/$appId/devices');

/** Devices of an app, newest first. They can be searched by id or condition. */
export function Devices() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const filters = route.useSearch();
  const navigate = useNavigate();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const change = (search: DeviceFilters) => {
    setSelected(new Set());
    void navigate({ to: '/apps/$appId/devices', params: { appId }, search });
  };
  return (
    <>
      <PageHeader title={t('nav.devices')} />
      <IdFilters
        filters={filters}
        change={change}
        label={t('devices.search')}
        example='{"deviceType":"ios"}'
      />
      <Panel
        title={t('devices.list')}
        side={<Bulk {...{ appId, filters, selected }} clear={() => setSelected(new Set())} />}
      >
        <DeviceTable {...{ appId, filters, change, selected }} select={setSelected} />
      </Panel>
      <Commands
        request={requestOf('listAppInstallations', devicesPage(appId, filters))}
        command={`devices --app ${appId}`}
      />
    </>
  );
}

interface FiltersProps {
  filters: DeviceFilters;
  change: (filters: DeviceFilters) => void;
}

interface DeviceTableProps extends FiltersProps, Selection {
  appId: string;
}

function DeviceTable({ appId, filters, change, ...selection }: DeviceTableProps) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useDevices(appId, filters);
  const mayChange = useMay('operator');
  if (isPending) return <Loading rows={8} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  const labelOf = ({ objectId }: Installation) => t('devices.selectOne', { id: objectId });
  const isFiltered = filters.q !== undefined || filters.where !== undefined;
  if (data.results.length === 0)
    return (
      <Empty title={t(isFiltered ? 'devices.noMatch' : 'devices.empty')}>
        {isFiltered ? (
          <Button onClick={() => change({})}>{t('action.clearFilters')}</Button>
        ) : (
          <>
            <p>{t('devices.emptyHint')}</p>
            <Snippet label="curl" text={registration(appId)} />
          </>
        )}
      </Empty>
    );
  return (
    <>
      <Table
        label={t('devices.list')}
        columns={[
          ...(mayChange ? [selectionColumn(selection, labelOf, t)] : []),
          ...columnsOf(appId, t),
        ]}
        rows={data.results}
        keyOf={({ objectId }) => objectId}
      />
      <Pager
        next={data.next}
        cursor={filters.cursor}
        open={(cursor) => change({ ...filters, cursor })}
      />
    </>
  );
}

const registration = (appId: string): string =>
  `curl ${window.location.origin}/1.1/installations -H 'X-LC-Id: ${appId}' -H "X-LC-Key: $APP_KEY" \\\n  -H 'Content-Type: application/json' -d '{"deviceType":"ios","deviceToken":"…"}'`;

function columnsOf(appId: string, t: (key: string) => string): Column<Installation>[] {
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
        <Badge tone={valid === false ? 'bad' : 'good'}>
          {t(valid === false ? 'why.no' : 'why.yes')}
        </Badge>
      ),
    },
    {
      key: 'updated',
      title: t('devices.updated'),
      cell: ({ updatedAt }) => <Time at={updatedAt} />,
    },
    {
      key: 'created',
      title: t('devices.created'),
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ];
}
