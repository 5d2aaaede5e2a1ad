import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { type Operation, requestOf } from '../../../../../client/client.ts';
import { useSmsState } from '../../../api/messages.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Tabs } from '../../../kit/controls/tabs.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { Facts, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import type { MessageTab } from '../../../search.ts';
import { formatCount, formatShare } from '../../../text/format.ts';
import { Outbox } from './outbox.tsx';
import { SmsTexts } from './sms-texts.tsx';

/** SMS balance, used budgets and blocked countries. */
export function Budgets({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useSmsState(appId);
  if (isPending) return <Loading rows={4} />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  const { balance, free, day, suspended, conversion } = data;
  const ofLimit = ({ used, limit }: { used: number; limit: number }) =>
    t('overview.of', { done: formatCount(used), all: formatCount(limit) });
  return (
    <>
      <Panel title={t('budgets.title')}>
        <Facts
          rows={[
            [
              t('budgets.balance'),
              balance === null ? t('budgets.unlimited') : formatCount(balance),
            ],
            [t('budgets.free'), ofLimit(free)],
            [t('budgets.day'), ofLimit(day)],
          ]}
        />
      </Panel>
      <Panel title={t('budgets.countries')}>
        {suspended.length + conversion.length === 0 && <p>{t('budgets.noCodes')}</p>}
        <Facts
          rows={[
            ...suspended.map(({ prefix, openUntil }): [string, React.ReactNode] => [
              `+${prefix}`,
              <span key={prefix}>
                <Badge tone="bad">{t('budgets.suspended')}</Badge> {t('user.until')}{' '}
                <Time at={openUntil} />
              </span>,
            ]),
            ...conversion
              .filter(({ prefix }) => !suspended.some((one) => one.prefix === prefix))
              .map(({ prefix, sent, used }): [string, React.ReactNode] => [
                `+${prefix}`,
                t('budgets.conversion', {
                  sent: formatCount(sent),
                  used: formatCount(used),
                  share: formatShare(used, sent),
                }),
              ]),
          ]}
        />
      </Panel>
    </>
  );
}

const route = getRouteApi('/apps/$appId/messages');

/** Operation of the admin API for each tab. */
const operations = {
  outbox: 'listOutbox',
  budgets: 'getSmsState',
  texts: 'listSmsTemplates',
} as const satisfies Record<MessageTab, Operation>;

/** Mails and SMS of an app: sent and failed messages, and the SMS texts. */
export function Messages() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const search = route.useSearch();
  const { tab = 'outbox' } = search;
  const navigate = useNavigate();
  const open = (next: MessageTab) =>
    void navigate({ to: '/apps/$appId/messages', params: { appId }, search: { tab: next } });
  return (
    <>
      <PageHeader title={t('nav.messages')} />
      <Tabs
        label={t('messages.parts')}
        value={tab}
        onChange={open}
        tabs={[
          {
            value: 'outbox',
            title: t('messages.outbox'),
            content: <Outbox appId={appId} filters={search} />,
          },
          { value: 'budgets', title: t('messages.budgets'), content: <Budgets appId={appId} /> },
          { value: 'texts', title: t('messages.texts'), content: <SmsTexts appId={appId} /> },
        ]}
      />
      <Commands
        request={requestOf(operations[tab], { path: { appId } })}
        command={`outbox --app ${appId}`}
      />
    </>
  );
}
