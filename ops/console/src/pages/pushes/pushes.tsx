import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { ListedPush } from '../../../../client/operations.ts';
import { pushesPage, usePushes } from '../../api/pushes.ts';
import { useMay } from '../../api/session.tsx';
import { Button, buttonClass } from '../../kit/controls/button.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, type Selection, selectionColumn, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { FilterChoice, FilterForm, FilterText, FilterTime } from '../../kit/form/filter-form.tsx';
import { isoTime, localTime } from '../../kit/form/values.ts';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { PushFilters, PushListSearch } from '../../search.ts';
import { formatCount, formatDuration, formatShare } from '../../text/format.ts';
import {
  OutcomeBar,
  PushLink,
  Sender,
  StateBadge,
  sources,
  titleOf,
  unacknowledgedOf,
} from './shown-push.tsx';

const states = ['scheduled', 'queued', 'sending', 'paused', 'done', 'failed', 'cancelled'] as const;
const times = ['from', 'to'] as const;

/** Filters of the list of pushes. */
export function Filters({
  filters,
  change,
}: {
  filters: PushFilters;
  change: (more: PushFilters) => void;
}) {
  const { t } = useTranslation();
  const { q = '', from, to } = filters;
  const [draft, setDraft] = useState({ q, from: localTime(from), to: localTime(to) });
  // Updates the inputs if the URL changes, for example by "Clear the filters" or the browser's back
  // button.
  useEffect(() => setDraft({ q, from: localTime(from), to: localTime(to) }), [q, from, to]);
  const apply = () =>
    change({ q: draft.q.trim() || undefined, from: isoTime(draft.from), to: isoTime(draft.to) });
  return (
    <FilterForm apply={apply} filters={filters}>
      <FilterText
        label={t('pushes.search')}
        value={draft.q}
        change={(text) => setDraft({ ...draft, q: text })}
      />
      <FilterChoice
        label={t('pushes.state')}
        any={t('pushes.anyState')}
        value={filters.status}
        options={states.map((state) => [state, t(`pushState.${state}`)] as const)}
        change={(status) => change({ status })}
      />
      <FilterChoice
        label={t('pushes.source')}
        any={t('pushes.anySource')}
        value={filters.source}
        options={sources.map((source) => [source, t(`pushSource.${source}`)] as const)}
        change={(source) => change({ source })}
      />
      {filters.recurring !== undefined && (
        <Button onClick={() => change({ recurring: undefined })}>
          {t('pushes.ofRecurring', { id: filters.recurring })}
        </Button>
      )}
      {times.map((name) => (
        <FilterTime
          key={name}
          label={t(`pushes.${name}`)}
          value={draft[name]}
          change={(time) => setDraft({ ...draft, [name]: time })}
        />
      ))}
    </FilterForm>
  );
}

const route = getRouteApi('/apps/$appId/pushes');

/** Pushes of an app, newest first. The URL contains the filters and the page. */
export function Pushes() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const { chosen, ...filters } = route.useSearch();
  const maySend = useMay('sender');
  const navigate = useNavigate();
  const show = (search: PushListSearch, replace = false) =>
    void navigate({ to: '/apps/$appId/pushes', params: { appId }, search, replace });
  const change = (more: PushFilters) => show({ ...filters, cursor: undefined, ...more, chosen });
  const ids = chosen?.split(',').slice(0, 2) ?? [];
  const selection: Selection = {
    selected: new Set(ids),
    select: (next) => show({ ...filters, chosen: [...next].slice(-2).join() || undefined }, true),
  };
  return (
    <>
      <PageHeader
        title={t('nav.pushes')}
        side={
          <>
            <Link
              to="/apps/$appId/pushes/scheduled"
              params={{ appId }}
              className={buttonClass('plain')}
            >
              {t('scheduled.title')}
            </Link>
            <Link
              to="/apps/$appId/pushes/undelivered"
              params={{ appId }}
              className={buttonClass('plain')}
            >
              {t('undelivered.title')}
            </Link>
            <Link
              to="/apps/$appId/pushes/recurring"
              params={{ appId }}
              className={buttonClass('plain')}
            >
              {t('recurring.title')}
            </Link>
            <Link
              to="/apps/$appId/pushes/live-activities"
              params={{ appId }}
              className={buttonClass('plain')}
            >
              {t('liveActivity.title')}
            </Link>
            {maySend && (
              <Link
                to="/apps/$appId/pushes/new"
                params={{ appId }}
                className={buttonClass('primary')}
              >
                {t('compose.heading')}
              </Link>
            )}
          </>
        }
      />
      <Filters filters={filters} change={change} />
      <Panel title={t('pushes.list')} side={<CompareLink appId={appId} ids={ids} />}>
        <PushTable {...{ appId, filters, change, selection }} />
      </Panel>
      <Commands
        request={requestOf('listAppPushes', pushesPage(appId, filters))}
        command={`pushes --app ${appId}`}
      />
    </>
  );
}

