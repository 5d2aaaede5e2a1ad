import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { UserPart } from '../../../../../client/operations.ts';
import { usersPage, useUsers } from '../../../api/access.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { TextField } from '../../../kit/controls/field.tsx';
import { Pager } from '../../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { FilterForm, FilterText, useFilterText } from '../../../kit/form/filter-form.tsx';
import { PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import type { UserFilters } from '../../../search.ts';

const route = getRouteApi('/apps/$appId/users');

/**
 * Users of an app, newest first. They can be searched by id, name, email address or phone number.
 */
export function Users() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const filters = route.useSearch();
  const navigate = useNavigate();
  const change = (search: UserFilters) =>
    void navigate({ to: '/apps/$appId/users', params: { appId }, search });
  return (
    <>
      <PageHeader title={t('nav.users')} />
      <Filters filters={filters} change={change} />
      <Panel title={t('users.list')}>
        <UserTable appId={appId} filters={filters} change={change} />
      </Panel>
      <Commands
        request={requestOf('listAppUsers', usersPage(appId, filters))}
        command={`user list --app ${appId}`}
      />
    </>
  );
}

interface FiltersProps {
  filters: UserFilters;
  change: (filters: UserFilters) => void;
}

/** Search by id or by a JSON condition. Both apply on Enter. */
function Filters({ filters, change }: FiltersProps) {
  const { t } = useTranslation();
  const [query, setQuery] = useFilterText(filters.q);
  const [where, setWhere] = useFilterText(filters.where);
  const [error, setError] = useState<string>();
  const apply = () => {
    const condition = where.trim() || undefined;
    if (condition !== undefined && !isJson(condition)) return setError(t('devices.badWhere'));
    setError(undefined);
    change({ q: query.trim() || undefined, where: condition });
  };
  return (
    <FilterForm apply={apply}>
      <FilterText label={t('users.search')} value={query} change={setQuery} />
      <TextField
        isCompact
        error={error}
        label={t('devices.where')}
        placeholder='{"emailVerified":false}'
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

interface UserTableProps extends FiltersProps {
  appId: string;
}

function UserTable({ appId, filters, change }: UserTableProps) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useUsers(appId, filters);
  if (isPending) return <Loading rows={8} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  const isFiltered = filters.q !== undefined || filters.where !== undefined;
  if (data.results.length === 0 && filters.cursor === undefined)
    return (
      <Empty title={t(isFiltered ? 'users.noMatch' : 'users.empty')}>
        {isFiltered ? (
          <Button onClick={() => change({})}>{t('action.clearFilters')}</Button>
        ) : (
          <p>{t('users.emptyHint')}</p>
        )}
      </Empty>
    );
  return (
    <>
      <Table
        label={t('users.list')}
        columns={columnsOf(appId, t)}
        rows={data.results}
        keyOf={({ objectId = '' }) => objectId}
      />
      <Pager
        next={data.next}
        cursor={filters.cursor}
        open={(cursor) => change({ ...filters, cursor })}
      />
    </>
  );
}

function columnsOf(appId: string, t: TFunction): Column<UserPart>[] {
  return [
    {
      key: 'name',
      title: t('users.name'),
      isWide: true,
      cell: ({ objectId = '', username }) => (
        <Link to="/apps/$appId/users/$userId" params={{ appId, userId: objectId }}>
          {username ?? objectId}
        </Link>
      ),
    },
    { key: 'id', title: t('devices.id'), cell: ({ objectId }) => <code>{objectId}</code> },
    {
      key: 'email',
      title: t('users.email'),
      cell: ({ email, emailVerified }) => (
        <Contact value={email} isVerified={emailVerified === true} />
      ),
    },
    {
      key: 'phone',
      title: t('users.phone'),
      cell: ({ mobilePhoneNumber, mobilePhoneVerified }) => (
        <Contact value={mobilePhoneNumber} isVerified={mobilePhoneVerified === true} />
      ),
    },
    { key: 'created', title: t('users.created'), cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}

/** Email address or phone number of a user, and whether it is verified. */
export function Contact({ value, isVerified }: { value: unknown; isVerified: boolean }) {
  const { t } = useTranslation();
  if (typeof value !== 'string') return <>–</>;
  return (
    <>
      {value}{' '}
      <Badge tone={isVerified ? 'good' : 'idle'}>
        {t(isVerified ? 'users.verified' : 'users.unverified')}
      </Badge>
    </>
  );
}
