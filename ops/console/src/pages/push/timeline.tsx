import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import type { PushDetail, PushTimeline } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../../api/client.ts';
import { isOpenPush } from '../../api/push.ts';
import { Chart, type Series } from '../../kit/data/chart.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount, formatTime } from '../../text/format.ts';

const refreshMs = 2000;

/** Recipients that ended per second. */
export function Timeline({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['timeline', appId, push.objectId],
    queryFn: ({ signal }) =>
      call<PushTimeline>(appPath(appId, 'notifications', push.objectId, 'timeline'), { signal }),
    refetchInterval: isOpenPush(push) ? refreshMs : false,
  });
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  const { times, series } = linesOf(data, t);
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

/**
 * Returns the points of the chart as rates per second, over all connectors. A point before and one after the push make a
 * short one visible.
 */
function linesOf({ from, stepMs, connectors }: PushTimeline, t: (key: string) => string) {
  const lines = Object.values(connectors);
  const length = Math.max(0, ...lines.map(({ sent }) => sent.length));
  if (length === 0) return { times: [], series: [] };
  const times = Array.from({ length: length + 2 }, (_, at) => Date.parse(from) + (at - 1) * stepMs);
  const rates = (part: 'sent' | 'other') => [
    0,
    ...Array.from({ length }, (_, step) => {
      const count = lines.reduce((sum, line) => sum + (line[part][step] ?? 0), 0);
      return count * (1000 / stepMs);
    }),
    0,
  ];
  const series: Series[] = [
    { label: t('outcome.sent'), color: '--good-fill', values: rates('sent') },
    { label: t('outcome.others'), color: '--bad-fill', values: rates('other') },
  ];
  return { times, series };
}
