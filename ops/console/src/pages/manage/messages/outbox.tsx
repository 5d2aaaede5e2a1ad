import { useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ListedMessage } from '../../../../../client/operations.ts';
import {
  useMessageForecast,
  useMessageRedrive,
  useMessageRetry,
  useOutbox,
} from '../../../api/messages.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Pager } from '../../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Reason, Time, type Tone } from '../../../kit/data/values.tsx';
import {
  FilterChoice,
  FilterForm,
  FilterText,
  useFilterText,
} from '../../../kit/form/filter-form.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { messageKinds, messageStates, type OutboxFilters } from '../../../search.ts';
import { formatCount } from '../../../text/format.ts';
import styles from './messages.module.css';

/** Sends all failed messages of an app again, after a dry run. */
function MessageRedrive({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const [isRequested, setRequested] = useState(false);
  const { data, error } = useMessageForecast(appId, isRequested);
  const redrive = useMessageRedrive(appId);
  const { messages = 0, expired = 0, unreadable = 0, next = null } = data ?? {};
  const numbers = {
    messages: formatCount(messages),
    expired: formatCount(expired),
    unreadable: formatCount(unreadable),
  };
  return (
    <>
      {redrive.error && <Failure error={redrive.error} />}
      <Confirm
        trigger={t('redrive.messages')}
        title={t('redrive.messages')}
        action={
          data
            ? t('redrive.messagesNow', { count: messages, messages: numbers.messages })
            : t('redrive.counting')
        }
        variant="primary"
        disabled={redrive.isPending}
        isBlocked={messages === 0 && next === null}
        onOpen={setRequested}
        onConfirm={() => redrive.mutate()}
      >
        <p>{t('redrive.messagesText')}</p>
        {error ? (
          <Failure error={error} />
        ) : data ? (
          <p>{t('redrive.messagesFound', numbers)}</p>
        ) : (
          <Loading />
        )}
        {next !== null && <p>{t('redrive.messagesMore')}</p>}
      </Confirm>
    </>
  );
}

interface OutboxProps {
  appId: string;
  filters: OutboxFilters;
}

/**
 * Mails and SMS of an app with their delivery state, sent or not. Only owners see the texts,
 * because they contain codes and links.
 */
export function Outbox({ appId, filters }: OutboxProps) {
  const { t } = useTranslation();
  const mayRead = useMay('operator');
  if (!mayRead) return <Empty title={t('messages.operatorsOnly')} />;
  return (
    <>
      <Filters appId={appId} filters={filters} />
      <Panel
        title={t('messages.list')}
        side={filters.state === 'failed' && <MessageRedrive appId={appId} />}
      >
        <MessageTable appId={appId} filters={filters} />
      </Panel>
    </>
  );
}

const tones: Record<ListedMessage['state'], Tone> = {
  waiting: 'accent',
  sent: 'good',
  kept: 'idle',
  failed: 'bad',
};

function Filters({ appId, filters }: OutboxProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [to, setTo] = useFilterText(filters.to);
  const change = (more: OutboxFilters) =>
    void navigate({
      to: '/apps/$appId/messages',
      params: { appId },
      search: { ...filters, cursor: undefined, ...more },
    });
  return (
    <FilterForm filters={filters} apply={() => change({ to: to.trim() || undefined })}>
      <FilterText label={t('messages.search')} value={to} change={setTo} />
      <FilterChoice
        label={t('messages.kind')}
        any={t('messages.anyKind')}
        value={filters.kind}
        options={messageKinds.map((kind) => [kind, t(`messageKind.${kind}`)] as const)}
        change={(kind) => change({ kind })}
      />
      <FilterChoice
        label={t('pushes.state')}
        any={t('pushes.anyState')}
        value={filters.state}
        options={messageStates.map((state) => [state, t(`messageState.${state}`)] as const)}
        change={(state) => change({ state })}
      />
    </FilterForm>
  );
}

function MessageTable({ appId, filters }: OutboxProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const isOwner = useMay('owner');
  const { data, error, isPending, refetch } = useOutbox(appId, filters);
  if (isPending) return <Loading rows={6} />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0 && filters.cursor === undefined)
    return (
      <Empty title={t('messages.empty')}>
        <p>{t('messages.emptyHint')}</p>
      </Empty>
    );
  return (
    <>
      <Table
        label={t('messages.list')}
        columns={columnsOf(appId, isOwner, t)}
        rows={data.results}
        keyOf={({ id }) => id}
      />
      <Pager
        next={data.next}
        cursor={filters.cursor}
        open={(cursor) =>
          void navigate({
            to: '/apps/$appId/messages',
            params: { appId },
            search: { ...filters, cursor },
          })
        }
      />
    </>
  );
}

function columnsOf(appId: string, isOwner: boolean, t: TFunction): Column<ListedMessage>[] {
  return [
    { key: 'kind', title: t('messages.kind'), cell: ({ kind }) => t(`messageKind.${kind}`) },
    { key: 'to', title: t('messages.to'), cell: ({ to }) => to },
    { key: 'type', title: t('messages.purpose'), cell: ({ type }) => <code>{type}</code> },
    {
      key: 'state',
      title: t('pushes.state'),
      isWide: !isOwner,
      cell: ({ state, reason, meaning, delivery, deliveryReason, deliveryMeaning }) => (
        <>
          <Badge tone={tones[state]}>{t(`messageState.${state}`)}</Badge>{' '}
          {reason !== null && <Reason {...{ reason, meaning }} />}
          {delivery !== null && (
            <Badge tone={delivery === 'delivered' ? 'good' : 'bad'}>
              {t(`messageDelivery.${delivery}`)}
            </Badge>
          )}{' '}
          {deliveryReason !== null && <Reason reason={deliveryReason} meaning={deliveryMeaning} />}
        </>
      ),
    },
    ...(isOwner
      ? [
          {
            key: 'text',
            title: t('sms.text'),
            isWide: true,
            cell: ({ text }: ListedMessage) => (
              // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
              <div className={styles.text} tabIndex={0}>
                {text}
              </div>
            ),
          },
        ]
      : []),
    {
      key: 'attempts',
      title: t('messages.attempts'),
      isNumber: true,
      cell: ({ attempts }) => formatCount(attempts),
    },
    { key: 'at', title: t('messages.at'), cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      key: 'retry',
      title: t('operating.actions'),
      cell: (row) => <Retry appId={appId} message={row} />,
    },
  ];
}

function Retry({ appId, message: { id, state, to } }: { appId: string; message: ListedMessage }) {
  const { t } = useTranslation();
  const retry = useMessageRetry(appId);
  if (state !== 'failed' && state !== 'kept') return null;
  return (
    <>
      <Button
        isBusy={retry.isPending}
        aria-label={t('messages.retryOf', { to })}
        onClick={() => retry.mutate(id)}
      >
        {t('messages.retry')}
      </Button>
      {retry.error && <Failure error={retry.error} />}
    </>
  );
}
