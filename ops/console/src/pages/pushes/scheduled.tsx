import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { ScheduledEntry } from '../../../../client/operations.ts';
import { scheduledPage, useScheduled, useScheduledActions } from '../../api/pushes.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { localMoment } from '../../draft/fields.ts';
import { Button, buttonClass } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { Calendar } from './calendar.tsx';
import styles from './scheduled.module.css';
import { PushLink, Sender, StartTime, titleOf } from './shown-push.tsx';

const route = getRouteApi('/apps/$appId/pushes/scheduled');

/** Scheduled pushes. They can be rescheduled and cancelled. */
export function Scheduled() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const { cursor } = route.useSearch();
  const maySend = useMay('sender');
  return (
    <>
      <PageHeader
        title={t('scheduled.title')}
        side={
          maySend && (
            <Link
              to="/apps/$appId/pushes/new"
              params={{ appId }}
              className={buttonClass('primary')}
            >
              {t('compose.heading')}
            </Link>
          )
        }
      />
      <Panel
        title={t('scheduled.list')}
        side={<span className={styles.note}>{t('scheduled.zone', { zone })}</span>}
      >
        <List appId={appId} cursor={cursor} />
      </Panel>
      <Calendar appId={appId} />
      <Commands
        request={requestOf('listScheduledAppPushes', scheduledPage(appId, cursor))}
        command={`schedule list --app ${appId}`}
      />
    </>
  );
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function List({ appId, cursor }: { appId: string; cursor: string | undefined }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { data, error, isPending, refetch } = useScheduled(appId, cursor);
  const actions = useScheduledActions(appId);
  const columns = useColumns(appId, actions);
  if (isPending) return <Loading rows={6} />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0 && cursor === undefined)
    return <Empty title={t('scheduled.empty')} />;
  const failure = actions.move.error ?? actions.cancel.error;
  const open = (next: string | undefined) =>
    void navigate({
      to: '/apps/$appId/pushes/scheduled',
      params: { appId },
      search: { cursor: next },
    });
  return (
    <>
      {failure && <Failure error={failure} />}
      <Table
        label={t('scheduled.list')}
        columns={columns}
        rows={data.results}
        keyOf={({ objectId }) => objectId}
      />
      <Pager next={data.next} cursor={cursor} open={open} />
    </>
  );
}

type Actions = ReturnType<typeof useScheduledActions>;

function useColumns(appId: string, { move, cancel }: Actions): Column<ScheduledEntry>[] {
  const { t } = useTranslation();
  const { name } = useOperator();
  const mayAll = useMay('operator');
  const maySend = useMay('sender');
  return [
    {
      key: 'message',
      title: t('pushes.message'),
      isWide: true,
      cell: (push) => <PushLink appId={appId} push={push} />,
    },
    { key: 'time', title: t('push.time'), cell: (push) => <StartTime push={push} /> },
    { key: 'who', title: t('scheduled.by'), cell: (push) => <Sender push={push} isBrief /> },
    {
      key: 'actions',
      title: t('operating.actions'),
      cell: (push) =>
        mayAll || (maySend && push.createdBy === name) ? (
          <span className={styles.actions}>
            {push.localTime === null && (
              <Move push={push} move={(time) => move.mutate({ id: push.id, time })} />
            )}
            <Confirm
              trigger={t('push.cancel')}
              title={t('push.cancelTitle')}
              action={t('push.cancelNow')}
              onConfirm={() => cancel.mutate(push.id)}
            >
              {titleOf(push, t)}
            </Confirm>
          </span>
        ) : (
          '–'
        ),
    },
  ];
}

/** Field for a new time of a push, in the reader's time zone. */
function Move({ push, move }: { push: ScheduledEntry; move: (time: string) => void }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const [moment, setMoment] = useState(() => localMoment(new Date(push['push-time'])));
  if (!isOpen) return <Button onClick={() => setOpen(true)}>{t('scheduled.move')}</Button>;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const time = new Date(moment);
    if (Number.isNaN(time.getTime())) return;
    move(time.toISOString());
    setOpen(false);
  };
  return (
    <form className={styles.actions} onSubmit={onSubmit}>
      <TextField
        isCompact
        autoFocus
        type="datetime-local"
        label={t('compose.time', { zone })}
        value={moment}
        onChange={(event) => setMoment(event.target.value)}
      />
      <Button type="submit" variant="primary">
        {t('scheduled.move')}
      </Button>
    </form>
  );
}
