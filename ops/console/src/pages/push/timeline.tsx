import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { isOpenPush, useTimeline } from '../../api/push.ts';
import { Chart } from '../../kit/data/chart.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount, formatTime } from '../../text/format.ts';
import { linesOf } from './lines.ts';

/** Recipients that ended per second. */
export function Timeline({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useTimeline(appId, push);
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  const { times, series } = linesOf(data, !isOpenPush(push), t);
  if (times.length === 0) return <Empty title={t('push.timelineEmpty')} />;
  const totals = times.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  const shown = (ms: number | undefined) => (ms === undefined ? '–' : formatTime(new Date(ms).toISOString()));
  const summary = t('push.timelineSummary', {
    peak: formatCount(Math.max(...totals)),
    from: shown(times[0]),
    to: shown(times.at(-1)),
  });
  return <Chart times={times} series={series} summary={summary} />;
}
