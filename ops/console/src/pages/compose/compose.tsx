import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useMay } from '../../api/session.tsx';
import { isRecord } from '../../draft/json-text.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Tabs } from '../../kit/controls/tabs.tsx';
import { PageHeader } from '../../kit/panel.tsx';
import { Empty } from '../../kit/states.tsx';
import type { ComposeView } from '../../search.ts';
import { DryRunPanel, useCurrentDryRun } from './before/dry-run.tsx';
import { Send } from './before/send.tsx';
import { Begin } from './begin.tsx';
import styles from './compose.module.css';
import { Delivery } from './delivery.tsx';
import { FormProvider } from './draft-field.tsx';
import { type Draft, useDraft } from './draft-state.ts';
import { Message } from './message.tsx';
import { Preview } from './preview/preview.tsx';
import { Templates } from './saved/saved-dialog.tsx';
import { TestDevices } from './saved/test-devices.tsx';
import { Target } from './target/target.tsx';
import { CurlView, JsonView, useFaultText } from './views/views.tsx';

const route = getRouteApi('/apps/$appId/pushes/new');

/**
 * Page for composing a push. Form, JSON and curl are views of the same body. Sending requires a dry
 * run of exactly this body.
 */
export function Compose() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const maySend = useMay('sender');
  return (
    <>
      {maySend ? (
        <Begin appId={appId}>
          <Composer key={appId} appId={appId} />
        </Begin>
      ) : (
        <>
          <PageHeader title={t('compose.heading')} />
          <Empty title={t('compose.needsSender')} />
        </>
      )}
    </>
  );
}

function Composer({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const draft = useDraft(appId);
  const dryRun = useCurrentDryRun(appId, draft);
  const [isUndo, setUndo] = useState(false);
  const [isIncomplete, setIncomplete] = useState(false);
  const { data } = draft.body;
  const isBlank = !isRecord(data) || Object.keys(data).length === 0;
  return (
    <FormProvider value={{ draft, refusal: dryRun.refusal }}>
      <PageHeader
        title={t('compose.heading')}
        side={
          <>
            <Templates appId={appId} />
            <Button onClick={draft.clear}>{t('compose.clear')}</Button>
          </>
        }
      />
      <div className={styles.page}>
        <div className={styles.column}>
          <Views
            appId={appId}
            draft={draft}
            form={
              <>
                <Message />
                <Target appId={appId} setIncomplete={setIncomplete} />
                <Delivery isUndo={isUndo} setUndo={setUndo} />
              </>
            }
          />
        </div>
        <div className={`${styles.column} ${styles.side}`}>
          <DryRunPanel dryRun={dryRun} isBlank={isBlank}>
            <Send {...{ appId, dryRun, isUndo, isBlank, isIncomplete }} />
            <TestDevices appId={appId} isBlank={isBlank} />
          </DryRunPanel>
          <Preview appId={appId} dryRun={isBlank ? undefined : dryRun.last} />
        </div>
      </div>
    </FormProvider>
  );
}

function Views({ appId, draft, form }: { appId: string; draft: Draft; form: React.ReactNode }) {
  const { t } = useTranslation();
  const search = route.useSearch();
  const navigate = useNavigate();
  const fault = useFaultText(draft.fault);
  const open = (view: ComposeView) =>
    void navigate({
      to: '/apps/$appId/pushes/new',
      params: { appId },
      search: { ...search, view },
    });
  const notice = fault !== undefined && (
    <p className={styles.notice} role="status">
      {t('compose.faulty')} {fault}
    </p>
  );
  return (
    <Tabs
      label={t('compose.views')}
      value={search.view ?? 'form'}
      onChange={open}
      tabs={[
        {
          value: 'form',
          title: t('compose.form'),
          content: (
            <>
              {notice}
              {form}
            </>
          ),
        },
        { value: 'json', title: 'JSON', content: <JsonView /> },
        { value: 'curl', title: 'curl', content: <CurlView appId={appId} /> },
      ]}
    />
  );
}
