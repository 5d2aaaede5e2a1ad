import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Webhook } from '../../../../../client/operations.ts';
import { useMay } from '../../../api/session.tsx';
import { type Owner, useSending, useWebhookActions, useWebhooks } from '../../../api/webhooks.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Snippet } from '../../../kit/controls/copy.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { Facts, Notice, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { Deliveries } from './deliveries.tsx';
import { NewWebhook } from './new-webhook.tsx';
import styles from './webhooks.module.css';

/** Webhooks of an app. */
export function AppWebhooks() {
  const { appId } = useParams({ from: '/apps/$appId/webhooks' });
  return <Webhooks owner={appId} />;
}

/** Webhooks of the service, which get the events of all apps. */
export function ServiceWebhooks() {
  return <Webhooks owner={undefined} />;
}

function Webhooks({ owner }: { owner: Owner }) {
  const { t } = useTranslation();
  const title = t(owner === undefined ? 'webhooks.ofService' : 'nav.webhooks');
  const isOwner = useMay('owner');
  const { data, error, isPending, refetch } = useWebhooks(owner);
  const [secrets, setSecrets] = useState<readonly Webhook[]>([]);
  const { put, rotate, remove } = useWebhookActions(owner, (webhook) =>
    setSecrets((shown) => [...shown.filter(({ name }) => name !== webhook.name), webhook]),
  );
  const failure = put.error ?? rotate.error ?? remove.error;
  return (
    <>
      <PageHeader title={title}>{t('webhooks.about')}</PageHeader>
      {failure && <Failure error={failure} />}
      {secrets.map(({ name, secret = '' }) => (
        <Notice key={name} variant="warn">
          {t('webhooks.secretOnce', { name })}
          <Snippet label={t('webhooks.secret')} text={secret} />
        </Notice>
      ))}
      {isPending ? (
        <Loading rows={3} />
      ) : !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data.results.length === 0 ? (
        <Empty title={t('webhooks.none')} />
      ) : (
        data.results.map((webhook) => (
          <Endpoint
            key={webhook.name}
            owner={owner}
            webhook={webhook}
            act={{
              change: (isEnabled) => put.mutate({ ...draftOf(webhook), isEnabled }),
              rotate: () => rotate.mutate(webhook.name),
              remove: () => remove.mutate(webhook.name),
            }}
          />
        ))
      )}
      {isOwner && data && <NewWebhook create={put.mutate} isBusy={put.isPending} />}
    </>
  );
}

const draftOf = ({ name, url, events, format, language }: Webhook) => ({
  name,
  url,
  events,
  format,
  ...(language === null ? {} : { language }),
});

interface EndpointActions {
  change: (isEnabled: boolean) => void;
  rotate: () => void;
  remove: () => void;
}

interface EndpointProps {
  owner: Owner;
  webhook: Webhook;
  act: EndpointActions;
}

function Endpoint({ owner, webhook, act }: EndpointProps) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const { name, url, events, format, waiting, oldestWaitingAt, dropped, droppedAt } = webhook;
  const address = <code translate="no">{url}</code>;
  return (
    <Panel title={name} side={<State webhook={webhook} />}>
      <Facts
        rows={[
          [t('webhooks.url'), address],
          [t('webhooks.format'), t(`webhooks.formats.${format}`)],
          [t('webhooks.events'), events.join(', ')],
          [
            t('webhooks.waiting'),
            <>
              {waiting}
              {waiting > 0 && (
                <>
                  {' '}
                  ({t('webhooks.oldest')} <Time at={oldestWaitingAt} />)
                </>
              )}
            </>,
          ],
          ...(dropped === 0
            ? []
            : [
                [
                  t('webhooks.dropped'),
                  <>
                    {dropped} ({t('webhooks.latest')} <Time at={droppedAt} />)
                  </>,
                ] as const,
              ]),
        ]}
      />
      <Actions owner={owner} webhook={webhook} act={act}>
        <Button onClick={() => setOpen(!isOpen)}>
          {t(isOpen ? 'webhooks.hideDeliveries' : 'webhooks.deliveries')}
        </Button>
      </Actions>
      {isOpen && (
        <div className={styles.deliveries}>
          <Deliveries owner={owner} name={name} />
        </div>
      )}
    </Panel>
  );
}

function State({ webhook: { isEnabled, offReason, offAt, failingSince } }: { webhook: Webhook }) {
  const { t } = useTranslation();
  if (offReason !== null)
    return (
      <span>
        <Badge tone="bad">{t(`webhooks.offReason.${offReason}`)}</Badge> <Time at={offAt} />
      </span>
    );
  if (!isEnabled) return <Badge tone="idle">{t('webhooks.off')}</Badge>;
  if (failingSince === null) return <Badge tone="good">{t('webhooks.on')}</Badge>;
  return (
    <span>
      <Badge tone="warn">{t('webhooks.failing')}</Badge> <Time at={failingSince} />
    </span>
  );
}

function Actions({
  owner,
  webhook: { name, isEnabled },
  act,
  children,
}: EndpointProps & { children: React.ReactNode }) {
  const { t } = useTranslation();
  const isOwner = useMay('owner');
  const { test } = useSending(owner, name);
  return (
    <div className={styles.acts}>
      {children}
      <Button isBusy={test.isPending} onClick={() => test.mutate()}>
        {t('webhooks.test')}
      </Button>
      <Button onClick={() => act.change(!isEnabled)}>
        {t(isEnabled ? 'webhooks.switchOff' : 'webhooks.switchOn')}
      </Button>
      {isOwner && (
        <Confirm
          trigger={t('webhooks.rotate')}
          label={t('webhooks.rotateOf', { name })}
          title={t('webhooks.rotateOf', { name })}
          action={t('webhooks.rotate')}
          onConfirm={act.rotate}
        >
          {t('webhooks.rotateText')}
        </Confirm>
      )}
      <Confirm
        trigger={t('webhooks.delete')}
        label={t('webhooks.deleteOf', { name })}
        title={t('webhooks.deleteOf', { name })}
        action={t('webhooks.delete')}
        onConfirm={act.remove}
      >
        {t('webhooks.deleteText')}
      </Confirm>
      {test.error && <Failure error={test.error} />}
    </div>
  );
}
