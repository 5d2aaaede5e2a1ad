import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { PushDetail, PushProgress } from '../../../../client/operations.ts';
import { ApiError } from '../../api/client.ts';
import type { Live } from '../../api/live.ts';
import { isOpenPush, usePush } from '../../api/push.ts';
import { useMay } from '../../api/session.tsx';
import { Button, buttonClass } from '../../kit/controls/button.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { isTyping } from '../../kit/controls/field.tsx';
import { Tabs } from '../../kit/controls/tabs.tsx';
import { PageHeader } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { PushTab } from '../../search.ts';
import { formatTime } from '../../text/format.ts';
import { StateBadge, titleOf } from '../pushes/shown-push.tsx';
import { Audience } from './audience.tsx';
import { Content } from './content.tsx';
import { Approval, Controls } from './controls.tsx';
import { Failures, KeptTokens } from './failures.tsx';
import { GatewayMessages } from './gateway-messages.tsx';
import { Headline } from './headline.tsx';
import { Progress } from './progress.tsx';
import { Recall, RecallState } from './recall.tsx';
import { Redrive, Redrives } from './redrive.tsx';

/**
 * Shows whether the page is live, and pauses live updates so that the numbers can be read. The key
 * `.` does the same.
 */
export function LiveState({ live, updatedAtMs }: { live: Live; updatedAtMs: number }) {
  const { t } = useTranslation();
  const { isOpen, isPaused, setPaused } = live;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // After a navigation, the heading has the focus.
      if (event.key === '.' && !isTyping(event.target)) setPaused(!isPaused);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [isPaused, setPaused]);
  const at = updatedAtMs === 0 ? '–' : formatTime(new Date(updatedAtMs).toISOString());
  const text = isPaused
    ? t('live.held', { at })
    : isOpen
      ? t('live.open')
      : t('live.polling', { at });
  return (
    <Button
      variant="quiet"
      aria-pressed={isPaused}
      onClick={() => setPaused(!isPaused)}
      title={t('live.hint')}
    >
      {text}
    </Button>
  );
}

const route = getRouteApi('/apps/$appId/pushes/$pushId');

/** Page of a push: its progress while it runs, then its report. */
export function Push() {
  const { t } = useTranslation();
  const { appId, pushId } = route.useParams();
  const { record, progress, live } = usePush(appId, pushId);
  const maySend = useMay('sender');
  if (record.isPending) return <Loading rows={8} />;
  if (!record.data)
    return (
      <>
        <PageHeader title={t('nav.pushes')} />
        {record.error instanceof ApiError && record.error.code === 101 ? (
          <Empty title={t('push.gone')}>
            <Link to="/apps/$appId/pushes" params={{ appId }}>
              {t('nav.pushes')}
            </Link>
          </Empty>
        ) : (
          <Failure error={record.error} retry={() => void record.refetch()} />
        )}
      </>
    );
  const push = record.data;
  return (
    <>
      <PageHeader
        title={titleOf(push, t)}
        side={
          <>
            <Controls appId={appId} push={push} />
            <Redrive appId={appId} push={push} />
            <Recall appId={appId} push={push} />
            {maySend && (
              <Link
                to="/apps/$appId/pushes/new"
                params={{ appId }}
                search={{ from: push.objectId }}
                className={buttonClass('plain')}
              >
                {t('push.copy')}
              </Link>
            )}
            <Link
              className={buttonClass('plain')}
              to="/apps/$appId/pushes/compare"
              params={{ appId }}
              search={{ b: pushId }}
            >
              {t('push.compare')}
            </Link>
          </>
        }
      >
        <StateBadge push={push} />
        {isOpenPush(push) && <LiveState live={live} updatedAtMs={progress.dataUpdatedAt} />}
      </PageHeader>
      <Headline appId={appId} push={push} progress={progress.data} />
      <Approval appId={appId} push={push} />
      <KeptTokens appId={appId} push={push} />
      <Redrives appId={appId} push={push} />
      <RecallState appId={appId} push={push} />
      <PushTabs appId={appId} push={push} progress={progress.data} />
      <Commands
        request={requestOf('getAppPush', { path: { appId, id: pushId } })}
        command={`failures ${pushId} --app ${appId}`}
      />
    </>
  );
}

interface PushTabsProps {
  appId: string;
  push: PushDetail;
  progress: PushProgress | undefined;
}

function PushTabs({ appId, push, progress }: PushTabsProps) {
  const { t } = useTranslation();
  const { tab = 'progress' } = route.useSearch();
  const navigate = useNavigate();
  const open = (next: PushTab) =>
    void navigate({
      to: '/apps/$appId/pushes/$pushId',
      params: { appId, pushId: push.objectId },
      search: { tab: next },
    });
  return (
    <Tabs
      label={t('push.parts')}
      value={tab}
      onChange={open}
      tabs={[
        {
          value: 'progress',
          title: t('push.progress'),
          content: <Progress appId={appId} push={push} progress={progress} />,
        },
        {
          value: 'failures',
          title: t('push.failures'),
          content: <Failures appId={appId} pushId={push.objectId} isOpen={isOpenPush(push)} />,
        },
        {
          value: 'content',
          title: t('push.content'),
          content: <Content appId={appId} push={push} />,
        },
        {
          value: 'audience',
          title: t('push.audience'),
          content: <Audience appId={appId} push={push} />,
        },
        {
          value: 'ids',
          title: t('gatewayMessages.tab'),
          content: <GatewayMessages appId={appId} pushId={push.objectId} />,
        },
      ]}
    />
  );
}
