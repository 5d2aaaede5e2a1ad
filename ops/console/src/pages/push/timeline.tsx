import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import type { PushDetail, PushTimeline } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../../api/client.ts';
import { connectorName } from '../../api/connectors.ts';
import { isOpenPush } from '../../api/push.ts';
import { Chart, type Series } from '../../kit/data/chart.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatCount, formatTime } from '../../text/format.ts';

const refreshMs = 2000;
const colors = ['--accent', '--good-fill', '--warn-fill', '--bad-fill', '--idle-fill'] as const;

/** Recipients that ended per second, by connector. */
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
  const { times, series } = linesOf(data);
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

/** Returns the points of the chart as rates per second: a point before and after the push, so that a short one shows. */
function linesOf({ from, stepMs, connectors }: PushTimeline): { times: number[]; series: Series[] } {
  const entries = Object.entries(connectors);
  const length = Math.max(0, ...entries.map(([, line]) => line?.sent.length ?? 0));
  if (length === 0) return { times: [], series: [] };
  const startMs = Date.parse(from);
  const times = Array.from({ length: length + 2 }, (_, at) => startMs + (at - 1) * stepMs);
  const series = entries.map(([id, line], at) => ({
    label: connectorName(id),
    color: colors[at % colors.length] ?? '--accent',
    values: [
      0,
      ...Array.from(
        { length },
        (_, step) => ((line?.sent[step] ?? 0) + (line?.other[step] ?? 0)) * (1000 / stepMs),
      ),
      0,
    ],
  }));
  return { times, series };
}
