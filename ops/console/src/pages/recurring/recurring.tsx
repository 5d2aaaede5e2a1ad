import { getRouteApi, Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { RecurringPush } from '../../../../client/operations.ts';
import { recurringPage, useRecurring, useRecurringActions } from '../../api/pushes.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Button, buttonClass } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';
import styles from './recurring.module.css';

const route = getRouteApi('/apps/$appId/pushes/recurring');

/** Recurring pushes: the list, and the form for one definition. */
export function Recurring() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const { data, error, isPending, refetch } = useRecurring(appId);
  const maySend = useMay('sender');
  return (
    <>
      <PageHeader
        title={t('recurring.title')}
        side={
          maySend && (
            <Link
              to="/apps/$appId/pushes/new"
              params={{ appId }}
              search={{ repeat: 'new' }}
              className={buttonClass('primary')}
            >
              {t('recurring.new')}
            </Link>
          )
        }
      />
      <Panel title={t('recurring.list')}>
        {isPending ? (
          <Loading rows={4} />
        ) : data ? (
          <List appId={appId} rows={data.results} />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )}
      </Panel>
      <Commands
        request={requestOf('listRecurringPushes', recurringPage(appId))}
        command={`recurring list --app ${appId}`}
      />
    </>
  );
}

type Actions = ReturnType<typeof useRecurringActions>;

function List({ appId, rows }: { appId: string; rows: RecurringPush[] }) {
  const { t } = useTranslation();
  const actions = useRecurringActions(appId);
  const columns = useColumns(appId, actions);
  const failure = actions.enable.error ?? actions.start.error ?? actions.remove.error;
  if (rows.length === 0) return <Empty title={t('recurring.empty')} />;
  return (
    <>
      {failure && <Failure error={failure} />}
      <Table
        label={t('recurring.list')}
        columns={columns}
        rows={rows}
        keyOf={({ id }) => String(id)}
      />
    </>
  );
}

function useColumns(appId: string, actions: Actions): Column<RecurringPush>[] {
  const { t } = useTranslation();
  const { name } = useOperator();
  const mayAll = useMay('operator');
  const maySend = useMay('sender');
  return [
    {
      key: 'name',
      title: t('recurring.name'),
      isWide: true,
      cell: (one) =>
        mayAll || (maySend && one.createdBy === name) ? (
          <Link
            to="/apps/$appId/pushes/new"
            params={{ appId }}
            search={{ definition: String(one.id) }}
            translate="no"
          >
            {one.name}
          </Link>
        ) : (
          <span translate="no">{one.name}</span>
        ),
    },
    {
      key: 'expression',
      title: t('recurring.expression'),
      cell: ({ expression, timeZone }) => (
        <span translate="no">
          <code>{expression}</code> {timeZone}
        </span>
      ),
    },
    {
      key: 'next',
      title: t('recurring.next'),
      cell: ({ nextAt, isEnabled }) =>
        nextAt === null ? (
          t(isEnabled ? 'recurring.ended' : 'recurring.disabled')
        ) : (
          <Time at={nextAt} />
        ),
    },
    { key: 'last', title: t('recurring.last'), cell: (one) => <Last appId={appId} one={one} /> },
    {
      key: 'starts',
      title: t('recurring.made'),
      isNumber: true,
      cell: ({ id, starts }) => (
        <Link to="/apps/$appId/pushes" params={{ appId }} search={{ recurring: String(id) }}>
          {formatCount(starts)}
        </Link>
      ),
    },
    {
      key: 'left',
      title: t('recurring.leftOut'),
      isNumber: true,
      cell: ({ missed, heldBack }) => formatCount(missed + heldBack),
    },
    {
      key: 'actions',
      title: t('operating.actions'),
      cell: (one) =>
        mayAll || (maySend && one.createdBy === name) ? <Acts one={one} actions={actions} /> : '–',
    },
  ];
}

function Last({ appId, one: { lastAt, lastPush } }: { appId: string; one: RecurringPush }) {
  if (lastPush === null) return '–';
  return (
    <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId: lastPush }}>
      <Time at={lastAt} />
    </Link>
  );
}

function Acts({ one, actions }: { one: RecurringPush; actions: Actions }) {
  const { t } = useTranslation();
  const { id, name, isEnabled } = one;
  return (
    <span className={styles.acts}>
      <Button
        aria-label={t(isEnabled ? 'recurring.disableOf' : 'recurring.enableOf', { name })}
        isBusy={actions.enable.isPending}
        onClick={() => actions.enable.mutate({ id, isEnabled: !isEnabled })}
      >
        {t(isEnabled ? 'recurring.disable' : 'recurring.enable')}
      </Button>
      <Confirm
        trigger={t('recurring.start')}
        label={t('recurring.startOf', { name })}
        title={t('recurring.startOf', { name })}
        action={t('recurring.start')}
        variant="primary"
        triggerVariant="plain"
        onConfirm={() => actions.start.mutate(id)}
      >
        {t('recurring.startText')}
      </Confirm>
      <Confirm
        trigger={t('saved.delete')}
        label={t('saved.deleteOf', { name })}
        title={t('saved.deleteOf', { name })}
        action={t('saved.delete')}
        onConfirm={() => actions.remove.mutate(id)}
      >
        {t('recurring.deleteText')}
      </Confirm>
    </span>
  );
}
