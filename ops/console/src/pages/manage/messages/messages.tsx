import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { type Operation, requestOf } from '../../../../../client/client.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Tabs } from '../../../kit/controls/tabs.tsx';
import { PageHeader } from '../../../kit/panel.tsx';
import type { MessageTab } from '../../../search.ts';
import { Budgets } from './budgets.tsx';
import { Outbox } from './outbox.tsx';
import { SmsTexts } from './sms-texts.tsx';

const route = getRouteApi('/apps/$appId/messages');

/** Operation of the admin API that a tab shows. */
const operations = {
  outbox: 'listOutbox',
  budgets: 'getSmsState',
  texts: 'listSmsTemplates',
} as const satisfies Record<MessageTab, Operation>;

/** Mails and SMS of an app: what was sent or failed, and the texts of SMS. */
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
      <Commands request={requestOf(operations[tab], { path: { appId } })} command={`outbox --app ${appId}`} />
    </>
  );
}
