import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { isOpenPush, useTimeline } from '../../api/push.ts';
import { useOperator } from '../../api/session.tsx';
import { Chart } from '../../kit/data/chart.tsx';
import { Time } from '../../kit/data/values.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount, formatDuration, formatTime } from '../../text/format.ts';
import { Sender, StartTime } from '../pushes/shown-push.tsx';
import { useTargetCount } from './audience.tsx';
import { linesOf } from './lines.ts';
import styles from './push.module.css';

interface OfPush {
  appId: string;
  push: PushDetail;
}

/**
 * Sender and times of a push: creation, first request, end, and the time between them. Also shows
 * recipients in quiet hours and the next start.
 */
export function Milestones({ push }: Pick<OfPush, 'push'>) {
  const { t } = useTranslation();
  const startMs = Math.max(Date.parse(push.createdAt), Date.parse(push['push-time']));
  const since = (at: string | null) =>
    at === null ? '–' : `+${formatDuration(Math.max(0, Date.parse(at) - startMs))}`;
  const isUnsent = push.state === 'cancelled' && push.firstSentAt === null;
  return (
    <p className={styles.steps}>
      <span>
        {t('push.sentBy')} <By push={push} />
      </span>
      <span>
        {t('push.accepted')} <Time at={push.createdAt} />
      </span>
      {push.state !== 'scheduled' && !isUnsent && (
        <>
          <span>
            {t('push.firstSend')} <strong>{since(push.firstSentAt)}</strong>
          </span>
          <span>
            {t('push.finished')} <strong>{since(push.finishedAt)}</strong>
          </span>
        </>
      )}
      {push.quietWaits !== undefined && (
        <span>
          {t('push.quietWaits')} <strong>{formatCount(push.quietWaits)}</strong>
        </span>
      )}
      {push.nextStart !== null && (
        <span>
          {t('push.nextStart')} <Time at={push.nextStart} />
        </span>
      )}
    </p>
  );
}

/** Start of a push, the number of currently matching devices, and their quiet hours. */
export function Start({ appId, push }: OfPush) {
  const { t } = useTranslation();
  const isScheduled = push.state === 'scheduled';
  const devices = useTargetCount(appId, push, isScheduled);
  const { quietHours } = push.request;
  return (
    <p className={styles.steps}>
      <span>
        {t('push.starts')}{' '}
        <strong>
          <StartTime push={push} />
        </strong>
      </span>
      {push.localTime !== null && isScheduled && (
        <span>
          {t('push.firstZone')} <Time at={push['push-time']} />
        </span>
      )}
      {devices !== undefined && <span>{t('push.matchNow', { devices })}</span>}
      {typeof quietHours === 'string' && (
        <span>
          {t('compose.quietHours')} <strong>{quietHours}</strong>
        </span>
      )}
    </p>
  );
}

/** Sender of a push. For owners of all apps, it is a link to the sender's audit entries. */
function By({ push }: { push: PushDetail }) {
  const { role, apps } = useOperator();
  if (role !== 'owner' || apps !== null || push.createdBy === null) return <Sender push={push} />;
  return (
    <Link to="/audit" search={{ target: push.objectId }}>
      <Sender push={push} />
    </Link>
  );
}

/** Chart of finished recipients per second. */
export function Timeline({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useTimeline(appId, push);
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  const { times, series } = linesOf(data, !isOpenPush(push), t);
  if (times.length === 0) return <Empty title={t('push.timelineEmpty')} />;
  const totals = times.map((_, at) =>
    series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
  );
  const durationText = (ms: number | undefined) =>
    ms === undefined ? '–' : formatTime(new Date(ms).toISOString());
  const summary = t('push.timelineSummary', {
    peak: formatCount(Math.max(...totals)),
    from: durationText(times[0]),
    to: durationText(times.at(-1)),
  });
  return <Chart times={times} series={series} summary={summary} />;
}
