import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { WebhookDelivery } from '../../../../../client/operations.ts';
import { type Owner, useDeliveries, useSending } from '../../../api/webhooks.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Pager } from '../../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import styles from './webhooks.module.css';

/** Failures without a response that have words (`webhooks.failures`). */
const failures = [
  'address_refused',
  'certificate_refused',
  'connect_failed',
  'connect_timeout',
  'connection_lost',
  'reply_too_large',
  'timeout',
] as const;

/** A failure is a code, and often the error code of the connection in parentheses. */
const failurePattern = /^(\w+?)(?:_(\d+))?( \(.+\))?$/;

const tones = { waiting: 'warn', delivered: 'good', failed: 'bad' } as const;

/** Deliveries of a webhook, with a button that sends one again. */
export function Deliveries({ owner, name }: { owner: Owner; name: string }) {
  const { t } = useTranslation();
  const [cursor, setCursor] = useState<string>();
  const { data, error, isPending, refetch } = useDeliveries(owner, name, cursor);
  const { redeliver } = useSending(owner, name);
  const columns = useColumns(redeliver.mutate);
  if (isPending) return <Loading rows={3} />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={t('webhooks.noDeliveries')} />;
  return (
    <>
      {redeliver.error && <Failure error={redeliver.error} />}
      <Table
        label={t('webhooks.deliveries')}
        columns={columns}
        rows={data.results}
        keyOf={({ id }) => id}
      />
      <Pager next={data.next} cursor={cursor} open={setCursor} />
    </>
  );
}

/** Last result of a delivery in words, and the beginning of the response to a failed attempt. */
function Result({ delivery }: { delivery: WebhookDelivery }) {
  const { t } = useTranslation();
  const { reason, status, response } = delivery;
  if (reason === null) return status === null ? '–' : `HTTP ${status}`;
  const [, code, answered, cause = ''] = failurePattern.exec(reason) ?? [];
  const known = failures.find((failure) => failure === code);
  const text =
    code === 'http' && answered !== undefined
      ? `HTTP ${answered}`
      : known === undefined
        ? reason
        : `${t(`webhooks.failures.${known}`)}${cause}`;
  return (
    <>
      {text}
      {response !== null && response !== '' && (
        <pre className={styles.response} translate="no">
          {response}
        </pre>
      )}
    </>
  );
}

function useColumns(redeliver: (id: string) => void): Column<WebhookDelivery>[] {
  const { t } = useTranslation();
  return [
    {
      key: 'state',
      title: t('webhooks.state'),
      cell: ({ state }) => <Badge tone={tones[state]}>{t(`webhooks.states.${state}`)}</Badge>,
    },
    { key: 'type', title: t('webhooks.type'), cell: ({ type }) => <code>{type}</code> },
    { key: 'at', title: t('webhooks.at'), cell: ({ occurredAt }) => <Time at={occurredAt} /> },
    { key: 'attempts', title: t('webhooks.attempts'), cell: ({ attempts }) => attempts },
    {
      key: 'result',
      title: t('webhooks.result'),
      isWide: true,
      cell: (delivery) => <Result delivery={delivery} />,
    },
    {
      key: 'next',
      title: t('webhooks.next'),
      cell: ({ nextAttemptAt }) => (nextAttemptAt === null ? '–' : <Time at={nextAttemptAt} />),
    },
    {
      key: 'actions',
      title: t('operating.actions'),
      cell: ({ id }) => <Button onClick={() => redeliver(id)}>{t('webhooks.redeliver')}</Button>,
    },
  ];
}
