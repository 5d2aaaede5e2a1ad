import { useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { OutboxMessage } from '../../../../../../api/replies/admin/types.ts';
import { useOutbox } from '../../../api/manage/outbox.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Choice, TextField } from '../../../kit/controls/field.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Time } from '../../../kit/data/time.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import type { OutboxFilters } from '../../../search.ts';
import styles from './messages.module.css';

interface OutboxProps {
  appId: string;
  filters: OutboxFilters;
}

/** Mails and SMS as they were sent, or would have been with a provider. For owners: codes and links are in them. */
export function Outbox({ appId, filters }: OutboxProps) {
  const { t } = useTranslation();
  const mayRead = useMay('owner');
  if (!mayRead) return <Empty title={t('messages.ownersOnly')} />;
  return (
    <>
      <Filters appId={appId} filters={filters} />
      <Panel title={t('messages.list')}>
        <MessageTable appId={appId} filters={filters} />
      </Panel>
    </>
  );
}

function Filters({ appId, filters }: OutboxProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [to, setTo] = useState(filters.to ?? '');
  const change = (more: OutboxFilters) =>
    void navigate({ to: '/apps/$appId/messages', params: { appId }, search: { ...filters, ...more } });
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    change({ to: to.trim() || undefined });
  };
  return (
    <search>
      <form className={styles.filters} onSubmit={onSubmit}>
        <TextField
          type="search"
          isCompact
          label={t('messages.search')}
          placeholder={t('messages.search')}
          value={to}
          onChange={(event) => setTo(event.target.value)}
        />
        <Choice
          isCompact
          label={t('messages.kind')}
          value={filters.kind ?? ''}
          onChange={(event) => change({ kind: event.target.value || undefined })}
        >
          <option value="">{t('messages.anyKind')}</option>
          <option value="sms">{t('messageKind.sms')}</option>
          <option value="mail">{t('messageKind.mail')}</option>
        </Choice>
        <Button type="submit">{t('action.search')}</Button>
      </form>
    </search>
  );
}

function MessageTable({ appId, filters }: OutboxProps) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useOutbox(appId, filters, true);
  if (isPending) return <Loading rows={6} />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0)
    return (
      <Empty title={t('messages.empty')}>
        <p>{t('messages.emptyHint')}</p>
      </Empty>
    );
  return (
    <Table
      label={t('messages.list')}
      columns={columnsOf(t)}
      rows={data.results}
      keyOf={({ kind, to, createdAt, text }) => `${kind} ${to} ${createdAt} ${text}`}
    />
  );
}

function columnsOf(t: TFunction): Column<OutboxMessage>[] {
  return [
    { key: 'kind', title: t('messages.kind'), cell: ({ kind }) => t(`messageKind.${kind}`) },
    { key: 'to', title: t('messages.to'), cell: ({ to }) => to },
    { key: 'type', title: t('messages.purpose'), cell: ({ type }) => <code>{type}</code> },
    { key: 'text', title: t('sms.text'), isWide: true, cell: ({ text }) => text },
    { key: 'at', title: t('messages.at'), cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}