/** Link that compares the two selected pushes. */
function CompareLink({ appId, ids: [a, b] }: { appId: string; ids: string[] }) {
  const { t } = useTranslation();
  if (a === undefined || b === undefined)
    return <Button disabled>{t('pushes.compare', { n: a === undefined ? 0 : 1 })}</Button>;
  return (
    <Link
      to="/apps/$appId/pushes/compare"
      params={{ appId }}
      search={{ a, b }}
      className={buttonClass('plain')}
    >
      {t('pushes.compare', { n: 2 })}
    </Link>
  );
}

interface PushTableProps {
  selection: Selection;
  appId: string;
  filters: PushFilters;
  change: (more: PushFilters) => void;
}

function PushTable({ appId, filters, change, selection }: PushTableProps) {
  const { t } = useTranslation();
  const labelOf = (push: ListedPush) => t('pushes.selectOne', { title: titleOf(push, t) });
  const { data, error, isPending, refetch } = usePushes(appId, filters);
  if (isPending) return <Loading rows={8} />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  if (data.results.length === 0)
    return (
      <Empty title={t(isFiltered ? 'pushes.noMatch' : 'pushes.empty')}>
        {isFiltered ? (
          <Button
            onClick={() =>
              change({
                status: undefined,
                q: undefined,
                source: undefined,
                recurring: undefined,
                from: undefined,
                to: undefined,
              })
            }
          >
            {t('action.clearFilters')}
          </Button>
        ) : (
          <p>{t('pushes.kept')}</p>
        )}
      </Empty>
    );
  return (
    <>
      <Table
        label={t('pushes.list')}
        columns={[selectionColumn(selection, labelOf, t), ...columnsOf(appId, t)]}
        rows={data.results}
        keyOf={({ objectId }) => objectId}
      />
      <Pager next={data.next} cursor={filters.cursor} open={(cursor) => change({ cursor })} />
    </>
  );
}

function columnsOf(appId: string, t: (key: string) => string): Column<ListedPush>[] {
  return [
    {
      key: 'message',
      title: t('pushes.message'),
      isWide: true,
      cell: (push) => <PushLink appId={appId} push={push} />,
    },
    { key: 'state', title: t('pushes.state'), cell: (push) => <StateBadge push={push} /> },
    {
      key: 'devices',
      title: t('pushes.devices'),
      isNumber: true,
      cell: ({ devices }) => formatCount(devices),
    },
    {
      key: 'bar',
      title: t('pushes.outcomes'),
      cell: (push) => (
        <OutcomeBar
          totals={push.outcomes}
          devices={push.devices}
          unacknowledged={unacknowledgedOf(push)}
        />
      ),
    },
    {
      key: 'sent',
      title: t('push.share'),
      isNumber: true,
      cell: ({ successes, devices }) => formatShare(successes, devices),
    },
    {
      key: 'delivered',
      title: t('pushes.delivered'),
      isNumber: true,
      cell: ({ delivered }) => formatCount(delivered),
    },
    {
      key: 'clicked',
      title: t('pushes.clicked'),
      isNumber: true,
      cell: ({ clicked }) => formatCount(clicked),
    },
    { key: 'first', title: t('pushes.firstSend'), isNumber: true, cell: firstSendOf },
    { key: 'who', title: t('pushes.sender'), cell: (push) => <Sender push={push} isBrief /> },
    { key: 'time', title: t('pushes.accepted'), cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}

/** Returns the time from acceptance or `push_time` to the first request to a gateway. */
function firstSendOf({ createdAt, firstSentAt, ...push }: ListedPush): string {
  if (firstSentAt === null) return '–';
  const dueMs = Math.max(Date.parse(createdAt), Date.parse(push['push-time']));
  return formatDuration(Math.max(0, Date.parse(firstSentAt) - dueMs));
}
