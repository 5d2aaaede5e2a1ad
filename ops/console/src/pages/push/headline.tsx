import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { PushDetail, PushProgress } from '../../../../client/operations.ts';
import { isOpenPush, waitingOf } from '../../api/push.ts';
import { formatCount, formatDuration, formatShare } from '../../text/format.ts';
import { endedOf, unacknowledgedOf } from '../pushes/shown-push.tsx';
import { Start } from './milestones.tsx';
import styles from './push.module.css';

interface HeadlineProps {
  appId: string;
  push: PushDetail;
  progress: PushProgress | undefined;
}

/** First line of a push: when it starts, how far it is, or how it went. */
export function Headline({ appId, push, progress }: HeadlineProps) {
  const { t } = useTranslation();
  const isUnsent = push.state === 'cancelled' && push.firstSentAt === null;
  if (isUnsent) return <p className={styles.headline}>{t('push.nothingSent')}</p>;
  if (push.state === 'scheduled' || (push.localTime !== null && isOpenPush(push)))
    return <Start appId={appId} push={push} />;
  if (push.waitsForApproval) return null;
  const outcomes = progress?.outcomes ?? push.outcomes;
  const devices = Math.max(progress?.devices ?? 0, push.devices);
  const unacknowledged = progress ? waitingOf(progress) : unacknowledgedOf(push);
  const accepted = (outcomes.sent ?? 0) - unacknowledged;
  const failed = (outcomes.failed ?? 0) + (outcomes.invalid_token ?? 0);
  const values = {
    count: devices,
    done: formatCount(endedOf(outcomes)),
    all: formatCount(devices),
    accepted: formatCount(accepted),
    share: formatShare(accepted, devices),
    time: formatDuration(tookMs(push)),
  };
  if (devices === 0 && !isOpenPush(push))
    return <p className={styles.headline}>{t('push.headNobody')}</p>;
  const state = isOpenPush(push) ? (push.state === 'paused' ? 'paused' : 'open') : push.state;
  const key = state === 'cancelled' ? 'cancelled' : state === 'failed' ? 'done' : state;
  return (
    <p className={styles.headline}>
      {t(`push.head.${key}`, values)}{' '}
      {failed > 0 && (
        <Link
          to="/apps/$appId/pushes/$pushId"
          params={{ appId, pushId: push.objectId }}
          search={{ tab: 'failures' }}
        >
          {t('push.headFailed', { failed: formatCount(failed) })}
        </Link>
      )}
    </p>
  );
}

/** Returns the time from the acceptance or start of a push to its end. */
function tookMs(push: PushDetail): number {
  const startMs = Math.max(Date.parse(push.createdAt), Date.parse(push['push-time']));
  return push.finishedAt === null ? 0 : Math.max(0, Date.parse(push.finishedAt) - startMs);
}

interface FunnelProps {
  push: PushDetail;
  progress: PushProgress | undefined;
  /** Recipients whose message a gateway accepted or a device acknowledged. */
  sent: number;
}

/** Sent, delivered and opened messages, each with its share of the step before. */
export function Funnel({ push, progress, sent }: FunnelProps) {
  const { t } = useTranslation();
  const delivered = progress?.delivered ?? push.delivered;
  const events = progress?.events ?? push.events;
  const opened = Math.max(progress?.clicked ?? push.clicked, events?.opened ?? 0);
  const steps = [
    { name: t('outcome.sent'), count: sent, of: 0 },
    { name: t('pushes.delivered'), count: delivered, of: sent },
    { name: t('reports.openedAny'), count: opened, of: delivered },
  ];
  const most = Math.max(1, ...steps.map(({ count }) => count));
  return (
    <ol className={styles.funnel} aria-label={t('reports.funnel')}>
      {steps.map(({ name, count, of }) => (
        <li key={name}>
          <span className={styles.funnelName}>{name}</span>
          <span>
            <strong>{formatCount(count)}</strong>{' '}
            {of > 0 && <span className={styles.funnelName}>{formatShare(count, of)}</span>}
          </span>
          <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
            <rect width={(count / most) * 100} height={1} />
          </svg>
        </li>
      ))}
      {delivered === 0 && sent > 0 && !isOpenPush(push) && (
        <li className={styles.funnelName}>{t('push.noReceipts')}</li>
      )}
    </ol>
  );
}
