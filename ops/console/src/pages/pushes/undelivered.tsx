import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { UndeliveredPush } from '../../../../client/operations.ts';
import { undeliveredPage, useUndelivered } from '../../api/pushes.ts';
import { useMay } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { FilterForm, FilterText, useFilterText } from '../../kit/form/filter-form.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { UndeliveredSearch } from '../../search.ts';
import { formatCount } from '../../text/format.ts';
import { PushLink, titleOf } from './shown-push.tsx';

const route = getRouteApi('/apps/$appId/pushes/undelivered');

/** Finished pushes with recipients that they did not reach. Each has a link to its redrive. */
export function Undelivered() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const [draft, setDraft] = useFilterText(search.reason);
  const show = (next: UndeliveredSearch) =>
    void navigate({ to: '/apps/$appId/pushes/undelivered', params: { appId }, search: next });
  return (
    <>
      <PageHeader title={t('undelivered.title')} />
      <FilterForm apply={() => show({ reason: draft.trim() || undefined })}>
        <FilterText label={t('undelivered.reason')} value={draft} change={setDraft} />
      </FilterForm>
      <Panel title={t('undelivered.list')}>
        <List appId={appId} search={search} show={show} />
      </Panel>
      <Commands
        request={requestOf('listUndelivered', undeliveredPage(appId, search))}
        command={`undelivered --app ${appId}`}
      />
    </>
  );
}

interface ListProps {
  appId: string;
  search: UndeliveredSearch;
  show: (next: UndeliveredSearch) => void;
}

function List({ appId, search: { reason, cursor }, show }: ListProps) {
  const { t } = useTranslation();
  const maySend = useMay('sender');
  const { data, error, isPending, refetch } = useUndelivered(appId, { reason, cursor });
  if (isPending) return <Loading rows={6} />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0 && cursor === undefined)
    return (
      <Empty title={t(reason === undefined ? 'undelivered.none' : 'undelivered.noMatch')}>
        {reason === undefined ? (
          <p>{t('undelivered.kept')}</p>
        ) : (
          <Button onClick={() => show({})}>{t('action.clearFilters')}</Button>
        )}
      </Empty>
    );
  return (
    <>
      <Table
        label={t('undelivered.list')}
        columns={columnsOf(appId, maySend, t)}
        rows={data.results}
        keyOf={({ objectId }) => objectId}
      />
      <Pager next={data.next} cursor={cursor} open={(next) => show({ reason, cursor: next })} />
    </>
  );
}

const outcomes = ['failed', 'expired', 'capped'] as const;

/** Returns the number of recipients that were not redriven yet. */
const leftOf = ({ failed, expired, capped, redriven }: UndeliveredPush): number =>
  Math.max(0, failed + expired + capped - redriven);

function columnsOf(appId: string, maySend: boolean, t: TFunction): Column<UndeliveredPush>[] {
  const number = (
    key: (typeof outcomes)[number] | 'redriven',
    title: string,
  ): Column<UndeliveredPush> => ({
    key,
    title,
    isNumber: true,
    cell: (push) => formatCount(push[key]),
  });
  return [
    {
      key: 'message',
      title: t('pushes.message'),
      isWide: true,
      cell: (push) => <PushLink appId={appId} push={push} />,
    },
    ...outcomes.map((outcome) => number(outcome, t(`outcome.${outcome}`))),
    number('redriven', t('undelivered.redriven')),
    {
      key: 'left',
      title: t('undelivered.left'),
      isNumber: true,
      cell: (push) => <strong>{formatCount(leftOf(push))}</strong>,
    },
    {
      key: 'finished',
      title: t('undelivered.finished'),
      cell: ({ finishedAt }) => <Time at={finishedAt} />,
    },
    {
      key: 'redrive',
      title: t('operating.actions'),
      cell: (push) => (leftOf(push) > 0 ? <RedriveLink {...{ appId, push, maySend }} /> : '–'),
    },
  ];
}

/** Link to the dry run of the redrive. For a person who may not send, a link to the failures. */
function RedriveLink({
  appId,
  push,
  maySend,
}: {
  appId: string;
  push: UndeliveredPush;
  maySend: boolean;
}) {
  const { t } = useTranslation();
  return (
    <Link
      to="/apps/$appId/pushes/$pushId"
      params={{ appId, pushId: push.objectId }}
      search={maySend ? { redrive: true } : { tab: 'failures' }}
      aria-label={t(maySend ? 'undelivered.againOf' : 'undelivered.failuresOf', {
        title: titleOf(push, t),
      })}
    >
      {t(maySend ? 'undelivered.again' : 'push.failures')}
    </Link>
  );
}
