import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { type ReactNode, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { call } from '../../api/client.ts';
import { useMay } from '../../api/session.tsx';
import { bodyOfRequest, toJson } from '../../draft/fields.ts';
import { isRecord, type JsonRecord, JsonTextError, parseJsonText } from '../../draft/json-text.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Tabs } from '../../kit/controls/tabs.tsx';
import { PageHeader } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { ComposeSearch, ComposeView } from '../../search.ts';
import { DryRunPanel, useCurrentDryRun } from './before/dry-run.tsx';
import { Send } from './before/send.tsx';
import styles from './compose.module.css';
import { Delivery } from './delivery.tsx';
import { FormProvider } from './draft-field.tsx';
import { type Draft, emptyBody, storeDraft, useDraft } from './draft-state.ts';
import { Message } from './message.tsx';
import { Preview } from './preview/preview.tsx';
import { type Repeat, SaveRepeat, useEdited, useRepeat } from './repeat.tsx';
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
  const repeat = useRepeat(appId);
  const { data } = draft.body;
  const isBlank = !isRecord(data) || Object.keys(data).length === 0;
  return (
    <FormProvider
      value={{ appId, draft, refusal: dryRun.refusal, forecast: dryRun.last?.forecast }}
    >
      <PageHeader
        title={titleOf(repeat, t)}
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
                <Delivery isUndo={isUndo} setUndo={setUndo} repeat={repeat} />
              </>
            }
          />
        </div>
        <div className={`${styles.column} ${styles.side}`}>
          <DryRunPanel dryRun={dryRun} isBlank={isBlank}>
            {repeat ? (
              <SaveRepeat {...{ repeat, isBlank, isIncomplete }} />
            ) : (
              <Send {...{ appId, dryRun, isUndo, isBlank, isIncomplete }} />
            )}
            <TestDevices appId={appId} isBlank={isBlank} />
          </DryRunPanel>
          <Preview appId={appId} dryRun={isBlank ? undefined : dryRun.last} />
        </div>
      </div>
    </FormProvider>
  );
}

/** Returns the heading: a new push, a new recurring push, or a change of one. */
function titleOf(repeat: Repeat | undefined, t: TFunction): string {
  if (repeat === undefined) return t('compose.heading');
  return repeat.id === undefined
    ? t('recurring.new')
    : t('recurring.changeOf', { name: repeat.entered.name });
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

/** Initial body for the URL, and whether it could be copied completely. */
interface InitialDraft {
  body: JsonRecord;
  isComplete: boolean;
}

/**
 * Creates the draft that the URL requests: a copy of a push, a template, or a push to the devices
 * of a condition.
 */
function Begin({ appId, children }: { appId: string; children: ReactNode }) {
  const { t } = useTranslation();
  const search = route.useSearch();
  const navigate = useNavigate();
  const isRequested = [search.from, search.where, search.template, search.definition].some(
    (one) => one !== undefined,
  );
  const { data, error, refetch } = useQuery({
    queryKey: ['begin', appId, search.from, search.where, search.template, search.definition],
    queryFn: ({ signal }) => beginOf(appId, search, signal),
    enabled: isRequested,
    staleTime: 0,
    gcTime: 0,
  });
  useEffect(() => {
    if (!data || !isRequested) return;
    storeDraft(appId, data.body);
    const part = data.isComplete ? undefined : true;
    // Replaces the URL, so that a reload keeps later changes of the draft.
    void navigate({
      to: '/apps/$appId/pushes/new',
      params: { appId },
      search: { view: search.view, part, repeat: search.definition ?? search.repeat },
      replace: true,
    });
  }, [data, isRequested, appId, navigate, search.view, search.definition, search.repeat]);
  const edited = useEdited(appId);
  if (error && isRequested) return <Failure error={error} retry={() => void refetch()} />;
  if (edited.error) return <Failure error={edited.error} retry={() => void edited.refetch()} />;
  // Without the loaded push, the form would create another one with the usual schedule.
  if (isRequested || edited.isLoading) return <Loading rows={8} />;
  return (
    <>
      {search.part && <p role="status">{t('compose.partOnly')}</p>}
      {children}
    </>
  );
}

async function beginOf(
  appId: string,
  { from, where, template, definition }: ComposeSearch,
  signal: AbortSignal,
): Promise<InitialDraft> {
  if (from !== undefined) {
    const push = await call('getAppPush', { path: { appId, id: from }, signal });
    const request = toJson(push.request);
    return bodyOfRequest(isRecord(request) ? request : {});
  }
  if (definition !== undefined) {
    const path = { appId, id: definition };
    const { body } = await call('getRecurringPush', { path, signal });
    const read = toJson(body);
    return { body: isRecord(read) ? read : emptyBody, isComplete: true };
  }
  if (template !== undefined) {
    const { body } = await call('getPushTemplate', { path: { appId, name: template }, signal });
    const read = toJson(body);
    return { body: isRecord(read) ? read : emptyBody, isComplete: true };
  }
  return { body: { ...emptyBody, where: conditionIn(where ?? '{}') }, isComplete: true };
}

/**
 * Returns the condition in a URL. Invalid JSON stays a text, so that the dry run reports the error.
 */
function conditionIn(text: string) {
  try {
    return parseJsonText(text);
  } catch (error) {
    if (error instanceof JsonTextError) return text;
    throw error;
  }
}
