import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useAppNames, useServiceOverview } from '../../api/apps.ts';
import { Panel } from '../../kit/panel.tsx';
import { Failure, Loading } from '../../kit/states.tsx';
import { AttentionList, isQuiet, RunningPushes } from '../overview/current.tsx';
import styles from '../overview/overview.module.css';

/** What is being sent and what needs attention, over all apps that the person may see. */
export function Current() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useServiceOverview();
  const appIds = [
    ...(data?.running ?? []),
    ...(data?.waitingApproval ?? []),
    ...(data?.breakersOpen ?? []),
    ...(data?.profilesExpiring ?? []),
    ...(data?.findings ?? []),
    ...(data?.webhooks ?? []),
  ].map(({ appId }) => appId);
  const nameOf = useAppNames(appIds);
  const appLink = (appId: string) => (
    <Link to="/apps/$appId" params={{ appId }} translate="no">
      {nameOf(appId)}
    </Link>
  );
  if (isPending) return <Loading />;
  if (!data) return <Failure error={error} retry={() => void refetch()} />;
  return (
    <div className={styles.grid}>
      <Panel title={t('overview.running')}>
        <RunningPushes pushes={data.running} appLink={appLink} />
      </Panel>
      <Panel title={t('overview.attention')}>
        {isQuiet(data) && <p className={styles.quiet}>{t('overview.allWell')}</p>}
        <AttentionList overview={data} appLink={appLink} />
      </Panel>
    </div>
  );
}
